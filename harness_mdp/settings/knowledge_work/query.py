"""The table-query language of `knowledge_work`: what a model writes to have a figure computed.

    sum(T1.amount where project = Alder and state != planned)     also mean, min, max
    count(T1 where project = Alder)
    percent(diff(sum(T1.amount), sum(T2.budget)), sum(T2.budget))     also ratio, product; 100 * a / b for percent
    rows(T1 where state = open)                                   the first rows that match

Conditions are `column op value` with = != < <= > >=, joined by `and`; text compares without regard to case. The
language has no names but those of tables and columns and no way to run anything, so any text of a model is safe.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness_mdp.settings.knowledge_work.sources import Cell, Table

__all__ = ["Query", "QueryError", "evaluate", "find_query", "parse_query", "tables_in"]

MAX_CHARS = 400
MAX_DEPTH = 6
MAX_ROWS = 6
"""Rows that `rows(...)` shows."""

_AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": lambda values: float(sum(values)),
    "mean": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
}
_COMBINE: Mapping[str, Callable[[float, float], float]] = {
    "diff": lambda a, b: a - b,
    "ratio": lambda a, b: a / b,
    "percent": lambda a, b: 100.0 * a / b,
    "product": lambda a, b: a * b,
}
_ALIASES: Mapping[str, str] = {"avg": "mean", "average": "mean", "total": "sum", "difference": "diff"}
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_FUNCTIONS = (*_AGGREGATES, *_COMBINE, *_ALIASES, "count", "rows")
_CALL = re.compile(rf"\b(?:{'|'.join(_FUNCTIONS)})\s*\(", re.IGNORECASE)
_TOKEN = re.compile(r"\s*(?:('[^'\]\n]*'|\"[^\"\]\n]*\")|(-?\d+(?:\.\d+)?)|([A-Za-z_][\w-]*)|(<=|>=|!=|[=<>().,]))")


class QueryError(Exception):
    """A query that cannot be read or run; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Condition:
    """`column op value`."""

    column: str
    op: str
    value: str

    def __str__(self) -> str:
        bare = re.fullmatch(r"-?\d+(?:\.\d+)?|[A-Za-z_][\w-]*(?: [A-Za-z_][\w-]*)*", self.value)
        safe = bare and not re.search(r"\band\b", self.value, re.IGNORECASE)
        quote = '"' if "'" in self.value else "'"
        return f"{self.column} {self.op} {self.value if safe else quote + self.value + quote}"

    def holds(self, cell: Cell) -> bool:
        """Numbers compare as numbers where both sides are; else as text, by (in)equality only."""
        left, right = _number(cell), _number(self.value)
        if self.op in ("=", "!="):
            if left is not None and right is not None:
                return (left == right) is (self.op == "=")
            return (str(cell).casefold() == self.value.casefold()) is (self.op == "=")
        return left is not None and right is not None and _COMPARE[self.op](left, right)


@dataclass(frozen=True, slots=True)
class Select:
    """An aggregate over the rows that meet all conditions; `column` is empty for `count` and `rows`."""

    function: str
    table: str
    column: str
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        what = f"{self.table}.{self.column}" if self.column else self.table
        where = " where " + " and ".join(map(str, self.conditions)) if self.conditions else ""
        return f"{self.function}({what}{where})"


@dataclass(frozen=True, slots=True)
class Combined:
    """Arithmetic on two figures."""

    function: str
    left: Query
    right: Query

    def __str__(self) -> str:
        return f"{self.function}({self.left}, {self.right})"


@dataclass(frozen=True, slots=True)
class Number:
    """A number as an operand, as it was written."""

    text: str

    def __str__(self) -> str:
        return self.text


Query = Select | Combined | Number
"""`str(query)` is its canonical text: equal queries have equal text, which parses to the same query."""


def find_query(reply: str, tables: Mapping[str, Table]) -> Query:
    """The first query in a model's reply that can be read, whatever stands around it; no part of one that cannot.

    Raises:
        QueryError: there is none; the message is that of the first attempt.
    """
    problem: QueryError | None = None
    end = 0
    for call in _CALL.finditer(reply):
        if call.start() < end:
            continue
        end = _closing(reply, call.end())
        try:
            return parse_query(reply[call.start() : end], tables)
        except QueryError as error:
            problem = problem or error
    raise problem or QueryError("the reply holds no query")


def parse_query(text: str, tables: Mapping[str, Table]) -> Query:
    """The query in `text`, with table and column names as the tables spell them.

    Raises:
        QueryError: it is malformed, too long, or names what does not exist.
    """
    if len(text) > MAX_CHARS:
        raise QueryError(f"the query holds {len(text)} characters; at most {MAX_CHARS} are read")
    parser = _Parser(_tokens(text), tables)
    query = parser.query(0)
    if parser.left:
        raise QueryError(f"{parser.left[0]!r} follows the end of the query")
    return query


