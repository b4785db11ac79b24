"""What the simulated executor knows of DB-Bench tasks: the reference as text with slots.

Every wrong piece was run and found to lower the native score; a piece that changes nothing is no fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from harness_mdp.hashing import generator
from harness_mdp.settings.dbbench.draft import Draft, json_piece
from harness_mdp.settings.dbbench.evidence import SAMPLE, VALUES
from harness_mdp.settings.dbbench.faults import Place, places, wrong_values
from harness_mdp.settings.dbbench.files import Record
from harness_mdp.settings.dbbench.scoring import answers_match, digest_after, normalised
from harness_mdp.settings.dbbench.sql_dialect import identifier, lex
from harness_mdp.settings.dbbench.sql_worker import SqlPool, SqlResult, Table
from harness_mdp.settings.slots import Slot, SlottedText
from harness_mdp.settings.tasks import Answer

__all__ = ["LazyAnswers", "answer_for"]

MAX_SLOTS: Mapping[str, int] = {"easy": 2, "standard": 3, "hard": 4}
_MAX_WRONG = 3
_FENCE = "json"


class LazyAnswers(Mapping[str, Answer]):
    """Answers by task id, made when first asked for: a real model needs none of them."""

    def __init__(self, records: Sequence[Record], pool: SqlPool) -> None:
        self._records = {record.id: record for record in records}
        self._pool = pool
        self._made: dict[str, Answer] = {}

    def __getitem__(self, task_id: str) -> Answer:
        if task_id not in self._made:
            self._made[task_id] = answer_for(self._records[task_id], self._pool)
        return self._made[task_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


def answer_for(record: Record, pool: SqlPool) -> Answer:
    """The reference with slots: SQL where running it gives the right result, else the values of the label."""
    rng = generator("dbbench answer", record.id, record.question)
    if record.kind == "select":
        reference = pool.run(record.table, [record.sql])[0] if record.sql else SqlResult("no reference SQL")
        if not answers_match(Draft(record.sql).values(reference), record.label):
            return Answer(_values_with_slots(record, rng))
    return Answer(_sql_with_slots(record, pool, rng))


def _sql_with_slots(record: Record, pool: SqlPool, rng: np.random.Generator) -> SlottedText:
    sql = record.sql.strip()
    tokens = [token.text for token in lex(sql)]
    proposals = _chosen(record, pool, tokens, _shuffled(places(sql, record.table, rng), rng))
    parts: list[str | Slot] = ['{"sql":"']
    done = 0
    for place in proposals:
        parts.append(json_piece("".join(tokens[done : place.start])))
        correct = json_piece("".join(tokens[place.start : place.end]))
        parts.append(Slot(correct, tuple(map(json_piece, place.wrong)), place.problem, place.helped_by))
        done = place.end
    parts.extend([json_piece("".join(tokens[done:])), '"}'])
    return SlottedText(tuple(part for part in parts if part), _FENCE)


def _chosen(record: Record, pool: SqlPool, tokens: list[str], proposed: list[Place]) -> list[Place]:
    """Places that do not overlap, of as many categories as possible, with the wrong pieces that are wrong."""
    whole = Place(0, len(tokens), "statement", _other_statements(record.table), "the statement may be the wrong one")
    pairs = [(place, piece) for place in (*proposed, whole) for piece in place.wrong]
    sqls = ["".join([*tokens[: place.start], piece, *tokens[place.end :]]) for place, piece in pairs]
    reference, *results = pool.run(record.table, [record.sql, *sqls])
    wrong: dict[Place, list[str]] = {}
    for (place, piece), sql, result in zip(pairs, sqls, results, strict=True):
        if _is_wrong(record, reference, sql, result):
            wrong.setdefault(place, []).append(piece)
    chosen: list[Place] = []
    usable = [place for place in proposed if place in wrong]
    for place in [*_one_of_each(usable), *usable, *([whole] if not usable else [])]:
        overlaps = any(place.start < other.end and other.start < place.end for other in chosen)
        if not overlaps and len(chosen) < MAX_SLOTS[record.difficulty]:
            pieces = tuple(wrong.get(place, ()))[:_MAX_WRONG]
            chosen.append(Place(place.start, place.end, place.category, pieces, place.problem, place.helped_by))
    return sorted(chosen, key=lambda place: place.start)


def _one_of_each(usable: list[Place]) -> Iterable[Place]:
    """The first place of each category."""
    first: dict[str, Place] = {}
    for place in usable:
        first.setdefault(place.category, place)
    return first.values()


def _shuffled(proposed: list[Place], rng: np.random.Generator) -> list[Place]:
    """In random order, so that tasks differ in which kinds of fault they have."""
    return [proposed[int(index)] for index in rng.permutation(len(proposed))]


def _is_wrong(record: Record, reference: SqlResult, sql: str, result: SqlResult) -> bool:
    if record.kind == "select":
        return not answers_match(Draft(sql).values(result), record.label)
    state = digest_after(record.table, result)
    return state not in (record.digest, digest_after(record.table, reference))


def _other_statements(table: Table) -> tuple[str, ...]:
    """Statements that leave the table, or empty it: one of them is wrong whatever the task."""
    name = identifier(table.name)
    return (f"SELECT * FROM {name}", f"DELETE FROM {name}")  # noqa: S608  (quoted; runs in the worker)


def _values_with_slots(record: Record, rng: np.random.Generator) -> SlottedText:
    """`{"answer":[...]}` with slots on the values."""
    parts: list[str | Slot] = ['{"answer":[']
    slots = 0
    for index, value in enumerate(record.label):
        parts.append('"' if index == 0 else ',"')
        pieces = [
            piece
            for piece in _wrong_answers(record, value, rng)
            if not answers_match([*record.label[:index], piece, *record.label[index + 1 :]], record.label)
        ]
        if pieces and slots < MAX_SLOTS[record.difficulty]:
            problem = f"value {index + 1} of the answer may be wrong"
            wrong = tuple(map(json_piece, pieces[:_MAX_WRONG]))
            parts.append(Slot(json_piece(value), wrong, problem, (SAMPLE, VALUES)))
            slots += 1
        else:
            parts.append(json_piece(value))
        parts.append('"')
    parts.append("]}")
    return SlottedText(tuple(part for part in parts if part), _FENCE)


def _wrong_answers(record: Record, value: str, rng: np.random.Generator) -> list[str]:
    """Wrong values: of the column that holds the right one, else a number off by one, else any column's."""
    table = record.table
    wanted = normalised(value)
    holders = [
        name for index, name in enumerate(table.columns) if any(normalised(row[index]) == wanted for row in table.rows)
    ]
    if holders:
        return list(wrong_values(value, holders[0], table, rng))
    try:
        number = float(wanted)
    except ValueError:
        column = table.columns[int(rng.integers(len(table.columns)))]
        return list(wrong_values(value, column, table, rng))
    return [f"{number + step:g}" for step in (1, -1, 2)]
