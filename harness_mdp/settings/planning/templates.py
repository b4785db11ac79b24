"""Seven families of scheduling problems; each draws an instance from a generator.

Tasks are numbered while a problem is made and get letters at the end, in a drawn order, so that the alphabet says
nothing about the order of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from string import ascii_uppercase
from typing import Final

import numpy as np

from harness_mdp.settings.planning.constraints import makespan
from harness_mdp.settings.planning.instance import Entry, Instance, Order
from harness_mdp.settings.planning.whatif import earliest

__all__ = ["SHAPES", "TEMPLATES", "Shape", "Template", "greedy", "make"]


@dataclass(frozen=True)
class Shape:
    """How large the problems of a difficulty are. Pairs are the fewest and the most."""

    tasks: tuple[int, int]
    durations: tuple[int, int]
    releases: int
    deadlines: int
    slots: tuple[int, int]
    """Places in the reference where a model may go wrong."""


SHAPES: Final[Mapping[str, Shape]] = {
    "easy": Shape((4, 4), (1, 4), 1, 1, (3, 4)),
    "standard": Shape((5, 7), (1, 5), 1, 2, (5, 6)),
    "hard": Shape((7, 9), (2, 6), 2, 2, (7, 8)),
}


@dataclass
class _Sketch:
    """A problem in the making; tasks are 0..n-1."""

    rng: np.random.Generator
    n: int
    orders: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    machines: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    crew: int = 0
    needs: dict[int, int] = field(default_factory=dict[int, int])

    def draw(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def sample(self, count: int) -> list[int]:
        """`count` different tasks."""
        return [int(task) for task in self.rng.permutation(self.n)[:count]]

    def link(self, count: int, waits: tuple[int, int] = (0, 0)) -> None:
        """Up to `count` orders, always from a lower to a higher number, none twice."""
        pairs = [(i, j) for i in range(self.n) for j in range(i + 1, self.n) if j - i <= 4]
        for index in self.rng.permutation(len(pairs))[:count]:
            before, after = pairs[int(index)]
            self.orders.append((before, after, self.draw(*waits)))

    def chains(self, length: int) -> list[list[int]]:
        """The tasks cut into chains of `length` (the last may be shorter), each ordered."""
        cut = [list(range(first, min(first + length, self.n))) for first in range(0, self.n, length)]
        for chain in cut:
            self.orders.extend((before, after, 0) for before, after in pairwise(chain))
        return cut


@dataclass(frozen=True)
class Template:
    """A family of problems."""

    name: str
    title: str
    fill: Callable[[_Sketch], None]
    """Sets orders, machines and crew."""


def _workshop(sketch: _Sketch) -> None:
    """Products of two or three operations, each on its own machine, in different sequences."""
    machines = [f"M{i + 1}" for i in range(2 if sketch.n < 7 else 3)]
    for chain in sketch.chains(2 if sketch.n < 6 else 3):
        turn = sketch.draw(0, len(machines) - 1)
        step = sketch.draw(1, len(machines) - 1)
        sketch.machines.update((task, (machines[(turn + i * step) % len(machines)],)) for i, task in enumerate(chain))


def _line(sketch: _Sketch) -> None:
    """Every product passes the same stations in the same sequence."""
    length = 2 if sketch.n < 8 else 3
    for chain in sketch.chains(length):
        sketch.machines.update((task, (f"M{i + 1}",)) for i, task in enumerate(chain))


def _ovens(sketch: _Sketch) -> None:
    """Two ovens that can each take anything."""
    sketch.machines.update((task, ("M1", "M2")) for task in range(sketch.n))
    sketch.link(max(1, sketch.n // 2 - 1))


def _skills(sketch: _Sketch) -> None:
    """Each task can be done by some of the workers, one at least by two."""
    workers = ("W1", "W2") if sketch.n < 6 else ("W1", "W2", "W3")
    for task in range(sketch.n):
        able = [workers[int(i)] for i in sketch.rng.permutation(len(workers))[: sketch.draw(1, 2)]]
        sketch.machines[task] = tuple(sorted(able))
    sketch.machines[sketch.draw(0, sketch.n - 1)] = workers[:2]
    sketch.link(max(1, sketch.n // 2 - 1))


def _crew(sketch: _Sketch) -> None:
    """Tasks share a crew of a few people."""
    sketch.crew = sketch.draw(3, 4)
    sketch.needs.update((task, sketch.draw(1, sketch.crew - 1)) for task in range(sketch.n))
    sketch.link(sketch.n // 2)


def _kiln(sketch: _Sketch) -> None:
    """One machine for all."""
    sketch.machines.update((task, ("M1",)) for task in range(sketch.n))
    sketch.link(max(2, sketch.n // 2))


def _site(sketch: _Sketch) -> None:
    """Orders with waits (drying, hardening), and one machine that some of the tasks need."""
    sketch.link(sketch.n - 1, waits=(0, 3))
    sketch.machines.update((task, ("M1",)) for task in sketch.sample(max(3, sketch.n // 2)))


TEMPLATES: Final = (
    Template("workshop", "A workshop plans its tasks on several machines.", _workshop),
    Template("line", "A packing line plans its tasks at its stations.", _line),
    Template("ovens", "A bakery plans its tasks on two ovens.", _ovens),
    Template("skills", "A team plans who does which of its tasks, and when.", _skills),
    Template("crew", "A crew plans the tasks of a move.", _crew),
    Template("kiln", "A pottery plans its tasks on one kiln.", _kiln),
    Template("site", "A building site plans its tasks.", _site),
)


def make(template: Template, shape: Shape, rng: np.random.Generator) -> tuple[Instance, int]:
    """A problem that can be solved, and the makespan of a schedule that a simple rule found.

    Deadlines are drawn around the ends of a feasible schedule, so that one always exists.
    """
    sketch = _Sketch(rng, int(rng.integers(shape.tasks[0], shape.tasks[1] + 1)))
    template.fill(sketch)
    low, high = shape.durations
    letters = [ascii_uppercase[int(i)] for i in rng.permutation(sketch.n)]
    late = sketch.sample(shape.releases)
    instance = Instance(
        durations=dict(sorted((letters[task], sketch.draw(low, high)) for task in range(sketch.n))),
        orders=tuple(sorted((Order(letters[i], letters[j], wait) for i, j, wait in sketch.orders), key=_named)),
        machines=dict(sorted((letters[task], names) for task, names in sketch.machines.items())),
        crew=sketch.crew,
        needs=dict(sorted((letters[task], need) for task, need in sketch.needs.items())),
        releases=dict(sorted((letters[task], sketch.draw(1, high)) for task in late)),
    )
    first = greedy(instance, rng)
    due = {
        entry.task: instance.end(entry) + sketch.draw(0, 1)
        for entry in (first[i] for i in sketch.sample(shape.deadlines))
    }
    instance = replace(instance, deadlines={task: int(end) for task, end in sorted(due.items())})
    return instance, int(makespan(instance, first))


def _named(order: Order) -> tuple[str, str]:
    return order.before, order.after


def greedy(instance: Instance, rng: np.random.Generator) -> list[Entry]:
    """A schedule that keeps everything but deadlines.

    One task after another, in a drawn order that respects the orders, each as early as it can start beside those
    before it, on the machine where that is earliest.
    """
    limit = sum(instance.durations.values()) + sum(order.wait for order in instance.orders)
    limit += max(instance.releases.values(), default=0)
    free = replace(instance, deadlines={})
    placed: list[Entry] = []
    left = set(instance.tasks)
    while left:
        ready = [
            task for task in sorted(left) if not any(o.after == task and o.before in left for o in instance.orders)
        ]
        task = ready[int(rng.integers(len(ready)))]
        part = free.only([*(entry.task for entry in placed), task])
        tries: list[Entry] = []
        for machine in instance.machines.get(task, ("",)):
            start = earliest(part, Entry(task, 0, machine), placed, limit)
            if start is not None:
                tries.append(Entry(task, start, machine))
        placed.append(min(tries, key=lambda entry: entry.start))
        left.remove(task)
    return placed
