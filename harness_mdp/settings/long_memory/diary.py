"""Plans the log of one task: which facts are said when. Values are used once per thing, unless a template says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final, TypeVar

import numpy as np

from harness_mdp.hashing import Json
from harness_mdp.settings.long_memory.sessions import Entry, Form, Log
from harness_mdp.settings.long_memory.words import ME, PEOPLE, ROLES, THINGS, TOPICS

__all__ = ["Diary", "Level", "Said"]

T = TypeVar("T")

MAX_ENTRIES: Final = 3
"""Entries a session takes, so that its excerpt can show any of them."""
EXCHANGES: Final = (5, 14)
"""Fewest and most exchanges of chatter, two turns each: with entries 10 to 40 turns."""
DAYS: Final = (3, 11)
"""Days between two sessions."""
TEASED_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True)
class Level:
    """What a difficulty means."""

    sessions: tuple[int, int]
    changes: int
    """How often the fact asked for changes."""
    others: int
    """Other people with the same thing."""
    considered: int
    """Values that were only talked about."""
    questions: tuple[int, ...]
    """Numbers of questions, in turn."""


@dataclass(frozen=True, slots=True)
class Said:
    """A value, and the session in which it is stated."""

    value: str
    number: int


@dataclass
class Diary:
    """A log under construction."""

    seed: str
    level: Level
    rng: np.random.Generator
    dates: list[str] = field(init=False)
    topics: list[str] = field(init=False)
    exchanges: list[int] = field(init=False)
    said: list[list[Entry]] = field(init=False)
    cast: list[str] = field(init=False)
    """The people of this log, in random order."""
    asked: set[str] = field(default_factory=set[str])
    """Things that a question is about: no other question, and no small talk, touches them."""
    _used: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    _places: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def __post_init__(self) -> None:
        count = int(self.rng.integers(self.level.sessions[0], self.level.sessions[1] + 1))
        first = date(2023, 1, 2) + timedelta(days=int(self.rng.integers(0, 300)))
        steps = np.cumsum(self.rng.integers(DAYS[0], DAYS[1] + 1, size=count))
        self.dates = [(first + timedelta(days=int(step))).isoformat() for step in steps]
        topics = list(TOPICS)
        self.topics = [topics[int(i)] for i in self.rng.integers(len(topics), size=count)]
        self.exchanges = [int(n) for n in self.rng.integers(EXCHANGES[0], EXCHANGES[1] + 1, size=count)]
        self.said = [[] for _ in range(count)]
        self.cast = [PEOPLE[int(i)] for i in self.rng.permutation(len(PEOPLE))[:7]]

    @property
    def asked_on(self) -> str:
        """The day of the question: the day after the last session."""
        return (date.fromisoformat(self.dates[-1]) + timedelta(days=1)).isoformat()

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`."""
        return options[int(self.rng.integers(len(options)))]

    def ask_about(self, options: Sequence[str]) -> str:
        """A thing, role or activity of `options` that no question is about yet."""
        chosen = self.pick([name for name in options if name not in self.asked])
        self.asked.add(chosen)
        return chosen

    def fresh(self, thing: str) -> str:
        """A value of `thing` that nobody in this log has."""
        used = self._used.setdefault(thing, set())
        value = self.pick([v for v in (self.cast if thing in ROLES else THINGS[thing]) if v not in used])
        used.add(value)
        return value

    def places(self, things: Sequence[str], count: int) -> list[int]:
        """Numbers of `count` sessions, ascending, in which none of `things` was spoken of; they are taken then."""
        taken = set[int]().union(*(self._places.setdefault(thing, set()) for thing in things))
        free = [n for n, said in enumerate(self.said, start=1) if n not in taken and len(said) < MAX_ENTRIES]
        numbers = sorted(int(n) for n in self.rng.choice(free, size=count, replace=False))
        for thing in things:
            self._places[thing].update(numbers)
        return numbers

    def state(self, owner: str, thing: str, value: str, number: int) -> Said:
        """Has the value stated in a session."""
        form = Form.TEASED if self.rng.random() < TEASED_SHARE else Form.STATED
        self.said[number - 1].append(Entry(form, owner, thing, value))
        return Said(value, number)

    def history(self, owner: str, thing: str, values: Sequence[str]) -> list[Said]:
        """Has `values` stated one after another, in sessions of their own."""
        numbers = self.places([thing], len(values))
        return [self.state(owner, thing, value, n) for value, n in zip(values, numbers, strict=True)]

    def mention(self, form: Form, owner: str, thing: str, count: int, *, values: bool = False) -> list[Said]:
        """Has something said `count` times that states no fact, or an activity."""
        found: list[Said] = []
        for number in self.places([thing], count):
            value = self.fresh(thing) if values else ""
            self.said[number - 1].append(Entry(form, owner, thing, value))
            found.append(Said(value, number))
        return found

    def small_talk(self) -> None:
        """Facts that no question is about."""
        free = [thing for thing in THINGS if thing not in self.asked]
        for thing in [free[int(i)] for i in self.rng.permutation(len(free))[:3]]:
            for owner in (ME, self.cast[0]):
                self.history(owner, thing, [self.fresh(thing) for _ in range(2)])

    def log(self) -> Log:
        """The log as planned so far."""
        rows = zip(self.dates, self.topics, self.exchanges, self.said, strict=True)
        return Log(self.seed, tuple((day, topic, n, tuple(said)) for day, topic, n, said in rows))

    def public(self) -> list[Json]:
        """The sessions for the public part of a task."""
        rows = zip(self.dates, self.topics, self.exchanges, self.said, strict=True)
        return [
            [day, topic, n, [[e.form.value, e.owner, e.thing, e.value] for e in said]] for day, topic, n, said in rows
        ]
