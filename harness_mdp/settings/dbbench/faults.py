"""Where SQL goes wrong: places in a statement and the concrete wrong pieces that could stand there.

Only proposals: `answers` runs each and drops those that change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness_mdp.settings.dbbench.evidence import SAMPLE, SCHEMA, VALUES
from harness_mdp.settings.dbbench.sql_dialect import Token, identifier, lex, string_literal
from harness_mdp.settings.dbbench.sql_worker import Table

__all__ = ["Place", "places", "wrong_values"]

_CLAUSES = frozenset(
    ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "SET", "VALUES", "INTO", "UPDATE")
)
_OPERATORS = {"=": ("!=",), "<": ("<=", ">"), ">": (">=", "<"), "<=": ("<", ">="), ">=": (">", "<="), "!=": ("=",)}
_WORDS = {
    "MIN": "MAX",
    "MAX": "MIN",
    "SUM": "COUNT",
    "AVG": "SUM",
    "ASC": "DESC",
    "DESC": "ASC",
    "AND": "OR",
    "OR": "AND",
}


@dataclass(frozen=True)
class Place:
    """Tokens `start:end` of a statement and what could stand there instead."""

    start: int
    end: int
    category: str
    """`condition value`, `written value`, `column`, `operator`, `word`, `cast` or `table`."""
    wrong: tuple[str, ...]
    problem: str
    helped_by: tuple[str, ...] = ()


def places(sql: str, table: Table, rng: np.random.Generator) -> list[Place]:
    """Places where `sql` could be wrong, in order; some overlap."""
    return list(_Reader(lex(sql), table, rng).read())


def wrong_values(value: str, column: str | None, table: Table, rng: np.random.Generator) -> tuple[str, ...]:
    """Up to three values that a model could write for `value`: a slip, a neighbour's value, another row's."""
    found = [_slip(value)]
    if column is not None:
        index = table.columns.index(column)
        others = sorted({row[index] for row in table.rows if row[index]} - {value, None}, key=str)
        picks = rng.permutation(len(others))[:2]
        found.extend(str(others[int(pick)]) for pick in picks)
    return tuple(dict.fromkeys(each for each in found if each != value))


def _slip(value: str) -> str:
    """A near miss: the last digit off by one, else the last word left out, else the last letter."""
    digits = list(re.finditer(r"\d", value))
    if digits:
        last = digits[-1]
        return f"{value[: last.start()]}{(int(last[0]) + 1) % 10}{value[last.end() :]}"
    words = value.split()
    return " ".join(words[:-1]) if len(words) > 1 else value[:-1]


class _Reader:
    """Walks the tokens once and knows which clause and which column it is in."""

    def __init__(self, tokens: tuple[Token, ...], table: Table, rng: np.random.Generator) -> None:
        self._tokens, self._table, self._rng = tokens, table, rng
        self._clause = ""
        self._column: str | None = None
        self._insert_columns: list[str] = []
        self._position = 0
        self._by_name = {name.casefold(): name for name in table.columns}

    def read(self) -> Iterator[Place]:
        for index, token in enumerate(self._tokens):
            if token.kind == "space":
                continue
            if token.is_keyword and token.upper in _CLAUSES:
                self._clause, self._column, self._position = token.upper, None, 0
            elif token.is_keyword and token.upper == "CAST":
                yield from self._cast(index)
            elif token.kind == "op":
                yield from self._operator(index, token)
            elif token.is_keyword and token.upper in _WORDS:
                yield from self._word(index, token)
            elif token.kind in ("string", "dquoted", "number") and not self._is_name(token):
                yield from self._literal(index, token)
            else:
                yield from self._name(index, token)

    def _known(self, token: Token) -> str | None:
        """The table's own spelling of a column that `token` names."""
        return None if token.kind in ("string", "number") else self._by_name.get(token.value.casefold())

    def _is_name(self, token: Token) -> bool:
        """A text in double quotes may name the table or a column."""
        names = (*self._by_name, self._table.name.casefold())
        return token.kind == "dquoted" and token.value.casefold() in names

    def _name(self, index: int, token: Token) -> Iterator[Place]:
        column = self._known(token)
        if token.text == "," and self._clause == "VALUES":
            self._position += 1
        elif column is not None:
            self._column = column
            if self._clause == "INTO":
                self._insert_columns.append(column)
                return
            others = [name for name in self._table.columns if name != column]
            picks = [others[int(pick)] for pick in self._rng.permutation(len(others))[:2]]
            wrong = tuple(dict.fromkeys([*map(identifier, picks), _misspelt(column)]))
            problem = f"the {self._where()} may use the wrong column instead of {_name_in_words(column)}"
            yield Place(index, index + 1, "column", wrong, problem, (SCHEMA,))
        elif token.kind in ("word", "ident", "dquoted") and token.value.casefold() == self._table.name.casefold():
            wrong = (_misspelt(self._table.name),)
            yield Place(index, index + 1, "table", wrong, "the table's name may be misspelt", (SCHEMA,))

    def _literal(self, index: int, token: Token) -> Iterator[Place]:
        if self._clause == "LIMIT":
            yield Place(index, index + 1, "word", (f"{token.value}0",), "the limit may be wrong")
            return
        column = self._column_of_literal()
        wrong = wrong_values(token.value, column, self._table, self._rng)
        pieces = tuple(map(string_literal, wrong))
        subject = _name_in_words(column) if column else "an expression"
        if self._clause in ("VALUES", "SET"):
            yield Place(index, index + 1, "written value", pieces, f"the value written to {subject} may be wrong")
        else:
            if token.kind == "number":
                pieces = tuple(piece for piece, value in zip(pieces, wrong, strict=True) if _is_number(value))
                pieces = tuple(piece.strip("'") for piece in pieces)
            problem = f"the condition on {subject} may compare with the wrong value"
            yield Place(index, index + 1, "condition value", pieces, problem, (SAMPLE, VALUES))

    def _column_of_literal(self) -> str | None:
        if self._clause != "VALUES":
            return self._column
        columns = self._insert_columns or list(self._table.columns)
        return columns[self._position] if self._position < len(columns) else None

    def _operator(self, index: int, token: Token) -> Iterator[Place]:
        wrong = _OPERATORS.get(token.text, ())
        if wrong and self._clause in ("WHERE", "HAVING"):
            subject = _name_in_words(self._column) if self._column else "an expression"
            yield Place(index, index + 1, "operator", wrong, f"the comparison of {subject} may be the wrong one")

    def _word(self, index: int, token: Token) -> Iterator[Place]:
        problem = f"{token.upper} may be wrong in the {self._where()}"
        yield Place(index, index + 1, "word", (_WORDS[token.upper],), problem)

    def _cast(self, index: int) -> Iterator[Place]:
        """`CAST(column AS type)`: left out, text is compared as text."""
        solid = [i for i in range(index, len(self._tokens)) if self._tokens[i].kind != "space"][:6]
        inside = [self._tokens[i] for i in solid]
        if len(inside) == 6 and inside[1].text == "(" and inside[3].upper == "AS" and inside[5].text == ")":
            column = self._known(inside[2])
            if column is not None:
                wrong = (identifier(column),)
                problem = f"{_name_in_words(column)} holds text and may need a CAST in the {self._where()}"
                yield Place(index, solid[5] + 1, "cast", wrong, problem, (SAMPLE,))

    def _where(self) -> str:
        return {
            "SELECT": "result",
            "WHERE": "condition",
            "ORDER": "order",
            "GROUP": "grouping",
            "HAVING": "condition on groups",
            "SET": "assignment",
        }.get(self._clause, "statement")


def _misspelt(name: str) -> str:
    """A name as it is often written by mistake: blanks as underscores, or one letter short."""
    return re.sub(r"\W+", "_", name).strip("_") if re.search(r"\W", name) else identifier(name[:-1] or f"{name}_")


def _name_in_words(name: str) -> str:
    return " ".join(name.split())[:60]


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None
