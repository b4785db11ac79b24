"""From the executor's reply to a tool call, and from the call to its result.

A call is one line, `calculator: 12 * 7`; JSON such as `{"tool": "calculator", "args": {"expression": "12 * 7"}}`
and `calculator(12 * 7)` say the same. Its canonical spelling names it: the same call twice has the same `result_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from harness_mdp.hashing import Json, digest
from harness_mdp.settings.multi_tool.calculator import calculate
from harness_mdp.settings.multi_tool.dates import calendar_call
from harness_mdp.settings.multi_tool.json_calls import from_json
from harness_mdp.settings.multi_tool.numbers import ToolError
from harness_mdp.settings.multi_tool.objects import objects_in
from harness_mdp.settings.multi_tool.tables import table_call
from harness_mdp.settings.multi_tool.units import convert

__all__ = ["FORMS", "RESULT", "TOOLS", "Outcome", "call_tool", "result_id", "result_text"]

RESULT = "result-"
"""Prefix of the evidence id of a tool result."""

TOOLS: Final = ("calculator", "convert", "calendar", "table")

FORMS: Final = (
    "calculator: (12 + 3) * 1.2 (also ** % ceil floor round min max)\n"
    "convert: 12 mi to km\n"
    "calendar: weekday DATE, add_days DATE N, add_months DATE N, days_between DATE DATE (the first day does not "
    "count), add_business_days DATE N (the date itself does not count), business_days_between DATE DATE (both days "
    "count), add_minutes DATE HH:MM N; the two for business days (Mon to Fri) may end with except DATE DATE\n"
    "table: lookup TABLE COLUMN where COLUMN = VALUE and COLUMN < VALUE; or sum TABLE COLUMN where ..., "
    "filter TABLE where ..., count TABLE where ..."
)
"""What the executor is told of the tools, one line each."""

MAX_REPLY = 20_000
_WORDS: Final[Mapping[str, str]] = {
    "calc": "calculator", "calculate": "calculator", "math": "calculator", "arithmetic": "calculator",
    "unit": "convert", "units": "convert", "converter": "convert", "conversion": "convert",
    "unit_converter": "convert", "unit_conversion": "convert", "date": "calendar", "dates": "calendar",
    "tables": "table", **{tool: tool for tool in TOOLS},
}  # fmt: skip
"""Tool by the words that models have for it."""
_LINE = re.compile(
    r"^[^\w\n]*(?:(?:tool|call|action)\W+)?"
    rf"(?P<tool>{'|'.join(sorted(_WORDS, key=len, reverse=True))})(?:[*_`\s]*:|\s*(?P<open>\())(?P<arguments>.*)$",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reply to a tool prompt came to."""

    tool: str
    """`none` when the reply names no tool."""
    text: str
    """`calculator: 12 * 7 = 84`, or what went wrong."""
    valid: bool
    ok: bool
    call: str = ""
    """Canonical spelling of a call that gave a result; else empty."""


def result_id(call: str) -> str:
    """Evidence id of the result of `call`: it tells calls apart and says nothing of whether one is needed."""
    return f"{RESULT}{digest([call], 6)}"


def result_text(text: str) -> str:
    """The result in `calculator: 12 * 7 = 84`."""
    return text.rpartition(" = ")[2]


def call_tool(reply: str, tables: Mapping[str, Json]) -> Outcome:
    """Read the call in `reply` and run it; whatever is wrong is said in the outcome, never raised."""
    found = next(_calls(reply[:MAX_REPLY]), None)
    if found is None:
        return Outcome("none", f"no call: the reply names none of {', '.join(TOOLS)}", valid=False, ok=False)
    tool, arguments = found
    try:
        spelled, result = _run(tool, arguments, tables)
    except ToolError as problem:
        said = " ".join(arguments.split())[:60]
        return Outcome(tool, f"{tool} gave nothing for {said!r}: {problem}", valid=problem.valid, ok=False)
    call = f"{tool}: {spelled}"
    return Outcome(tool, f"{call} = {result}", valid=True, ok=True, call=call)


def _run(tool: str, arguments: str, tables: Mapping[str, Json]) -> tuple[str, str]:
    if tool == "table":
        return table_call(arguments, tables)
    run = {"calculator": calculate, "convert": convert, "calendar": calendar_call}[tool]
    return run(arguments)


def _calls(reply: str) -> Iterator[tuple[str, str]]:
    """Tool and arguments of every call in the reply, JSON first."""
    for value in objects_in(reply):
        call = from_json(value, _WORDS)
        if call is not None:
            yield call[0], _without_result(*call)
    for match in _LINE.finditer(reply):
        tool, arguments = _WORDS[match["tool"].lower()], match["arguments"].lstrip("* ")
        if match[0].lstrip().startswith("**"):  # the whole line in bold
            arguments = arguments.rstrip().removesuffix("**")
        arguments = arguments.strip(" \t`\"'")
        if match["open"]:
            arguments = arguments.rstrip(" .;`*").removesuffix(")")
        yield tool, _without_result(tool, arguments)


def _without_result(tool: str, arguments: str) -> str:
    """Models like to add what they expect: `12 * 7 = 84`."""
    if tool in ("calculator", "convert"):
        arguments = re.split(r"\s*=|\s+->", arguments, maxsplit=1)[0]
    return arguments.strip(" \t\r\n\"'`;")
