"""The 16 tools of tau-bench retail, by name, arguments and effect.

A call either works on the whole or fails and changes nothing; a failure is a text that begins with `Error:`.
Argument types are checked before a tool runs, so a tool body sees strings and lists of strings only. Where
upstream is odd, so are we, since final states are compared: a cancellation refunds every line of the payment
history, refunds of earlier refunds included; the price difference of modified items is not rounded in the
payment history, that of exchanged items is; an empty list of items is accepted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from harness_mdp.settings.tau_retail.calculator import evaluate
from harness_mdp.settings.tau_retail.data import Record, Shop

__all__ = ["ADDRESS_FIELDS", "CANCEL_REASONS", "TOOLS", "TRANSFER", "Outcome", "Tool", "ToolFailure", "run_tool"]

TRANSFER = "transfer_to_human_agents"
CANCEL_REASONS = ("no longer needed", "ordered by mistake")
ADDRESS_FIELDS = ("address1", "address2", "city", "state", "country", "zip")
_ITEM_FIELDS = ("item_ids", "new_item_ids")

Arguments = Mapping[str, Any]


class ToolFailure(Exception):
    """A call that a tool refuses; the message says why and what was expected."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call came to."""

    ok: bool
    valid: bool
    """The tool exists and the arguments fit it."""
    text: str
    """Result, or `Error: ...`."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its required arguments (all strings but those of `_ITEM_FIELDS`) and whether it changes data."""

    name: str
    arguments: tuple[str, ...]
    writes: bool
    run: Callable[[Shop, Arguments], str]

    def mismatch(self, arguments: Arguments) -> str:
        """Why `arguments` do not fit, in one line; empty if they do."""
        missing = [name for name in self.arguments if name not in arguments]
        unknown = sorted(str(name) for name in arguments if name not in self.arguments)
        if missing or unknown:
            found = [f"missing {', '.join(missing)}"] if missing else []
            found += [f"unknown {', '.join(unknown)}"] if unknown else []
            return f"{self.name} takes ({', '.join(self.arguments)}): {'; '.join(found)}"
        for name in self.arguments:
            value = arguments[name]
            if name in _ITEM_FIELDS:
                items: list[object] = cast("list[object]", value) if isinstance(value, list) else [None]
                if not all(isinstance(item, str) for item in items):
                    return f"{self.name}: {name} must be a list of strings"
            elif not isinstance(value, str):
                return f"{self.name}: {name} must be a string, not {type(value).__name__}"
        return ""


def run_tool(shop: Shop, name: str, arguments: Arguments) -> Outcome:
    """Run the tool `name` on `shop`; a failure of any kind leaves `shop` as it was."""
    tool = TOOLS.get(name)
    if tool is None:
        return Outcome(False, False, f"Error: unknown tool {name!r}")
    mismatch = tool.mismatch(arguments)
    if mismatch:
        return Outcome(False, False, f"Error: {mismatch}")
    trial = shop.trial() if tool.writes else shop
    try:
        text = tool.run(trial, arguments)
    except ToolFailure as refusal:
        return Outcome(False, True, f"Error: {refusal}")
    except (KeyError, IndexError) as gap:  # the database refers to a record that it does not hold
        return Outcome(False, True, f"Error: the database holds no {gap}")
    if tool.writes:
        shop.adopt(trial)
    return Outcome(True, True, text)


def _order(shop: Shop, order_id: str, status: str, verb: str) -> Record:
    order = shop.read("orders", order_id)
    if order is None:
        raise ToolFailure(f"order {order_id} does not exist; an order id looks like #W0000000")
    if order["status"] != status:
        raise ToolFailure(f"order {order_id} is {order['status']}; only a {status} order can be {verb}")
    return order


def _method(shop: Shop, order: Record, method_id: str) -> Record:
    methods = _user_of(shop, order)["payment_methods"]
    if method_id not in methods:
        raise ToolFailure(f"user {order['user_id']} has no payment method {method_id}")
    return methods[method_id]


def _user_of(shop: Shop, order: Record) -> Record:
    user = shop.read("users", order["user_id"])
    if user is None:
        raise KeyError(order["user_id"])
    return user


def _cover(method: Record, amount: float) -> None:
    if method["source"] == "gift_card" and method["balance"] < amount:
        raise ToolFailure(f"gift card {method['id']} holds {method['balance']}, which does not cover {amount:.2f}")


def _charge(shop: Shop, order: Record, method_id: str, amount: float) -> None:
    """Take `amount` (USD; negative: give back) from a gift card of the order's user, to the cent."""
    method = shop.edit("users", order["user_id"])["payment_methods"][method_id]
    method["balance"] = round(method["balance"] - amount, 2)


