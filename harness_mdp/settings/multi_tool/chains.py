"""How a task is made up: a chain of tool calls, each made for real, and the quantities that they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from typing import Final

import numpy as np

from harness_mdp.hashing import Json
from harness_mdp.settings.multi_tool.calls import call_tool, result_id, result_text
from harness_mdp.settings.multi_tool.draft import piece
from harness_mdp.settings.multi_tool.numbers import close, number_text, read_number

__all__ = [
    "DETAILS",
    "FROM_CALENDAR",
    "FROM_TABLE",
    "TABLES",
    "TOOL_FORMS",
    "Chain",
    "Plan",
    "Quantity",
    "same_value",
    "table",
    "written",
]

DETAILS, TOOL_FORMS, TABLES = "details", "tools", "tables"
"""Ids of the evidence that `observe` brings, in this order."""

FROM_TABLE: Final = (DETAILS, TABLES)
"""What says how a table has to be read."""
FROM_CALENDAR: Final = (DETAILS, TOOL_FORMS)
"""What says how days have to be counted."""

_ASIDES: Final = (
    "A year ago {n} letters came.",
    "The office has {n} rooms.",
    "{n} people were asked before.",
    "Invoice number {n} is still open.",
    "The plan was changed {n} times.",
    "Someone guessed {n}.",
)
"""Sentences with a number that has nothing to do with the task."""

MAX_WRONG = 3


@dataclass(frozen=True, slots=True)
class Quantity:
    """A named figure of the answer, with the values it has when something went wrong on the way."""

    name: str
    kind: str
    """`number`, `date` or `datetime`."""
    value: str
    """As the tool gave it, or as the statement says it."""
    wrong: tuple[str, ...]
    """Values that differ from `value` beyond all tolerance; at least one."""
    fault: str
    """How a reviewer would say what may be wrong, in a few words."""
    helped_by: tuple[str, ...]
    call: str = ""
    """The tool call that gives it; empty: it stands in the statement."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a task is made from. The last quantity is the answer."""

    title: str
    details: str
    tables: Mapping[str, Json]
    quantities: tuple[Quantity, ...]
    calls: tuple[str, ...]
    wrong_calls: tuple[str, ...]


def table(columns: Sequence[str], rows: Sequence[Sequence[Json]], note: str = "") -> dict[str, Json]:
    """A small table as tasks hold it; `note` says how to read it."""
    return {"columns": list(columns), "rows": [list(row) for row in rows], "note": note}


@dataclass
class Chain:
    """Makes calls on the task's tables, and remembers those that are part of the solution."""

    rng: np.random.Generator
    tables: dict[str, Json] = field(default_factory=dict[str, Json])
    quantities: list[Quantity] = field(default_factory=list[Quantity])
    calls: list[str] = field(default_factory=list[str])
    wrong_calls: list[str] = field(default_factory=list[str])

    def given(self, name: str, value: str, wrong: Sequence[str], fault: str, kind: str = "number") -> str:
        """A quantity that stands in the statement."""
        self.quantities.append(Quantity(name, kind, value, _distinct(kind, value, wrong), fault, (DETAILS,)))
        return value

    def step(
        self,
        name: str,
        call: str,
        *,
        wrong: Sequence[str],
        fault: str,
        kind: str = "number",
        needs: Sequence[str] = (DETAILS,),
    ) -> str:
        """A quantity that `call` gives; its value.

        Args:
            name: of the quantity.
            call: in the line form; it has to work.
            wrong: calls that a slip would make instead, or plain values.
            fault: what may be wrong, for a reviewer.
            kind: of the value.
            needs: evidence that says how to make the call, beside its result.
        """
        spelled, value = self._run(call)
        values: list[str] = []
        for slip in wrong:
            if ": " not in slip:
                values.append(slip)
                continue
            wrong_call, wrong_value = self._run(slip)
            values.append(wrong_value)
            if not same_value(kind, wrong_value, value):
                self.wrong_calls.append(wrong_call)
        self.calls.append(spelled)
        helped_by = (*needs, result_id(spelled))
        self.quantities.append(Quantity(name, kind, value, _distinct(kind, value, values), fault, helped_by, spelled))
        return value

    def plan(self, title: str, details: str, broken_call: str) -> Plan:
        """The plan; `broken_call` is one that a hasty executor makes and that gives nothing."""
        calls = tuple(self.calls)
        # A call counts as made when its text stands among the results, so none may begin like another.
        wrong = [c for c in dict.fromkeys(self.wrong_calls) if not any(c.startswith(right) for right in calls)]
        return Plan(title, details, self.tables, tuple(self.quantities), calls, (*wrong[:4], broken_call))

    def _run(self, call: str) -> tuple[str, str]:
        outcome = call_tool(call, self.tables)
        if not outcome.ok:
            raise ValueError(f"a task is made up with a call that fails: {outcome.text}")
        return outcome.call, result_text(outcome.text)

    # What templates draw from.

    def whole(self, low: int, high: int, step: int = 1) -> int:
        """A whole number from `low` to `high`, both included, in steps."""
        return low + step * int(self.rng.integers((high - low) // step + 1))

    def decimal(self, low: float, high: float, decimals: int = 2) -> str:
        """A number with that many decimals, as text; never a whole one."""
        scale = 10**decimals
        units = int(self.rng.integers(round(low * scale), round(high * scale)))
        return number_text(Fraction(units + (units % scale == 0), scale))

    def pick(self, options: Sequence[str], n: int) -> list[str]:
        """`n` different ones, in random order."""
        return [options[int(i)] for i in self.rng.permutation(len(options))[:n]]

    def asides(self, difficulty: str) -> str:
        """Two sentences beside the point in a hard task, one otherwise."""
        return " ".join(
            text.format(n=self.whole(3, 60)) for text in self.pick(_ASIDES, 2 if difficulty == "hard" else 1)
        )

    def day(self) -> date:
        """A day of 2026 or 2027."""
        return date(2026, 1, 1) + timedelta(days=self.whole(0, 729))


def same_value(kind: str, value: str, reference: str) -> bool:
    """Whether no tolerance tells the two apart, seen from either side."""
    if kind != "number":
        return value == reference
    left, right = read_number(value), read_number(reference)
    return left is not None and right is not None and (close(left, right) or close(right, left))


def _distinct(kind: str, value: str, wrong: Sequence[str]) -> tuple[str, ...]:
    """At most three wrong values that no tolerance takes for the right one; where slips agree with it, a cruder one."""
    kept: list[str] = []
    for other in (*wrong, *_crude(kind, value)):
        shown = _rounded(kind, other)
        if not same_value(kind, shown, value) and shown not in kept:
            kept.append(shown)
        if len(kept) == MAX_WRONG:
            break
    return tuple(kept[: max(len(wrong), 1)])


def _crude(kind: str, value: str) -> list[str]:
    if kind == "number":
        number = read_number(value) or Fraction(0)
        return [number_text(number * 10), number_text(number + 1)]
    day = date.fromisoformat(value[:10]) + timedelta(days=1)
    return [f"{day}{value[10:]}"]


def _rounded(kind: str, value: str) -> str:
    number = read_number(value)
    return number_text(number, 2) if kind == "number" and number is not None else value


def written(kind: str, value: str) -> str:
    """A value as a draft writes it in JSON: numbers to two decimals."""
    number = read_number(value)
    if kind == "number" and number is not None:
        return piece(Fraction(number_text(number, 2)))
    return piece(value)
