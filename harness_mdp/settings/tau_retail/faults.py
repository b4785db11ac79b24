"""Concrete faults of tool calls: the near misses that an agent makes with ids, items, addresses and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness_mdp.hashing import Json, canonical_json
from harness_mdp.settings.slots import Slot
from harness_mdp.settings.tau_retail.data import Database, Record
from harness_mdp.settings.tau_retail.draft import Call, call_json
from harness_mdp.settings.tau_retail.tools import CANCEL_REASONS

__all__ = ["FaultFinder", "typo", "wrong_output"]

Part = str | Slot

_MAX_WRONG = 3
_MAX_SWAPS = 3
"""New items of one call that get a slot of their own; further ones are simply right."""


@dataclass(frozen=True)
class FaultFinder:
    """Finds the wrong pieces for the calls of one task."""

    base: Database
    user_id: str
    texts: Mapping[str, str]
    """Evidence that can be gathered, by id."""
    writes: tuple[Call, ...]
    """The calls of the right draft that change data, in order."""

    def call_parts(self, number: int, call: Call) -> list[Part]:
        """Call `number` with a leading comma, its arguments as slots where they can be wrong."""
        parts: list[Part] = [',{"arguments":{']
        for index, name in enumerate(sorted(call.arguments)):
            parts.append(f'{"," if index else ""}"{name}":')
            parts += self._argument(name, call, number)
        return [*parts, f'}},"name":"{call.name}"}}']

    def _argument(self, name: str, call: Call, number: int) -> Sequence[Part]:
        match name:
            case "order_id":
                return self._order_id(call, number)
            case "reason":
                return self._reason(call, number)
            case "payment_method_id":
                return self._payment(call, number)
            case "item_ids":
                return self._item_ids(call, number)
            case "new_item_ids":
                return self._new_item_ids(call, number)
            case "address1" | "address2" | "zip":
                return self._address(name, call, number)
            case _:
                return [canonical_json(call.arguments[name])]

    def whole_call(self, number: int, call: Call, parts: Sequence[Part]) -> Slot:
        """Call `number` as one slot: left out, or with one argument wrong."""
        wrong = [""]
        for index, part in enumerate(parts):
            if isinstance(part, Slot):
                pieces = [p if isinstance(p, str) else p.correct for p in parts]
                pieces[index] = part.wrong[0]
                wrong.append("".join(pieces))
        where = _where(number, call)
        return Slot(
            f",{call_json(call.name, call.arguments)}",
            tuple(wrong[: _MAX_WRONG + 1]),
            f"{where} may be missing or wrong",
            self._request(),
        )

    def unasked_calls(self) -> Iterator[Slot]:
        """Slots that are empty when right; wrong is a call that the customer did not ask for."""
        touched = {call.arguments.get("order_id") for call in self.writes}
        others = [order for order in self._orders() if order["order_id"] not in touched]
        for order in sorted(others, key=lambda row: row["status"], reverse=True):
            if order["status"] == "pending":
                arguments: dict[str, Json] = {"order_id": order["order_id"], "reason": CANCEL_REASONS[0]}
                yield self._unasked("cancel_pending_order", arguments)
            elif order["status"] == "delivered":
                arguments = {
                    "order_id": order["order_id"],
                    "item_ids": [item["item_id"] for item in order["items"]],
                    "payment_method_id": order["payment_history"][0]["payment_method_id"],
                }
                yield self._unasked("return_delivered_order_items", arguments)
        home: Record = self.base.users[self.user_id]["address"]
        for changed in ({"address2": "Suite 100"}, {"zip": typo(home["zip"])}, {"address1": typo(home["address1"])}):
            yield self._unasked("modify_user_address", {"user_id": self.user_id, **home, **changed}, *changed)

    def _unasked(self, name: str, arguments: Mapping[str, Json], *details: str) -> Slot:
        about = str(arguments.get("order_id") or " ".join(details))
        problem = f"{name} ({about}) may be something that nobody asked for"
        return Slot("", (f",{call_json(name, arguments)}",), problem, self._request())

    def _request(self) -> tuple[str, ...]:
        return ("request",) if "request" in self.texts else ()

    def _orders(self) -> list[Record]:
        ids: list[str] = self.base.users[self.user_id]["orders"]
        return [self.base.orders[order_id] for order_id in ids if order_id in self.base.orders]

    def _holding(self, value: str, *preferred: str) -> tuple[str, ...]:
        """The first of `preferred` that holds `value`; else up to two other evidence ids that do."""
        for name in preferred:
            if value in self.texts.get(name, ""):
                return (name,)
        return tuple(name for name, text in self.texts.items() if value and value in text)[:2]

    def _slot(self, value: Json, wrong: Iterable[Json], problem: str, helped_by: tuple[str, ...]) -> list[Part]:
        correct = canonical_json(value)
        pieces = tuple(dict.fromkeys(text for text in map(canonical_json, wrong) if text != correct))[:_MAX_WRONG]
        return [Slot(correct, pieces, problem, helped_by)] if pieces else [correct]

    def _order_id(self, call: Call, number: int) -> list[Part]:
        right: str = call.arguments["order_id"]
        status = self.base.orders[right]["status"]
        others = sorted(self._orders(), key=lambda row: row["status"] != status)
        wrong = [row["order_id"] for row in others if row["order_id"] != right][:2] or [typo(right)]
        return self._slot(
            right,
            wrong,
            f"{_where(number, call)}: the order may be another one",
            self._holding(right, f"order-{right}"),
        )

    def _reason(self, call: Call, number: int) -> list[Part]:
        wrong = [*CANCEL_REASONS, "changed my mind"]
        return self._slot(
            call.arguments["reason"], wrong, f"{_where(number, call)}: the reason may be wrong", self._request()
        )

    def _payment(self, call: Call, number: int) -> list[Part]:
        right: str = call.arguments["payment_method_id"]
        methods = [key for key in self.base.users[self.user_id]["payment_methods"] if key != right]
        wrong = [*methods[:2], typo(right)]
        return self._slot(
            right, wrong, f"{_where(number, call)}: the payment method may be wrong", self._holding(right, "user")
        )

    def _item_ids(self, call: Call, number: int) -> list[Part]:
        """Only returns: elsewhere the old items must match the new ones, which have their own slots."""
        right: list[str] = call.arguments["item_ids"]
        order = self.base.orders.get(call.arguments["order_id"])
        if "new_item_ids" in call.arguments or not right or order is None:
            return [canonical_json(right)]
        rest = [item["item_id"] for item in order["items"] if item["item_id"] not in right]
        wrong: list[list[str]] = [right[:-1]] if len(right) > 1 else []
        if rest:
            wrong += [[*right, rest[0]], [*right[:-1], rest[0]]]
        wrong.append([*right[:-1], typo(right[-1])])
        problem = f"{_where(number, call)}: the items may be wrong or incomplete"
        return self._slot(right, wrong, problem, self._holding(right[0], f"order-{order['order_id']}"))

    def _new_item_ids(self, call: Call, number: int) -> list[Part]:
        parts: list[Part] = ["["]
        for index, (old, new) in enumerate(
            zip(call.arguments["item_ids"], call.arguments["new_item_ids"], strict=True)
        ):
            parts.append("," if index else "")
            wrong = self._near(old, new)
            product_id = next((key for key, row in self.base.products.items() if new in row["variants"]), "")
            problem = f"{_where(number, call)}: new item {index + 1} may be another one"
            slot = self._slot(new, wrong, problem, self._holding(new, f"product-{product_id}"))
            parts += slot if index < _MAX_SWAPS else [canonical_json(new)]
        return [*parts, "]"]

    def _near(self, old: str, new: str) -> list[str]:
        """Other items of the same product, most alike first: two that are available, one that is not."""
        product = next((row for row in self.base.products.values() if new in row["variants"]), None)
        if product is None:
            return [typo(new)]
        target = product["variants"][new]["options"]

        def unlike(row: Record) -> tuple[int, str]:
            return sum(row["options"].get(name) != value for name, value in target.items()), row["item_id"]

        others = sorted((row for key, row in product["variants"].items() if key not in (old, new)), key=unlike)
        available = [row["item_id"] for row in others if row["available"]][:2]
        return available + [row["item_id"] for row in others if not row["available"]][:1]

    def _address(self, name: str, call: Call, number: int) -> list[Part]:
        right: str = call.arguments[name]
        known = [self.base.users[self.user_id]["address"], *(order["address"] for order in self._orders())]
        wrong = [*[*dict.fromkeys(row[name] for row in known if row[name] != right)][:2], typo(right)]
        # Street and zip are kept apart by evidence: the request says a new one, the profile holds an old one.
        helped = self._holding(right, "request", "user") if right else self._request()
        return self._slot(right, wrong, f"{_where(number, call)}: {name} may be wrong", helped)


def _where(number: int, call: Call) -> str:
    return f"change {number + 1} ({call.name})"


def typo(text: str) -> str:
    """`text` with its last digit one higher (9 becomes 0); unchanged without a digit."""
    found = re.search(r"\d(?=\D*$)", text)
    if found is None:
        return text
    return f"{text[: found.start()]}{(int(found[0]) + 1) % 10}{text[found.end() :]}"


def wrong_output(output: str) -> tuple[str, ...]:
    """Wrong things to say instead of `output`: other figures of the same form, or that it is not known."""
    unknown = "not on record"
    if not re.fullmatch(r"-?\d+(\.\d+)?", output):
        return tuple(dict.fromkeys(text for text in (typo(output), unknown) if text.lower() != output.lower()))
    decimals = len(output.partition(".")[2])
    value = float(output)
    if not decimals and abs(value) >= 1e6:  # a code, not a figure
        return (typo(output), unknown)
    step = max(1.0, round(abs(value) * 0.1, decimals))
    figures = (f"{value + step:.{decimals}f}", f"{value - step:.{decimals}f}")
    return tuple(text for text in figures if output not in text) or (unknown,)
