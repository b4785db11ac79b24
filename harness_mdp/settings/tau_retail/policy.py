"""The shop's policy: its text as short evidence, and its rules as check items on a dry run.

The rules read the draft, the dry run and the shop's records, all of which are at hand when deployed. What only a
conversation can show (explicit consent, one call at a time) is no rule here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness_mdp.settings.protocol import CheckItem, Evidence
from harness_mdp.settings.tau_retail.data import Database
from harness_mdp.settings.tau_retail.draft import Draft, Ran
from harness_mdp.settings.tau_retail.tools import TOOLS

__all__ = ["OWN_POLICY", "Policy", "one_line", "policy_items", "read_policy", "request_evidence"]

OWN_POLICY = """\
# Retail policy

- First find the user id by email, or by name and zip code, even if the customer gives a user id.
- Serve this one customer only; deny requests about anybody else's orders or data.
- State only what the records show. Never invent ids, prices or procedures.
- Hand over to a human agent only what the tools cannot do, and do nothing after that.
- An order is pending, processed, delivered or cancelled; only pending and delivered orders can be acted on.
- Items of an order can be modified or exchanged once: put all of them into one call.

## Cancel pending order

- Only a pending order can be cancelled, as a whole, for one of two reasons: no longer needed, ordered by mistake.

## Modify pending order

- Only a pending order can be modified: its address, its payment method, or its items, nothing else.

### Modify payment

- The new payment method must be another one of the customer's; a gift card must cover the total.

### Modify items

- Each item can become an available item of the same product with other options. The price difference goes to a
payment method that the customer names; a gift card must cover it.

## Return delivered order

- Only a delivered order can be returned, in whole or part; the refund goes to the original payment method or to a
gift card that the customer has.

## Exchange delivered order

