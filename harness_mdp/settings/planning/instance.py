"""A scheduling problem as it is stated, and the entries of a schedule for it.

Times are whole numbers without a unit. A task runs without a break from its start to start + duration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from harness_mdp.hashing import Json

__all__ = ["Entry", "Instance", "Order"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a schedule."""

    task: str
    start: int | float
    """An int wherever the number is whole."""
    machine: str = ""
    """Empty: not said."""


@dataclass(frozen=True, slots=True)
class Order:
    """`after` starts at least `wait` after `before` has ended."""

    before: str
    after: str
    wait: int = 0


@dataclass(frozen=True)
class Instance:
    """The constraints of one problem, all of them public."""

    durations: Mapping[str, int]
    """Every task has one, at least 1."""
    orders: tuple[Order, ...] = ()
    machines: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Machines that can take a task, by task; a machine takes one task at a time. Absent: it needs none."""
    crew: int = 0
    """People there at any time; 0 where nobody counts them."""
    needs: Mapping[str, int] = field(default_factory=dict[str, int])
    """People a task needs while it runs."""
    releases: Mapping[str, int] = field(default_factory=dict[str, int])
    """Earliest start, where there is one above 0."""
    deadlines: Mapping[str, int] = field(default_factory=dict[str, int])
    """Latest end, where there is one."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names, sorted."""
        return tuple(sorted(self.durations))

    @property
    def machine_names(self) -> tuple[str, ...]:
        """All machines, sorted."""
        return tuple(sorted({name for names in self.machines.values() for name in names}))

    @property
    def chooses_machines(self) -> bool:
        """Some task can run on more than one machine, so a schedule has to say which."""
        return any(len(names) > 1 for names in self.machines.values())

    def machine_of(self, entry: Entry) -> str:
        """The machine an entry names, or the only one that its task can use; empty: none, or not said."""
        fitting = self.machines.get(entry.task, ())
        return entry.machine or (fitting[0] if len(fitting) == 1 else "")

    def end(self, entry: Entry) -> int | float:
        """When an entry's task ends."""
        return entry.start + self.durations[entry.task]

    def only(self, tasks: Collection[str]) -> Instance:
        """The same problem with some of its tasks alone."""
        return Instance(
            {task: value for task, value in self.durations.items() if task in tasks},
            tuple(order for order in self.orders if order.before in tasks and order.after in tasks),
            {task: value for task, value in self.machines.items() if task in tasks},
            self.crew,
            {task: value for task, value in self.needs.items() if task in tasks},
            {task: value for task, value in self.releases.items() if task in tasks},
            {task: value for task, value in self.deadlines.items() if task in tasks},
        )

    def public(self) -> dict[str, Json]:
        """As JSON; the inverse of `read`."""
        return {
            "durations": dict(self.durations),
            "orders": [[order.before, order.after, order.wait] for order in self.orders],
            "machines": {task: list(names) for task, names in self.machines.items()},
            "crew": self.crew,
            "needs": dict(self.needs),
            "releases": dict(self.releases),
            "deadlines": dict(self.deadlines),
        }

    @staticmethod
    def read(public: Mapping[str, Json]) -> Instance:
        """The problem in the public part of a task."""
        return Instance(
            public["durations"],
            tuple(Order(before, after, wait) for before, after, wait in public["orders"]),
            {task: tuple(names) for task, names in public["machines"].items()},
            public["crew"],
            public["needs"],
            public["releases"],
            public["deadlines"],
        )
