"""Generates the tasks of `coding`: problems of 14 families, with their tests, from a seed.

A difficulty is a number of optional rules, so of places to go wrong: easy 3 slots, standard 4 or 5, hard 6 or 7.
Tests are drawn from a pool of inputs on which the reference and every single fault were run, such that each
fault fails at least one hidden test, and two where the pool has them, and that no one value is expected by half of
them: a function that always returns it is no half of a solution. Visible tests are drawn blindly, and catch only
some of the faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json, canonical_json, digest, generator
from harness_mdp.sandbox import same
from harness_mdp.settings.coding import numbers, texts
from harness_mdp.settings.coding.sketch import Draw, Family, MakeInput, Sketch
from harness_mdp.settings.slots import SlottedText
from harness_mdp.settings.tasks import Answer, Difficulty, Sealed, Task, TaskStore, difficulties

__all__ = ["FAMILIES", "HIDDEN", "VISIBLE", "generate", "single_faults"]

FAMILIES: tuple[Family, ...] = (*numbers.FAMILIES, *texts.FAMILIES)

VISIBLE = 3
HIDDEN = 12
FAILED_BY_EACH = 2
"""Hidden tests that each single fault fails, where the pool has so many; at least 1."""
POOL = 80
ATTEMPTS = 20
"""Draws per family before the next one takes over."""

RULES: dict[Difficulty, tuple[int, int]] = {"easy": (0, 0), "standard": (1, 2), "hard": (3, 4)}
"""Fewest and most optional rules of a difficulty."""

T = TypeVar("T")


@dataclass(frozen=True)
class Problem:
    """One instance of a family, before its tests are drawn."""

    family: Family
    statement: str
    edge_cases: str
    text: SlottedText
    make: MakeInput


@dataclass(frozen=True)
class Tests:
    """Inputs and expected values."""

    visible: list[Json]
    hidden: list[Json]


def generate(seed: int, n: int) -> TaskStore:
    """`n` different tasks; the same for the same seed, in another process as well.

    Raises:
        ConfigError: there are not so many different ones.
    """
    tasks: list[Task] = []
    sealed: dict[str, Sealed] = {}
    answers: dict[str, Answer] = {}
    seen: set[str] = set()
    for index, difficulty in enumerate(difficulties(n)):
        problem, tests = _fresh(difficulty, seed, index, seen)
        family = problem.family
        task = Task(
            id=f"coding-{seed}-{index:03d}",
            template=family.name,
            difficulty=difficulty,
            public={
                "title": family.title,
                "function": family.name,
                "signature": f"def {family.name}({family.parameters}):",
                "statement": problem.statement,
                "edge_cases": problem.edge_cases,
                "visible_tests": tests.visible,
            },
        )
        tasks.append(task)
        sealed[task.id] = Sealed({"reference": problem.text.reference, "hidden_tests": tests.hidden})
        answers[task.id] = Answer(problem.text)
    return TaskStore(tuple(tasks), sealed, answers)


def single_faults(text: SlottedText) -> list[str]:
    """Every text with exactly one wrong piece."""
    faults: list[str] = []
    for place, slot in enumerate(text.slots):
        for wrong in range(1, len(slot.options)):
            choices = [0] * len(text.slots)
            choices[place] = wrong
            faults.append(text.render(choices))
    return faults


def _fresh(difficulty: Difficulty, seed: int, index: int, seen: set[str]) -> tuple[Problem, Tests]:
    """An instance that did not occur yet, and whose faults all show; draws again until there is one.

    Families take turns; one that has nothing new to give passes its turn on to the next.
    """
    for attempt in range(ATTEMPTS * len(FAMILIES)):
        family = FAMILIES[(index + attempt // ATTEMPTS) % len(FAMILIES)]
        draw = Draw(generator("coding", seed, index, attempt))
        problem = _problem(family, difficulty, draw)
        key = digest([problem.statement, problem.edge_cases, problem.text.reference])
        if key in seen:
            continue
        tests = _tests(problem, draw)
        if tests is not None:
            seen.add(key)
            return problem, tests
    raise ConfigError(f"the generator of coding found only {len(seen)} different tasks for seed {seed}; ask for fewer")


def _problem(family: Family, difficulty: Difficulty, draw: Draw) -> Problem:
    fewest, most = RULES[difficulty]
    extras = _sample(draw, family.extras, draw.integer(fewest, most))
    sketch = Sketch(draw, frozenset(extras), [f"def {family.name}({family.parameters}):"])
    make = family.write(sketch)
    return Problem(
        family,
        " ".join(sketch.statement),
        " ".join(sketch.edge_cases) or "There are none beyond the problem statement.",
        SlottedText(tuple(sketch.parts), fence="python"),
        make,
    )


def _sample(draw: Draw, options: Sequence[T], count: int) -> list[T]:
    return [options[int(i)] for i in sorted(draw.rng.permutation(len(options))[:count])]


def _tests(problem: Problem, draw: Draw) -> Tests | None:
    """Visible and hidden tests; None when a fault shows on too few inputs of the pool, or one value is too common."""
    pool = list({canonical_json(call): call for call in (problem.make(draw) for _ in range(POOL))}.values())
    expected = _evaluate(problem.text.reference, problem.family.name, pool)
    faults = [_evaluate(text, problem.family.name, pool) for text in single_faults(problem.text)]
    shows = [[i for i, want in enumerate(expected) if not same(want, got[i])] for got in faults]
    # Visible tests first, so that they are an ordinary sample and no leftover; empty inputs teach nothing.
    telling = [i for i, call in enumerate(pool) if all(argument not in ([], "") for argument in call)]
    visible = telling[:VISIBLE]
    hidden: list[int] = []
    for places in shows:
        usable = [i for i in places if i not in visible]
        if not usable:
            return None
        missing = FAILED_BY_EACH - sum(i in hidden for i in usable)
        hidden += [i for i in usable if i not in hidden][: max(0, missing)]
    hidden += [i for i in range(len(pool)) if i not in visible and i not in hidden][: max(0, HIDDEN - len(hidden))]
    if len(visible) < VISIBLE or len(hidden) != HIDDEN:
        return None
    if 2 * max(Counter(canonical_json([expected[i]]) for i in hidden).values()) >= HIDDEN:
        return None
    order = [int(i) for i in draw.rng.permutation(HIDDEN)]
    cases: list[Json] = [{"args": call, "expected": want} for call, want in zip(pool, expected, strict=True)]
    return Tests([cases[i] for i in visible], [cases[hidden[i]] for i in order])


def _evaluate(source: str, function: str, calls: Sequence[list[Json]]) -> list[Json]:
    """What our own code returns, in this process; an exception counts as a value that equals no other."""
    scope: dict[str, Json] = {}
    exec(compile(source, function, "exec"), scope)  # noqa: S102  (written by this package, not by a model)
    values: list[Json] = []
    for call in calls:
        arguments = _copy(call)
        try:
            values.append(scope[function](*arguments))
        except Exception as problem:  # noqa: BLE001  (a fault may fail in any way)
            values.append(problem)
    return values


def _copy(value: Json) -> Json:
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
