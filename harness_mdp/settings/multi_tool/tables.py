"""The table tool: look up a cell, list rows, add up a column of the task's own small tables."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from harness_mdp.hashing import Json
from harness_mdp.settings.multi_tool.numbers import ToolError, number_text, read_number

__all__ = ["table_call"]

MAX_ROWS = 6
"""Rows that `filter` shows."""

_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|!=|==?|<|>|\bis\b)\s*(.+?)\s*", re.IGNORECASE)
_COMPARE: Final[Mapping[str, Callable[[object, object], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,  # pyright: ignore[reportAssignmentType]  (the two are of one type, see `_holds`)
    "<=": operator.le,  # pyright: ignore[reportAssignmentType]
    ">": operator.gt,  # pyright: ignore[reportAssignmentType]
    ">=": operator.ge,  # pyright: ignore[reportAssignmentType]
}


@dataclass(frozen=True, slots=True)
class _Condition:
    column: str
    sign: str
    value: str

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.value}"


def table_call(arguments: str, tables: Mapping[str, Json]) -> tuple[str, str]:
    """`lookup TABLE COLUMN where COLUMN = VALUE and ...` (or `sum`, `filter`, `count`) and its result.

    Args:
        arguments: the call.
        tables: name -> `{"columns": [...], "rows": [[...], ...]}`; cells are numbers or texts.

    Raises:
        ToolError: another form, an unknown table or column, or not exactly one row for `lookup`.
    """
    head, _, rest = re.sub(r"(?i)\s+where\s+", " where ", arguments.strip(), count=1).partition(" where ")
    words = [word for word in head.replace(",", " ").split() if word.lower() not in ("from", "in", "of")]
    operation = words[0].lower() if words else ""
    if operation not in _FORMS:
        raise ToolError(f"unknown operation {operation[:20]!r}; expected one of {', '.join(_FORMS)}")
    if len(words) != len(_FORMS[operation].split()) + 1:
        raise ToolError(f"{operation} takes {_FORMS[operation]} where COLUMN = VALUE")
    name = _one_of(words[1], list(tables), "table")
    columns: Sequence[str] = tables[name]["columns"]
    conditions = [_condition(text, columns) for text in re.split(r"(?i)\s+and\s+", rest)] if rest else []
    rows = [row for row in tables[name]["rows"] if all(_holds(row, columns, c) for c in conditions)]
    column = _one_of(words[2], columns, "column") if len(words) > 2 else ""
    target = f"{operation} {name}{f' {column}' if column else ''}"
    call = f"{target} where {' and '.join(map(str, conditions))}" if conditions else target
    return call, _result(operation, rows, columns, column)


_FORMS: Final[Mapping[str, str]] = {
    "lookup": "TABLE COLUMN",
    "sum": "TABLE COLUMN",
    "filter": "TABLE",
    "count": "TABLE",
}


def _result(operation: str, rows: Sequence[Sequence[Json]], columns: Sequence[str], column: str) -> str:
    if operation == "count":
        return str(len(rows))
    if not rows:
        raise ToolError("no row fits the conditions", valid=True)
    if operation == "filter":
        shown = ["; ".join(f"{c} {cell}" for c, cell in zip(columns, row, strict=True)) for row in rows[:MAX_ROWS]]
        more = f" | and {len(rows) - MAX_ROWS} more rows" if len(rows) > MAX_ROWS else ""
        return " | ".join(shown) + more
    cells = [str(row[columns.index(column)]) for row in rows]
    if operation == "lookup":
        if len(cells) > 1:
            raise ToolError(f"{len(cells)} rows fit the conditions; lookup needs one", valid=True)
        return cells[0]
    values = [read_number(cell) for cell in cells]
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        raise ToolError(f"column {column} holds texts; sum needs numbers")
    return number_text(sum(numbers, Fraction(0)))


def _one_of(word: str, names: Sequence[str], what: str) -> str:
    found = {name.lower(): name for name in names}.get(word.lower().strip("\"'`"))
    if found is None:
        raise ToolError(f"unknown {what} {word[:20]!r}; expected one of {', '.join(names) or 'none'}")
    return found


def _condition(text: str, columns: Sequence[str]) -> _Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ToolError(f"{text.strip()[:30]!r} is no condition COLUMN = VALUE")
    sign = "=" if match[2].lower() in ("==", "is") else match[2]
    return _Condition(_one_of(match[1], columns, "column"), sign, match[3].strip("\"'` ")[:60])


def _holds(row: Sequence[Json], columns: Sequence[str], condition: _Condition) -> bool:
    """Numbers compare as numbers, all else as text without regard to case (so ISO dates compare in time)."""
    cell = str(row[columns.index(condition.column)])
    left, right = read_number(cell), read_number(condition.value)
    if left is None or right is None:
        return _COMPARE[condition.sign](cell.lower(), condition.value.lower())
    return _COMPARE[condition.sign](left, right)
