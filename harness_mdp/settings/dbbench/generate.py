"""Generated DB-Bench tasks, in the schema of the upstream files, for use without them.

A task is drawn as conditions on a random table; question, SQL and answer are three readings of the same
conditions, so they agree by construction: the answer is computed here in Python, never by running the SQL.
"""

# ruff: noqa: S608  (SQL text is what these tasks are made of; nothing here runs it)
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from harness_mdp.hashing import Json, canonical_json, generator
from harness_mdp.settings.dbbench.scoring import table_md5
from harness_mdp.settings.dbbench.sql_dialect import identifier as quoted
from harness_mdp.settings.dbbench.sql_dialect import string_literal as text
from harness_mdp.settings.dbbench.tables import Made, choose, make_table
from harness_mdp.settings.tasks import difficulties

__all__ = ["TEMPLATES", "generate"]

Cells = dict[str, str]
Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Draft:
    """One task in the making."""

    question: str
    sql: str
    type: str
    label: tuple[str, ...] = ()
    after: Rows | None = None
    """Rows after INSERT, UPDATE or DELETE."""


@dataclass(frozen=True)
class Condition:
    """`column` equals a text, or as a number is greater or less than one."""

    column: str
    operator: str
    value: str

    @property
    def words(self) -> str:
        """As a question says it."""
        how = {"=": "is", ">": "is greater than", "<": "is less than"}[self.operator]
        return f"{self.column} {how} {self.value}"

    @property
    def sql(self) -> str:
        """As a WHERE clause says it."""
        if self.operator == "=":
            return f"{quoted(self.column)} = {text(self.value)}"
        return f"{_number(self.column)} {self.operator} {self.value}"

    def holds(self, row: Cells) -> bool:
        """Whether `row` meets it."""
        cell = row[self.column]
        if self.operator == "=":
            return cell == self.value
        return int(cell) > int(self.value) if self.operator == ">" else int(cell) < int(self.value)


@dataclass(frozen=True)
class Bench:
    """A table and the draws from it."""

    rng: np.random.Generator
    made: Made

    @property
    def rows(self) -> list[Cells]:
        return [dict(zip(self.made.columns, row, strict=True)) for row in self.made.rows]

    @property
    def table(self) -> str:
        return quoted(self.made.domain.table)

    @property
    def key(self) -> str:
        return self.made.domain.key

    @property
    def noun(self) -> str:
        return self.made.domain.noun

    def category(self) -> str:
        return choose(self.rng, [name for name, _ in self.made.domain.categories])

    def number(self) -> str:
        return choose(self.rng, self.made.columns[1 + len(self.made.domain.categories) :])

    def equal(self, column: str) -> Condition:
        return Condition(column, "=", choose(self.rng, self.made.column(column)))

    def compare(self, column: str) -> Condition:
        """A threshold taken from the column, where an off-by-one operator shows."""
        return Condition(column, choose(self.rng, "<>"), choose(self.rng, self.made.column(column)))

    def where(self, conditions: Iterable[Condition]) -> list[Cells]:
        """Rows that meet all of `conditions`."""
        wanted = list(conditions)
        return [row for row in self.rows if all(condition.holds(row) for condition in wanted)]

    def new_value(self, column: str) -> str:
        """A value for `column`: another category, a number like the others plus some."""
        for name, values in self.made.domain.categories:
            if name == column:
                return choose(self.rng, values)
        return str(int(choose(self.rng, self.made.column(column))) + int(self.rng.integers(1, 10)))


def _number(column: str) -> str:
    return f"CAST({quoted(column)} AS SIGNED)"


def _both(conditions: Iterable[Condition]) -> tuple[str, str]:
    """Words and SQL of conditions that must all hold."""
    wanted = list(conditions)
    return " and ".join(each.words for each in wanted), " AND ".join(each.sql for each in wanted)


Maker = Callable[[Bench], Draft | None]
"""One draft, or None when the draw makes no good question (no match, a tie, everything matches)."""


def _lookup(b: Bench) -> Draft | None:
    condition = b.equal(b.key)
    column = choose(b.rng, b.made.columns[1:])
    label = tuple(row[column] for row in b.where([condition]))
    question = f"What is the {column} of the {b.noun} whose {condition.words}?"
    return Draft(question, f"SELECT {quoted(column)} FROM {b.table} WHERE {condition.sql}", "other", label)


def _lookup_two(b: Bench) -> Draft | None:
    conditions = [b.equal(b.category()), b.compare(b.number())]
    found = b.where(conditions)
    words, sql = _both(conditions)
    if not 1 <= len(found) <= 3:
        return None
    question = f"List the {b.key} of every {b.noun} whose {words}."
    label = tuple(row[b.key] for row in found)
    return Draft(question, f"SELECT {quoted(b.key)} FROM {b.table} WHERE {sql}", "other", label)