def evaluate(query: Query, tables: Mapping[str, Table]) -> float | str:
    """The figure, or for `rows` the text of the rows found.

    Raises:
        QueryError: nothing to aggregate, a column that is no number, or a division by zero.
    """
    if isinstance(query, Select) and query.function == "rows":
        table = tables[query.table]
        rows = _matching(query, table)
        shown = "\n".join(" | ".join(map(str, row)) for row in rows[:MAX_ROWS])
        return f"{len(rows)} rows\n{shown}" if rows else "0 rows"
    figure = _figure(query, tables)
    if not math.isfinite(figure):
        raise QueryError(f"{query} is too large")
    return figure


def tables_in(query: Query) -> frozenset[str]:
    """Ids of the tables that the query reads."""
    match query:
        case Select():
            return frozenset((query.table,))
        case Combined():
            return tables_in(query.left) | tables_in(query.right)
        case Number():
            return frozenset()


def _figure(query: Query, tables: Mapping[str, Table]) -> float:
    match query:
        case Number():
            return float(query.text)
        case Combined():
            left, right = _figure(query.left, tables), _figure(query.right, tables)
            if query.function in ("ratio", "percent") and right == 0.0:
                raise QueryError(f"{query.right} is 0, and nothing can be divided by it")
            return _COMBINE[query.function](left, right)
        case Select():
            return _aggregate(query, tables[query.table])


def _aggregate(query: Select, table: Table) -> float:
    rows = _matching(query, table)
    if query.function == "count":
        return float(len(rows))
    place = table.columns.index(query.column)
    values = [_number(row[place]) for row in rows]
    if any(value is None for value in values):
        raise QueryError(f"column {query.column} of {table.id} holds text, not numbers")
    if not values and query.function != "sum":
        raise QueryError(f"{query} finds no row")
    return _AGGREGATES[query.function]([value for value in values if value is not None])


def _matching(query: Select, table: Table) -> list[tuple[Cell, ...]]:
    places = [(table.columns.index(c.column), c) for c in query.conditions]
    return [row for row in table.rows if all(condition.holds(row[place]) for place, condition in places)]


class _Parser:
    """Recursive descent over the tokens that are left."""

    def __init__(self, tokens: list[str], tables: Mapping[str, Table]) -> None:
        self.left = tokens
        self._tables = {name.casefold(): table for name, table in tables.items()}

    def query(self, depth: int) -> Query:
        if depth > MAX_DEPTH:
            raise QueryError(f"the query is nested more than {MAX_DEPTH} deep")
        word = self._take()
        if _number(word) is not None:
            return Number(word)
        function = _ALIASES.get(word.lower(), word.lower())
        if function not in _FUNCTIONS:
            raise QueryError(
                f"{word!r} is no function; there are {', '.join((*_AGGREGATES, *_COMBINE, 'count, rows'))}"
            )
        if function == "rows" and depth:
            raise QueryError("rows(...) is no figure to calculate with")
        self._expect("(")
        query = self._combined(function, depth) if function in _COMBINE else self._select(function)
        self._expect(")")
        return query

    def _combined(self, function: str, depth: int) -> Combined:
        left = self.query(depth + 1)
        self._expect(",")
        return Combined(function, left, self.query(depth + 1))

    def _select(self, function: str) -> Select:
        name = self._take()
        table = self._tables.get(name.casefold())
        if table is None:
            known = ", ".join(t.id for t in self._tables.values())
            raise QueryError(f"there is no table {name!r}; there are {known}")
        column = ""
        if function in _AGGREGATES:
            self._expect(".")
            column = self._column(table)
        conditions: list[Condition] = []
        if self.left and self.left[0].lower() == "where":
            while not conditions or (self.left and self.left[0].lower() == "and"):
                self._take()
                conditions.append(self._condition(table))
        return Select(function, table.id, column, tuple(conditions))

    def _condition(self, table: Table) -> Condition:
        column, op = self._column(table), self._take()
        if op not in ("=", "!=", *_COMPARE):
            raise QueryError(f"{op!r} is no comparison; there are = != < <= > >=")
        value: list[str] = []
        while self.left and self.left[0] not in (")", ",") and not (value and self.left[0].lower() == "and"):
            value.append(self._take().strip("'\""))
        if not value:
            raise QueryError(f"the condition on {column} has no value")
        joined = " ".join(value)
        if "'" in joined and '"' in joined:
            raise QueryError(f"the value for {column} holds both kinds of quotes")
        return Condition(column, op, joined)

    def _column(self, table: Table) -> str:
        name = self._take()
        for column in table.columns:
            if column.casefold() == name.casefold():
                return column
        raise QueryError(f"{table.id} has no column {name!r}; it has {', '.join(table.columns)}")

    def _take(self) -> str:
        if not self.left:
            raise QueryError("the query ends too early")
        return self.left.pop(0)

    def _expect(self, token: str) -> None:
        found = self._take()
        if found != token:
            raise QueryError(f"expected {token!r}, found {found!r}")


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    place = 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise QueryError(f"{text[place:].strip()[:20]!r} cannot be read")
        tokens.append(match[0].strip())
        place = match.end()
    return tokens


def _closing(text: str, start: int) -> int:
    """End of the call whose bracket opened just before `start`; the end of the text when it is not closed."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def _number(value: Cell) -> float | None:
    if isinstance(value, str):
        return float(value) if re.fullmatch(r"-?\d+(?:\.\d+)?", value) and len(value) < 30 else None
    return float(value)