- Only a delivered order can be exchanged, each item for an available one of the same product; the price difference
goes to a payment method that the customer names, and a gift card must cover it.
"""
"""Policy of generated tasks, and of a folder that brings none; same headings as the upstream file."""

_GENERAL_CHARS = 600
_SECTION_CHARS = 360
_MAX_SECTIONS = 3
_KEYWORDS = {
    "cancel": ("cancel", "undo"),
    "payment": ("payment", "pay ", "paypal", "credit card", "gift card"),
    "items": ("change", "modify", "switch", "swap", "replace"),
    "return": ("return", "refund", "send back"),
    "exchange": ("exchange", "swap", "replace", "switch", "change"),
    "modify pending order": ("address", "deliver", "ship", "change", "modify"),
}
"""Words in a request that make the section whose heading holds the key relevant."""


@dataclass(frozen=True)
class Policy:
    """General rules, and one section for each kind of action."""

    general: str
    sections: tuple[tuple[str, str], ...]
    """(heading, text)"""

    def relevant(self, request: str) -> tuple[Evidence, ...]:
        """The sections that the request calls for, most matches first, at most three."""
        lowered = request.lower()
        hits = [
            (
                sum(lowered.count(word) for key, words in _KEYWORDS.items() if key in title.lower() for word in words),
                title,
                text,
            )
            for title, text in self.sections
        ]
        ranked = sorted((hit for hit in hits if hit[0]), key=lambda hit: -hit[0])[:_MAX_SECTIONS]
        return tuple(Evidence(_section_id(title), f"{title}: {text}") for _, title, text in ranked)


def _section_id(title: str) -> str:
    return "policy-" + re.sub(r"[^a-z]+", "-", title.lower()).strip("-")


def read_policy(markdown: str) -> Policy:
    """General rules and sections of a policy file, each cut at a whole sentence to a length that fits a prompt."""
    parts = re.split(r"^#{1,3} +(.+)$", markdown, flags=re.MULTILINE)
    titled = [(parts[index].strip(), _rules(parts[index + 1])) for index in range(1, len(parts) - 1, 2)]
    actions = [(title, rules) for title, rules in titled if _is_action(title) and rules]
    general = [rule for title, rules in titled if not _is_action(title) for rule in rules] or _rules(parts[0])
    return Policy(
        _cut(general, _GENERAL_CHARS), tuple((title, _cut(rules, _SECTION_CHARS)) for title, rules in actions)
    )


def request_evidence(policy: Policy, request: str) -> tuple[tuple[Evidence, ...], ...]:
    """Evidence by round of `observe`: the request and the general rules, then the sections that it calls for."""
    first = (Evidence("request", one_line(request)), Evidence("policy-general", policy.general))
    return tuple(items for items in (first, policy.relevant(request)) if items)


def _is_action(title: str) -> bool:
    return title.lower().split(" ")[0] in {"cancel", "modify", "return", "exchange"}


def _rules(text: str) -> list[str]:
    """The rules of a section, each on one line."""
    return [one_line(rule) for rule in re.split(r"^\s*[-*] +|\n\s*\n", text, flags=re.MULTILINE) if rule.strip()]


def _cut(rules: Sequence[str], limit: int) -> str:
    kept: list[str] = []
    for rule in rules:
        if len(" ".join([*kept, rule])) <= limit:
            kept.append(rule)
    return " ".join(kept)


def one_line(text: str, limit: int = 4000) -> str:
    """`text` without line breaks, at most `limit` characters."""
    return " ".join(text.split())[:limit]


def policy_items(base: Database, draft: Draft, ran: Sequence[Ran]) -> list[CheckItem]:
    """The check items of a draft, given its dry run."""
    writes = [entry for entry in ran if entry.call.name in TOOLS and TOOLS[entry.call.name].writes]
    dropped = len(draft.calls) - len(ran)
    return [
        _item("respond", "" if draft.respond.strip() else "respond is empty; say to the customer what was done"),
        _item("tools_known", _first(entry for entry in ran if entry.call.name not in TOOLS)),
        _item("arguments", _first(e for e in ran if e.call.name in TOOLS and not e.outcome.valid)),
        _item("authenticated", _authentication(ran)),
        _item("one_customer", _strangers(base, ran)),
        _item("calls_work", _first(entry for entry in ran if entry.outcome.valid and not entry.outcome.ok)),
        _item("real_change", _idle(writes)),
        _item("transfer_last", f"{dropped} calls come after the transfer and will not run" if dropped else ""),
    ]


def _item(name: str, problem: str) -> CheckItem:
    return CheckItem(name, not problem, one_line(problem, 200))


def _first(failed: Iterable[Ran]) -> str:
    return next((f"{entry.call.name}: {entry.outcome.text.removeprefix('Error: ')}" for entry in failed), "")


def _authentication(ran: Sequence[Ran]) -> str:
    """The user id has to be found before any call that changes data or shows a customer's."""
    needs = {"get_user_details", "get_order_details", *(name for name, tool in TOOLS.items() if tool.writes)}
    for entry in ran:
        if entry.call.name.startswith("find_user_id_by") and entry.outcome.ok:
            return ""
        if entry.call.name in needs:
            return f"{entry.call.name} comes before the user id was found by email, or by name and zip"
    return ""


def _strangers(base: Database, ran: Sequence[Ran]) -> str:
    """All records touched must be those of one customer: the one who was found, else the first touched."""
    owner = ""
    for entry in ran:
        call = entry.call
        found = call.name.startswith("find_user_id_by") and entry.outcome.ok
        touched = entry.outcome.text if found else _owner(base, call.arguments)
        owner = owner or touched
        if touched and touched != owner:
            return f"{call.name} concerns user {touched}, but the customer is {owner}"
    return ""


def _owner(base: Database, arguments: object) -> str:
    given = arguments if isinstance(arguments, dict) else {}
    order, user = given.get("order_id"), given.get("user_id")
    if isinstance(order, str) and order in base.orders:
        return str(base.orders[order]["user_id"])
    return user if isinstance(user, str) and user in base.users else ""


def _idle(writes: Sequence[Ran]) -> str:
    """An item is swapped for another one, and items are named at all."""
    for entry in writes:
        given = entry.call.arguments
        if not entry.outcome.ok or "item_ids" not in given:
            continue
        if not given["item_ids"]:
            return f"{entry.call.name} names no item"
        if "new_item_ids" in given and any(
            a == b for a, b in zip(given["item_ids"], given["new_item_ids"], strict=True)
        ):
            return f"{entry.call.name} swaps an item for itself"
    return ""