def _count(b: Bench) -> Draft | None:
    condition = b.equal(b.category())
    label = (str(len(b.where([condition]))),)
    question = f"How many {b.noun}s are there whose {condition.words}?"
    return Draft(question, f"SELECT COUNT(*) FROM {b.table} WHERE {condition.sql}", "counting", label)


def _count_two(b: Bench) -> Draft | None:
    conditions = [b.equal(b.category()), b.compare(b.number())]
    words, sql = _both(conditions)
    n = len(b.where(conditions))
    question = f"How many {b.noun}s are there whose {words}?"
    return Draft(question, f"SELECT COUNT(*) FROM {b.table} WHERE {sql}", "counting", (str(n),)) if n else None


def _compare(b: Bench) -> Draft | None:
    condition = b.compare(b.number())
    found = b.where([condition])
    if not 1 <= len(found) <= 5:
        return None
    question = f"Which {b.noun}s have a {condition.words.replace(' is ', ' that is ', 1)}? List the {b.key}."
    label = tuple(row[b.key] for row in found)
    return Draft(question, f"SELECT {quoted(b.key)} FROM {b.table} WHERE {condition.sql}", "comparison", label)


def _rank(b: Bench) -> Draft | None:
    condition, column = b.equal(b.category()), b.number()
    found = b.where([condition])
    highest = bool(b.rng.integers(2))
    best = (max if highest else min)(int(row[column]) for row in found)
    winners = tuple(row[b.key] for row in found if int(row[column]) == best)
    if len(found) < 2 or len(winners) > 1:
        return None
    question = (
        f"Which {b.key} has the {'highest' if highest else 'lowest'} {column} among {b.noun}s whose {condition.words}?"
    )
    order = f"ORDER BY {_number(column)} {'DESC' if highest else 'ASC'} LIMIT 1"
    sql = f"SELECT {quoted(b.key)} FROM {b.table} WHERE {condition.sql} {order}"
    return Draft(question, sql, "ranking", winners)


_AGGREGATES: dict[str, str] = {"SUM": "total", "AVG": "average", "MIN": "lowest", "MAX": "highest"}


def _aggregate(b: Bench, conditions: list[Condition]) -> Draft | None:
    function, column = choose(b.rng, list(_AGGREGATES)), b.number()
    values = [int(row[column]) for row in b.where(conditions)]
    if len(values) < 2 or len(set(values)) < 2:
        return None
    words, sql = _both(conditions)
    total = {"SUM": sum(values), "AVG": Fraction(sum(values), len(values)), "MIN": min(values), "MAX": max(values)}
    exact = total[function]
    label = (str(exact) if isinstance(exact, int) else repr(float(exact)),)
    question = f"What is the {_AGGREGATES[function]} {column} of the {b.noun}s whose {words}?"
    query = f"SELECT {function}({_number(column)}) FROM {b.table} WHERE {sql}"
    return Draft(question, query, f"aggregation-{function}", label)


def _aggregate_one(b: Bench) -> Draft | None:
    return _aggregate(b, [b.equal(b.category())])


def _aggregate_two(b: Bench) -> Draft | None:
    return _aggregate(b, [b.equal(b.category()), b.compare(b.number())])


def _rank_groups(b: Bench) -> Draft | None:
    group, column = b.category(), b.number()
    totals: dict[str, int] = {}
    for row in b.rows:
        totals[row[group]] = totals.get(row[group], 0) + int(row[column])
    best = max(totals.values())
    winners = tuple(name for name, total in totals.items() if total == best)
    if len(totals) < 2 or len(winners) > 1:
        return None
    question = f"Which {group} has the highest total {column} over all its {b.noun}s?"
    grouping = f"GROUP BY {quoted(group)} ORDER BY SUM({_number(column)}) DESC LIMIT 1"
    return Draft(question, f"SELECT {quoted(group)} FROM {b.table} {grouping}", "ranking", winners)


def _above_average(b: Bench) -> Draft | None:
    column = b.number()
    values = [int(row[column]) for row in b.rows]
    n = sum(value * len(values) > sum(values) for value in values)
    question = f"How many {b.noun}s have a {column} above the average {column} of all {b.noun}s?"
    average = f"(SELECT AVG({_number(column)}) FROM {b.table})"
    sql = f"SELECT COUNT(*) FROM {b.table} WHERE {_number(column)} > {average}"
    return Draft(question, sql, "comparison", (str(n),))


def _insert(b: Bench) -> Draft | None:
    firsts, seconds = b.made.domain.names
    name = f"{choose(b.rng, firsts)} {choose(b.rng, seconds)}"
    if name in b.made.column(b.key):
        return None
    row = (name, *(b.new_value(column) for column in b.made.columns[1:]))
    pairs = ", ".join(f"{column} '{value}'" for column, value in zip(b.made.columns, row, strict=True))
    names, values = ", ".join(map(quoted, b.made.columns)), ", ".join(map(text, row))
    question = f"Insert a new {b.noun} into the table {b.made.domain.table}: {pairs}."
    return Draft(question, f"INSERT INTO {b.table} ({names}) VALUES ({values})", "INSERT", (), (*b.made.rows, row))


