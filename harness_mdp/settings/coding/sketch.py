"""How a coding family writes one problem: sentences, code lines and slots, side by side.

Each rule of a problem is stated once, in a sentence, and coded once, in a line with a slot: so statement, code
and faults cannot drift apart. Optional rules make a problem harder; the difficulty says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from harness_mdp.hashing import Json
from harness_mdp.settings.slots import Slot

__all__ = ["EDGE_CASES", "EXAMPLES", "STATEMENT", "Draw", "Family", "MakeInput", "Sketch", "edge", "slot"]

STATEMENT, EXAMPLES, EDGE_CASES = "statement", "examples", "edge_cases"
"""Ids of the three pieces of evidence, in the order in which `observe` brings them."""

T = TypeVar("T")


@dataclass(frozen=True)
class Draw:
    """Random draws as plain Python values."""

    rng: np.random.Generator

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def choose(self, options: Sequence[T]) -> T:
        """One of `options`."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, p: float) -> bool:
        """True with probability `p`."""
        return bool(self.rng.random() < p)

    def near(self, marks: Sequence[int], low: int, high: int) -> int:
        """Half the time a mark or a neighbour of one, where off-by-one faults show; else any from low to high."""
        if self.chance(0.5):
            return self.choose(marks) + self.integer(-1, 1)
        return self.integer(low, high)

    def several(self, most: int, make: Callable[[], T]) -> list[T]:
        """0 to `most` values; empty one time in ten."""
        return [] if self.chance(0.1) else [make() for _ in range(self.integer(1, most))]


MakeInput = Callable[[Draw], list[Json]]
"""One list of arguments for the problem's function."""


@dataclass
class Sketch:
    """One problem in the making."""

    draw: Draw
    extras: frozenset[str]
    """Optional rules that this instance has."""
    parts: list[str | Slot] = field(default_factory=list[str | Slot])
    statement: list[str] = field(default_factory=list[str])
    edge_cases: list[str] = field(default_factory=list[str])

    def says(self, sentence: str) -> None:
        """Adds to the problem statement."""
        self.statement.append(sentence)

    def notes(self, sentence: str) -> None:
        """Adds to the edge-case notes."""
        self.edge_cases.append(sentence)

    def line(self, indent: int, *pieces: str | Slot) -> None:
        """Adds a line of code, `indent` levels deep."""
        self.parts.extend(("\n" + "    " * indent, *pieces))

    def wants(self, extra: str) -> bool:
        """Whether this instance has the optional rule `extra`."""
        return extra in self.extras

    def empty(self, name: str, answer: str, *wrong: str) -> None:
        """The optional rule `empty`: what an empty argument gives."""
        if self.wants("empty"):
            self.notes(f"If {name} is empty, return {answer}.")
            self.line(1, f"if not {name}:")
            self.line(2, "return ", edge(answer, *wrong, problem=f"an empty {name} may give the wrong result"))

    def cap(self, indent: int, name: str, most: int, what: str = "The result") -> None:
        """The optional rule `cap`: `what` is at most `most`."""
        if self.wants("cap"):
            self.notes(f"{what} is never more than {most}; anything larger becomes {most}.")
            wrong = (f"max({name}, {most})", name)
            problem = f"values above {most} may not become {most}"
            self.line(indent, f"{name} = ", edge(f"min({name}, {most})", *wrong, problem=problem))


@dataclass(frozen=True)
class Family:
    """A template: problems of one kind that differ in constants and in their optional rules."""

    name: str
    """Also the function's name."""
    title: str
    parameters: str
    extras: tuple[str, ...]
    """Names of the optional rules, one slot each."""
    write: Callable[[Sketch], MakeInput]


def slot(correct: str, *wrong: str, problem: str) -> Slot:
    """A place where a rule of the statement can be coded wrongly."""
    return Slot(correct, wrong, problem, helped_by=(STATEMENT, EXAMPLES))


def edge(correct: str, *wrong: str, problem: str) -> Slot:
    """A place where a rule of the edge-case notes can be missed."""
    return Slot(correct, wrong, problem, helped_by=(EDGE_CASES, EXAMPLES))