def _expect_items(order: Record, item_ids: Sequence[str]) -> None:
    held = [item["item_id"] for item in order["items"]]
    for item_id in item_ids:
        if item_ids.count(item_id) > held.count(item_id):
            raise ToolFailure(f"item {item_id} is asked for more often than order {order['order_id']} holds it")


def _first_item(order: Record, item_id: str) -> Record:
    return next(item for item in order["items"] if item["item_id"] == item_id)


def _variant(shop: Shop, product_id: str, item_id: str) -> Record:
    product = shop.read("products", product_id)
    if product is None:
        raise KeyError(product_id)
    variant = product["variants"].get(item_id)
    if variant is None or not variant["available"]:
        reason = "is not available" if variant else f"is no item of product {product_id} ({product['name']})"
        raise ToolFailure(f"new item {item_id} {reason}")
    return variant


def _difference(shop: Shop, order: Record, item_ids: Sequence[str], new_item_ids: Sequence[str]) -> float:
    """New minus old prices in USD, not rounded, after checking both lists of items."""
    _expect_items(order, item_ids)
    if len(item_ids) != len(new_item_ids):
        raise ToolFailure(f"{len(item_ids)} items cannot be swapped for {len(new_item_ids)}; list one new item each")
    total: float = 0
    for old_id, new_id in zip(item_ids, new_item_ids, strict=True):
        old = _first_item(order, old_id)
        total += _variant(shop, old["product_id"], new_id)["price"] - old["price"]
    return total


def _cancel(shop: Shop, given: Arguments) -> str:
    _order(shop, given["order_id"], "pending", "cancelled")
    if given["reason"] not in CANCEL_REASONS:
        raise ToolFailure(f"reason {given['reason']!r} is not one of: {', '.join(CANCEL_REASONS)}")
    order = shop.edit("orders", given["order_id"])
    refunds: list[Record] = []
    for payment in order["payment_history"]:
        amount, method_id = payment["amount"], payment["payment_method_id"]
        refunds.append({"transaction_type": "refund", "amount": amount, "payment_method_id": method_id})
        if "gift_card" in method_id:
            _charge(shop, order, method_id, -amount)
    order["status"] = "cancelled"
    order["cancel_reason"] = given["reason"]
    order["payment_history"].extend(refunds)
    return json.dumps(order)


def _exchange(shop: Shop, given: Arguments) -> str:
    order = _order(shop, given["order_id"], "delivered", "exchanged")
    difference = round(_difference(shop, order, given["item_ids"], given["new_item_ids"]), 2)
    _cover(_method(shop, order, given["payment_method_id"]), difference)
    order = shop.edit("orders", given["order_id"])
    order["status"] = "exchange requested"
    order["exchange_items"] = sorted(given["item_ids"])
    order["exchange_new_items"] = sorted(given["new_item_ids"])
    order["exchange_payment_method_id"] = given["payment_method_id"]
    order["exchange_price_difference"] = difference
    return json.dumps(order)


def _return(shop: Shop, given: Arguments) -> str:
    order = _order(shop, given["order_id"], "delivered", "returned")
    method_id = given["payment_method_id"]
    _method(shop, order, method_id)
    original = order["payment_history"][0]["payment_method_id"]
    if "gift_card" not in method_id and method_id != original:
        raise ToolFailure(f"the refund must go to {original}, which paid, or to a gift card, not to {method_id}")
    _expect_items(order, given["item_ids"])
    order = shop.edit("orders", given["order_id"])
    order["status"] = "return requested"
    order["return_items"] = sorted(given["item_ids"])
    order["return_payment_method_id"] = method_id
    return json.dumps(order)


def _modify_items(shop: Shop, given: Arguments) -> str:
    order = _order(shop, given["order_id"], "pending", "modified")
    difference = _difference(shop, order, given["item_ids"], given["new_item_ids"])
    method_id = given["payment_method_id"]
    method = _method(shop, order, method_id)
    _cover(method, difference)
    order = shop.edit("orders", given["order_id"])
    kind = "payment" if difference > 0 else "refund"
    order["payment_history"].append(
        {"transaction_type": kind, "amount": abs(difference), "payment_method_id": method_id}
    )
    if method["source"] == "gift_card":
        _charge(shop, order, method_id, difference)
    for old_id, new_id in zip(given["item_ids"], given["new_item_ids"], strict=True):
        item = _first_item(order, old_id)
        variant = _variant(shop, item["product_id"], new_id)
        item["item_id"], item["price"], item["options"] = new_id, variant["price"], dict(variant["options"])
    order["status"] = "pending (item modified)"
    return json.dumps(order)


