"""Generates the tasks of `knowledge_work`: decisions of seven templates with their tables and memos, from a seed.

easy: two tables or one, shown whole, one rule with one limit; 4 slots. standard: longer tables, a second condition that
comes before the first, last year's limit in a memo that was replaced, a table of no use; 6 slots. hard: longer still,
a limit of the subject's own in another memo, an owner to name, more notes; 8 slots. Limits that do not apply lie
on the other side of the key figure, so that reading the wrong memo turns the decision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json, digest, generator
from harness_mdp.settings.knowledge_work.decision import Asked, Relation, Template
from harness_mdp.settings.knowledge_work.query import QueryError, evaluate, parse_query, tables_in
from harness_mdp.settings.knowledge_work.sources import Table
from harness_mdp.settings.knowledge_work.templates import TEMPLATES
from harness_mdp.settings.knowledge_work.writing import Case, Known, memos, sealed_values, shown, text
from harness_mdp.settings.tasks import Answer, Difficulty, Sealed, Task, TaskStore, difficulties

__all__ = ["generate"]

ATTEMPTS = 200
"""Draws per task before giving up; a draw fails when its figures leave no room for a limit or a mistake."""
MAX_WRONG = 3
"""Mistakes kept per figure."""
STRAY = "sum(T0.amount)"
"""A tool call that cannot work: there is no such table."""


@dataclass(frozen=True)
class Shape:
    """How much there is to read."""

    subjects: int
    rows: tuple[int, int]
    """Fewest and most records per subject."""
    stray_tables: int
    notes: int


SHAPES: Mapping[Difficulty, Shape] = {
    "easy": Shape(2, (3, 3), 0, 1),
    "standard": Shape(3, (4, 5), 1, 1),
    "hard": Shape(4, (5, 7), 2, 2),
}

_FIRST = ("Dana", "Omar", "Eva", "Ravi", "Lena", "Tomas", "Ines", "Kofi", "Mira", "Jonas")
_LAST = ("Ruiz", "Lind", "Stone", "Okoye", "Varga", "Petit", "Sato", "Nowak", "Quist", "Brandt")
_NOTES = (
    ("Calendar", "The review of {y} moved to the {n}th of next month."),
    ("Minutes", "{n} people attended the meeting on {y}; no decision was taken."),
    ("Survey", "In the survey {n} of 50 answers mention {x}; most are content."),
    ("Contacts", "Questions about {y} go to extension {n}."),
    ("Facilities", "The office that looks after {x} has {n} desks."),
)


def generate(seed: int, n: int) -> TaskStore:
    """`n` different tasks; the same for the same seed, in another process as well."""
    tasks: list[Task] = []
    sealed: dict[str, Sealed] = {}
    answers: dict[str, Answer] = {}
    seen: set[str] = set()
    for index, difficulty in enumerate(difficulties(n)):
        template = TEMPLATES[index % len(TEMPLATES)]
        tables, case = _fresh(template, difficulty, seed, index, seen)
        brief = text(case)
        task = Task(f"{difficulty}-{index:03d}", template.name, difficulty, _public(tables, case))
        tasks.append(task)
        sealed[task.id] = Sealed(sealed_values(case, brief.reference))
        answers[task.id] = Answer(brief, tuple(f.query for f in case.figures), _wrong_calls(tables, case))
    return TaskStore(tuple(tasks), sealed, answers)


def _fresh(
    template: Template, difficulty: Difficulty, seed: int, index: int, seen: set[str]
) -> tuple[dict[str, Table], Case]:
    """An instance that did not occur yet and leaves room for limits and mistakes; draws again until there is one."""
    for attempt in range(ATTEMPTS):
        rng = generator("knowledge_work", seed, index, attempt)
        drawn = _draw(template, difficulty, rng)
        if drawn is None:
            continue
        key = digest([_public(*drawn), text(drawn[1]).reference])
        if key not in seen:
            seen.add(key)
            return drawn
    raise ConfigError(
        f"the generator of knowledge_work found no task {index} of {template.name} in {ATTEMPTS} draws; "
        f"use another seed than {seed}"
    )


def _draw(template: Template, difficulty: Difficulty, rng: np.random.Generator) -> tuple[dict[str, Table], Case] | None:
    shape = SHAPES[difficulty]
    subjects = [template.subjects[i] for i in rng.permutation(len(template.subjects))[: shape.subjects]]
    x, others = subjects[0], tuple(subjects[1:])
    tables, roles = _tables(template, subjects, shape, rng)
    asked = {
        "easy": (template.first, template.key),
        "standard": (template.second, template.key),
        "hard": (template.first, template.second, template.key),
    }[difficulty]
    figures = [_known(each, roles, x, others, tables) for each in asked]
    known = tuple(figure for figure in figures if figure is not None)
    if len(known) < len(asked) or not template.key_range[0] <= known[-1].value <= template.key_range[1]:
        return None
    outcome = int(rng.integers(2 if difficulty == "easy" else 3))
    above = outcome == 0 or (outcome == 2 and bool(rng.integers(2)))
    limits = _limits(known[-1].value, above, {"easy": 0, "standard": 1, "hard": 2}[difficulty], rng)
    second_limit = None
    if difficulty != "easy":
        count = int(known[-2].value)
        second_limit = count - 1 if outcome == 2 else count + int(rng.integers(2))
        if second_limit < 0:
            return None
    hard = difficulty == "hard"
    case = Case(
        template=template,
        subject=x,
        others=others,
        figures=known,
        limit=limits[0],
        above=above,
        general=limits[2] if hard else None,
        superseded=limits[1] if difficulty != "easy" else None,
        second_limit=second_limit,
        decision=outcome,
        owners=_names(rng) if hard else (),
        memo_ids=_ids("M", 1 + len(limits[1:]) + hard + shape.notes, rng),
        stray_table=roles.get("stray", ""),
        notes=_notes(shape.notes, x, others, rng),
    )
    return tables, case


def _tables(
    template: Template, subjects: Sequence[str], shape: Shape, rng: np.random.Generator
) -> tuple[dict[str, Table], dict[str, str]]:
    """Tables by id, and the ids by role: `main`, `ref` where there is one, `stray` for the first of no use."""
    records: list[tuple[str, str, int]] = []
    for subject in subjects:
        for _ in range(int(rng.integers(shape.rows[0], shape.rows[1] + 1))):
            flag = template.flags[int(rng.integers(3))]
            records.append((subject, flag, int(rng.integers(template.amounts[0], template.amounts[1] + 1))))
    records = [records[i] for i in rng.permutation(len(records))]
    made: list[tuple[str, str, tuple[str, ...], list[tuple[str | int, ...]]]] = [
        ("main", template.records, (template.subject, template.flag, template.amount), [*records])
    ]
    if template.relation is not Relation.NONE:
        rows: list[tuple[str | int, ...]] = [(s, _reference(template, records, s, rng)) for s in sorted(subjects)]
        made.append(("ref", template.reference, (template.subject, template.reference_column), rows))
    strays = (
        (f"{template.reference or template.records} of last year", template.reference_column or template.amount),
        ("People", "people"),
    )
    for place, (title, column) in enumerate(strays[: shape.stray_tables]):
        top = template.amounts[1] if place == 0 else 40
        rows = [(s, int(rng.integers(top // 4, top))) for s in sorted(subjects)]
        made.append((("stray", "stray2")[place], title, (template.subject, column), rows))
    ids = _ids("T", len(made), rng)
    tables = {
        name: Table(name, title, columns, tuple(rows))
        for name, (_, title, columns, rows) in zip(ids, made, strict=True)
    }
    ordered = {name: tables[name] for name in sorted(tables)}
    return ordered, {role: name for name, (role, *_) in zip(ids, made, strict=True)}


def _reference(
    template: Template, records: Sequence[tuple[str, str, int]], subject: str, rng: np.random.Generator
) -> int:
    """A figure of the reference table such that the key figure is likely to be a sensible one."""
    counted = [amount for name, flag, amount in records if name == subject and flag in template.counted]
    share = float(rng.uniform(*template.key_range)) / 100.0
    total = float(sum(counted)) or float(template.amounts[1])
    mean = total / max(1, len(counted))
    value = {
        Relation.OVER: total / (1.0 + share),
        Relation.SHORT: total / (1.0 - share),
        Relation.SHARE: total / share,
        Relation.GAP: mean * (1.0 + share),
        Relation.NONE: 0.0,
    }[template.relation]
    step = 10 if value >= 1000 else 1
    return max(1, step * round(value / step))


def _known(
    asked: Asked, roles: Mapping[str, str], x: str, others: Sequence[str], tables: Mapping[str, Table]
) -> Known | None:
    """The figure with its mistakes, or None when it cannot be computed, is not positive, or no mistake shows."""
    query = parse_query(asked.query.format(x=x, y=others[0], **_names_of(roles)), tables)
    try:
        value = evaluate(query, tables)
    except QueryError:
        return None
    if isinstance(value, str) or value < (1.0 if asked.decimals else 0.0):
        return None
    wrong: dict[str, float] = {}
    for pattern in asked.wrong:
        for y in others:
            mistaken = _value(pattern.format(x=x, y=y, **_names_of(roles)), tables)
            if mistaken is not None and mistaken > 0.0 and abs(mistaken - value) > 0.2:
                wrong.setdefault(shown(asked, mistaken), mistaken)
    if not wrong:
        return None
    return Known(asked, str(query), value, tuple(sorted(tables_in(query))), tuple(wrong.values())[:MAX_WRONG])


def _value(query: str, tables: Mapping[str, Table]) -> float | None:
    try:
        value = evaluate(parse_query(query, tables), tables)
    except QueryError:
        return None
    return None if isinstance(value, str) else value


def _names_of(roles: Mapping[str, str]) -> dict[str, str]:
    return {"main": roles["main"], "ref": roles.get("ref", "")}


def _limits(value: float, above: bool, rivals: int, rng: np.random.Generator) -> list[int]:
    """The limit that applies, then `rivals` different ones on the other side of `value`; all at least 0.5 off it."""
    below, beyond = math.floor(value - 0.5), math.ceil(value + 0.5)
    gaps = [int(g) for g in rng.permutation(min(6, below))]
    right, wrong = (below, beyond) if above else (beyond, below)
    sign = -1 if above else 1
    return [right + sign * gaps[0], *(wrong - sign * gap for gap in gaps[1 : 1 + rivals])]


def _ids(kind: str, count: int, rng: np.random.Generator) -> tuple[str, ...]:
    return tuple(f"{kind}{int(i) + 1}" for i in rng.permutation(count))


def _names(rng: np.random.Generator) -> tuple[str, ...]:
    firsts, lasts = rng.permutation(len(_FIRST)), rng.permutation(len(_LAST))
    return tuple(f"{_FIRST[int(firsts[i])]} {_LAST[int(lasts[i])]}" for i in range(3))


def _notes(count: int, x: str, others: Sequence[str], rng: np.random.Generator) -> tuple[tuple[str, str], ...]:
    chosen = [_NOTES[int(i)] for i in rng.permutation(len(_NOTES))[:count]]
    return tuple((title, body.format(x=x, y=others[0], n=int(rng.integers(4, 20)))) for title, body in chosen)


def _wrong_calls(tables: Mapping[str, Table], case: Case) -> tuple[str, ...]:
    """The key figure of another subject, and a table that is not there."""
    key = case.key.query.replace(f"= {case.subject}", f"= {case.others[0]}")
    return (str(parse_query(key, tables)), STRAY)


def _public(tables: Mapping[str, Table], case: Case) -> dict[str, Json]:
    template = case.template
    options = template.options[: 2 if case.second_limit is None else 3]
    return {
        "title": f"{template.subject} {case.subject}: {template.name.replace('_', ' ')}",
        "subject": case.subject,
        "others": list(case.others),
        "figures": [{"label": f.asked.label, "decimals": f.asked.decimals, "unit": f.asked.unit} for f in case.figures],
        "options": [{"text": option.text, "words": list(option.words)} for option in options],
        "asks_owner": bool(case.owners),
        "rule": case.rule_id,
        "tables": [table.public for table in tables.values()],
        "memos": [memo.public for memo in sorted(memos(case), key=lambda memo: memo.id)],
    }