def _update(b: Bench, conditions: list[Condition], columns: list[str]) -> Draft | None:
    found = b.where(conditions)
    changes = {column: b.new_value(column) for column in columns}
    touched = all(any(row[column] != value for row in found) for column, value in changes.items())
    if not found or not touched or len(found) == len(b.rows) or len(changes) < len(columns):
        return None
    rows = [{**row, **changes} if row in found else row for row in b.rows]
    words, sql = _both(conditions)
    wanted = " and ".join(f"the {column} to '{value}'" for column, value in changes.items())
    question = f"Set {wanted} for every {b.noun} whose {words}."
    sets = ", ".join(f"{quoted(column)} = {text(value)}" for column, value in changes.items())
    after = tuple(tuple(row.values()) for row in rows)
    return Draft(question, f"UPDATE {b.table} SET {sets} WHERE {sql}", "UPDATE", (), after)


def _update_one(b: Bench) -> Draft | None:
    return _update(b, [b.equal(b.key)], [choose(b.rng, b.made.columns[1:])])


def _update_two(b: Bench) -> Draft | None:
    return _update(b, [b.equal(b.category()), b.compare(b.number())], [b.category(), b.number()])


def _delete(b: Bench, conditions: list[Condition]) -> Draft | None:
    found = b.where(conditions)
    if not found or len(found) == len(b.rows):
        return None
    words, sql = _both(conditions)
    after = tuple(tuple(row.values()) for row in b.rows if row not in found)
    return Draft(f"Delete every {b.noun} whose {words}.", f"DELETE FROM {b.table} WHERE {sql}", "DELETE", (), after)


def _delete_one(b: Bench) -> Draft | None:
    return _delete(b, [b.equal(b.category())])


def _delete_two(b: Bench) -> Draft | None:
    return _delete(b, [b.equal(b.category()), b.compare(b.number())])


TEMPLATES: dict[str, dict[str, Maker]] = {
    "easy": {"lookup": _lookup, "count": _count, "update": _update_one, "insert": _insert},
    "standard": {
        "lookup_two": _lookup_two,
        "count_two": _count_two,
        "rank": _rank,
        "aggregate": _aggregate_one,
        "compare": _compare,
        "insert": _insert,
        "update": _update_one,
        "delete": _delete_one,
    },
    "hard": {
        "rank_groups": _rank_groups,
        "above_average": _above_average,
        "aggregate_two": _aggregate_two,
        "update_two": _update_two,
        "delete_two": _delete_two,
    },
}
"""Makers by difficulty and template name. Hard tables are wider."""


def generate(seed: int, n: int) -> list[dict[str, Json]]:
    """`n` records: a fifth easy, a fifth hard, the others standard; templates in turn, no two alike.

    The same seed gives the same records, and a larger `n` other ones.
    """
    records: list[dict[str, Json]] = []
    seen: set[str] = set()
    for index, difficulty in enumerate(difficulties(n)):
        makers = list(TEMPLATES[difficulty].items())
        name, maker = makers[index % len(makers)]
        for attempt in range(10_000):
            rng = generator("dbbench", seed, n, index, attempt)
            made = make_table(rng, wide=difficulty == "hard")
            draft = maker(Bench(rng, made))
            if draft is None:
                continue
            record = _record(made, draft, name, difficulty)
            identity = canonical_json([record["table"], record["description"], record["label"]])
            if identity not in seen:
                seen.add(identity)
                records.append(record)
                break
        else:  # every maker succeeds within a few draws; a change that breaks one shall not loop for ever
            raise RuntimeError(f"template {name} made no task in 10,000 draws")
    return records


def _record(made: Made, draft: Draft, template: str, difficulty: str) -> dict[str, Json]:
    name, columns = made.domain.table, list(made.columns)
    record: dict[str, Json] = {
        "description": draft.question,
        "add_description": f"The name of this table is {name}, and the headers of this table are {','.join(columns)}.",
        "type": [draft.type],
        "template": template,
        "difficulty": difficulty,
        "table": {
            "table_name": name,
            "table_info": {
                "columns": [{"name": column, "type": "TEXT"} for column in columns],
                "rows": [list(row) for row in made.rows],
            },
        },
    }
    if draft.after is None:
        return {**record, "label": list(draft.label), "sql": {"query": draft.sql, "length": len(draft.sql)}}
    return {**record, "label": [draft.sql], "answer_md5": f"[('{table_md5(draft.after)}',)]"}
