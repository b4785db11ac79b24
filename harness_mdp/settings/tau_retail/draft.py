"""The artifact of `tau_retail`: `{"calls": [{"name", "arguments"}], "respond": "..."}`, as canonical JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn, cast

from harness_mdp.hashing import Json, canonical_json
from harness_mdp.settings.prompts import Unparsable, fenced
from harness_mdp.settings.tau_retail.data import Shop
from harness_mdp.settings.tau_retail.tools import TRANSFER, Outcome, run_tool

__all__ = ["Call", "Draft", "Ran", "call_json", "parse_draft", "play", "read_draft"]

_MAX_STARTS = 50
"""Opening brackets that are tried as the start of the JSON; a reply with more is no answer."""

_MAX_NESTING = 20
"""Levels of lists and objects; the tools need five, and every reader of a stored draft can follow so many."""


@dataclass(frozen=True, slots=True)
class Call:
    """One drafted or reference tool call."""

    name: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Draft:
    """Tool calls in order, and what is said to the customer."""

    calls: tuple[Call, ...]
    respond: str


@dataclass(frozen=True, slots=True)
class Ran:
    """A call and what it came to."""

    call: Call
    outcome: Outcome


def call_json(name: str, arguments: Mapping[str, Json]) -> str:
    """One call as it stands in the canonical draft."""
    return canonical_json({"arguments": arguments, "name": name})


def parse_draft(reply: str) -> str:
    """The canonical draft in a model's reply: fenced or bare, with text around it.

    `kwargs` is read as `arguments`, arguments in a JSON string are read, a bare list is a list of calls, and what
    is left out is empty. Values of the wrong type inside `arguments` are kept: the dry run names them.

    Raises:
        Unparsable: there is no JSON object with `calls` or `respond`, or a call has no name or no arguments object.
    """
    draft = _find(fenced(reply)) or _find(reply)
    if draft is None:
        raise Unparsable('the reply holds no complete JSON object with "calls" and "respond"')
    if isinstance(draft, list):
        draft = {"calls": draft}
    calls: Json = draft.get("calls") if draft.get("calls") is not None else []
    respond: Json = draft.get("respond") if draft.get("respond") is not None else ""
    if not isinstance(calls, list):
        raise Unparsable("`calls` is no list")
    if not isinstance(respond, str):
        raise Unparsable("`respond` is no text")
    listed = [_call(value, number) for number, value in enumerate(cast("list[Json]", calls), start=1)]
    if _deep(listed):
        raise Unparsable(f"the arguments are nested more than {_MAX_NESTING} deep")
    text = canonical_json({"calls": listed, "respond": respond.strip()})
    return text.encode("utf-8", "replace").decode()  # unpaired surrogates cannot be stored


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _find(text: str) -> Json:
    """The first JSON value in `text` that can be a draft, also inside another value; None if there is none."""
    starts = [match.start() for match in re.finditer(r"[{\[]", text)][:_MAX_STARTS]
    for start in starts:
        try:
            value, _ = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and ("calls" in value or "respond" in value):
            return value
        # A list inside an object that did not end is a piece of a draft that was cut off.
        if (
            "{" not in text[:start]
            and isinstance(value, list)
            and value
            and all(map(_is_call, cast("list[Json]", value)))
        ):
            return value
    return None


def _is_call(value: Json) -> bool:
    return isinstance(value, dict) and "name" in value


def _call(value: Json, number: int) -> Json:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"].strip():
        raise Unparsable(f"call {number} has no name")
    arguments: Json = value.get("arguments", value.get("kwargs"))
    if isinstance(arguments, str):
        try:
            arguments = _DECODER.decode(arguments)
        except (ValueError, RecursionError):
            raise Unparsable(f"the arguments of call {number} are no JSON object") from None
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise Unparsable(f"the arguments of call {number} are no JSON object")
    return {"arguments": arguments, "name": value["name"].strip()}


def _deep(value: Json) -> bool:
    """Whether more than `_MAX_NESTING` levels are in one another."""
    level: list[Json] = [value]
    for _ in range(_MAX_NESTING):
        inner: list[Json] = []
        for item in level:
            inner += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        if not inner:
            return False
        level = inner
    return True


@lru_cache(maxsize=4096)
def read_draft(artifact: str) -> Draft:
    """The draft in a canonical artifact.

    Raises:
        ValueError: the text was not made by `parse_draft`.
    """
    value: Json = json.loads(artifact)
    return Draft(tuple(Call(call["name"], call["arguments"]) for call in value["calls"]), value["respond"])


def play(shop: Shop, calls: Sequence[Call], *, ends_at_transfer: bool) -> tuple[Ran, ...]:
    """Run `calls` in order; a failed call changes nothing and the rest goes on.

    A conversation ends when the customer is handed to a human agent, so nothing after that runs in a draft
    (`ends_at_transfer=True`); reference actions are replayed whole, as upstream does.
    """
    ran: list[Ran] = []
    for call in calls:
        ran.append(Ran(call, run_tool(shop, call.name, call.arguments)))
        if ends_at_transfer and call.name == TRANSFER and ran[-1].outcome.ok:
            break
    return tuple(ran)