def _modify_payment(shop: Shop, given: Arguments) -> str:
    order = _order(shop, given["order_id"], "pending", "modified")
    method_id = given["payment_method_id"]
    method = _method(shop, order, method_id)
    history = order["payment_history"]
    if len(history) > 1 or history[0]["transaction_type"] != "payment":
        raise ToolFailure(f"order {given['order_id']} has {len(history)} payment entries; expected a single payment")
    old_id, amount = history[0]["payment_method_id"], history[0]["amount"]
    if old_id == method_id:
        raise ToolFailure(f"order {given['order_id']} is already paid by {method_id}; choose another method")
    _cover(method, amount)
    order = shop.edit("orders", given["order_id"])
    for kind, entry_id in (("payment", method_id), ("refund", old_id)):
        order["payment_history"].append({"transaction_type": kind, "amount": amount, "payment_method_id": entry_id})
    if method["source"] == "gift_card":
        _charge(shop, order, method_id, amount)
    if "gift_card" in old_id:
        _charge(shop, order, old_id, -amount)
    return json.dumps(order)


def _modify_order_address(shop: Shop, given: Arguments) -> str:
    _order(shop, given["order_id"], "pending", "modified")
    order = shop.edit("orders", given["order_id"])
    order["address"] = {name: given[name] for name in ADDRESS_FIELDS}
    return json.dumps(order)


def _modify_user_address(shop: Shop, given: Arguments) -> str:
    if shop.read("users", given["user_id"]) is None:
        raise ToolFailure(f"user {given['user_id']} does not exist")
    user = shop.edit("users", given["user_id"])
    user["address"] = {name: given[name] for name in ADDRESS_FIELDS}
    return json.dumps(user)


def _find_by_email(shop: Shop, given: Arguments) -> str:
    user_id = shop.base.by_email.get(given["email"].lower())  # no tool changes an email
    if user_id is None:
        raise ToolFailure(f"no user has the email {given['email']}")
    return user_id


def _find_by_name_zip(shop: Shop, given: Arguments) -> str:
    for user_id in shop.base.by_name.get((given["first_name"].lower(), given["last_name"].lower()), ()):
        user = shop.read("users", user_id)
        if user is not None and user["address"]["zip"] == given["zip"]:
            return user_id
    raise ToolFailure(f"no user is called {given['first_name']} {given['last_name']} in {given['zip']}")


def _get(table: str, argument: str) -> Callable[[Shop, Arguments], str]:
    def get(shop: Shop, given: Arguments) -> str:
        record = shop.read(table, given[argument])
        if record is None:
            raise ToolFailure(f"there is no {table[:-1]} {given[argument]}")
        return json.dumps(record)

    return get


def _list_products(shop: Shop, _: Arguments) -> str:
    return json.dumps(dict(sorted((row["name"], row["product_id"]) for row in shop.base.products.values())))


def _calculate(_: Shop, given: Arguments) -> str:
    try:
        return str(evaluate(given["expression"]))
    except ValueError as problem:
        raise ToolFailure(str(problem)) from None


def _think(_: Shop, __: Arguments) -> str:
    return ""


def _transfer(_: Shop, __: Arguments) -> str:
    return "The customer is handed over to a human agent"


_SWAP = ("order_id", *_ITEM_FIELDS, "payment_method_id")

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("calculate", ("expression",), False, _calculate),
        Tool("cancel_pending_order", ("order_id", "reason"), True, _cancel),
        Tool("exchange_delivered_order_items", _SWAP, True, _exchange),
        Tool("find_user_id_by_email", ("email",), False, _find_by_email),
        Tool("find_user_id_by_name_zip", ("first_name", "last_name", "zip"), False, _find_by_name_zip),
        Tool("get_order_details", ("order_id",), False, _get("orders", "order_id")),
        Tool("get_product_details", ("product_id",), False, _get("products", "product_id")),
        Tool("get_user_details", ("user_id",), False, _get("users", "user_id")),
        Tool("list_all_product_types", (), False, _list_products),
        Tool("modify_pending_order_address", ("order_id", *ADDRESS_FIELDS), True, _modify_order_address),
        Tool("modify_pending_order_items", _SWAP, True, _modify_items),
        Tool("modify_pending_order_payment", ("order_id", "payment_method_id"), True, _modify_payment),
        Tool("modify_user_address", ("user_id", *ADDRESS_FIELDS), True, _modify_user_address),
        Tool("return_delivered_order_items", ("order_id", "item_ids", "payment_method_id"), True, _return),
        Tool("think", ("thought",), False, _think),
        Tool(TRANSFER, ("summary",), False, _transfer),
    )
}
"""By name; a call with other arguments than those listed fails."""
