"""The validator: every stated constraint, and whether a schedule keeps it.

It reads nothing but the public problem, so that it is there when deployed. A constraint is broken, too, when one of
its tasks is missing from the schedule: what is not planned keeps no rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from harness_mdp.settings.planning.instance import Entry, Instance, Order

__all__ = ["DURATIONS", "MACHINES", "ORDER", "PIECES", "TIMES", "Verdict", "makespan", "verdicts"]

DURATIONS: Final = "durations"
ORDER: Final = "order"
MACHINES: Final = "machines"
TIMES: Final = "times"
PIECES: Final = (DURATIONS, ORDER, MACHINES, TIMES)
"""Ids of the evidence that states the constraints, in the order in which `observe` brings them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One constraint on one schedule."""

    id: str
    """E.g. `order:A>C`; unique in a problem."""
    piece: str
    """Evidence that states it; empty for `tasks`, which the task's text states."""
    tasks: tuple[str, ...]
    """Tasks that it binds."""
    problem: str = ""
    """One line that says how it is broken; empty: kept."""
    broken_by: tuple[str, ...] = ()
    """The tasks that break it between them."""

    @property
    def kept(self) -> bool:
        """The schedule keeps it."""
        return not self.problem


def verdicts(instance: Instance, entries: Sequence[Entry]) -> tuple[Verdict, ...]:
    """Every constraint of `instance` on a schedule, in a fixed order; at least one, `tasks`."""
    return tuple(_Validator(instance, entries).run())


def makespan(instance: Instance, entries: Sequence[Entry]) -> int | float:
    """When the last task ends. Every entry must be a task of `instance`."""
    return max(instance.end(entry) for entry in entries)


class _Validator:
    def __init__(self, instance: Instance, entries: Sequence[Entry]) -> None:
        self.instance = instance
        self.entries = entries
        names = [entry.task for entry in entries]
        # A task that is there twice has no one place: it counts as missing.
        self.placed: Mapping[str, Entry] = {
            entry.task: entry for entry in entries if entry.task in instance.durations and names.count(entry.task) == 1
        }

    def run(self) -> Iterator[Verdict]:
        instance = self.instance
        yield self._tasks()
        for order in instance.orders:
            yield self._order(order)
        if instance.machines:
            yield self._choice()
        for machine in instance.machine_names:
            yield self._machine(machine)
        if instance.crew:
            yield self._crew()
        for task, release in instance.releases.items():
            yield self._release(task, release)
        for task, deadline in instance.deadlines.items():
            yield self._deadline(task, deadline)

    def _verdict(
        self, name: str, piece: str, tasks: Sequence[str], problem: str = "", by: Sequence[str] = ()
    ) -> Verdict:
        """The verdict; a missing task comes before anything else that could be said."""
        missing = [task for task in tasks if task not in self.placed]
        if missing and name != "tasks":
            problem, by = f"{missing[0]} is not planned once", missing
        return Verdict(name, piece, tuple(tasks), problem, tuple(by) if problem else ())

    def _tasks(self) -> Verdict:
        names = [entry.task for entry in self.entries]
        problems = [
            f"{name[:20]} is no task here" for name in dict.fromkeys(names) if name not in self.instance.durations
        ]
        by: list[str] = []
        for task in self.instance.tasks:
            if task not in self.placed:
                problems.append(f"{task} is not planned once")
                by.append(task)
            elif self.placed[task].start < 0:
                problems.append(f"{task} starts before 0")
                by.append(task)
            elif self.placed[task].start != int(self.placed[task].start):
                problems.append(f"{task} starts at {self.placed[task].start}, which is no whole number")
                by.append(task)
        return self._verdict("tasks", "", self.instance.tasks, "; ".join(problems[:3]), by)

    def _order(self, order: Order) -> Verdict:
        tasks = (order.before, order.after)
        problem = ""
        if all(task in self.placed for task in tasks):
            end = self.instance.end(self.placed[order.before])
            start = self.placed[order.after].start
            if start < end + order.wait:
                wait = f" and a wait of {order.wait}" if order.wait else ""
                problem = f"{order.after} starts at {start}, before {order.before} ends at {end}{wait}"
        return self._verdict(f"order:{order.before}>{order.after}", ORDER, tasks, problem, tasks)

    def _choice(self) -> Verdict:
        """Every task is on a machine that can take it."""
        problems: list[str] = []
        by: list[str] = []
        for task, entry in sorted(self.placed.items()):
            fitting = self.instance.machines.get(task, ())
            machine = self.instance.machine_of(entry)
            if fitting and machine not in fitting:
                said = f"is on {machine[:20]}" if machine else "names no machine"
                problems.append(f"{task} {said}; it can use {' or '.join(fitting)}")
                by.append(task)
        return self._verdict("machine_choice", MACHINES, sorted(self.instance.machines), "; ".join(problems[:3]), by)

    def _machine(self, machine: str) -> Verdict:
        """One task at a time on `machine`."""
        instance = self.instance
        able = [task for task in instance.tasks if machine in instance.machines.get(task, ())]
        here = sorted(
            (entry for task, entry in self.placed.items() if task in able and instance.machine_of(entry) == machine),
            key=lambda entry: (entry.start, entry.task),
        )
        clash: tuple[str, ...] = ()
        for first, second in pairwise(here):
            if second.start < instance.end(first):
                clash = (first.task, second.task)
                break
        unsaid = [task for task in able if task in self.placed and not instance.machine_of(self.placed[task])]
        if clash:
            at = self.placed[clash[1]].start
            return self._verdict(
                f"machine:{machine}", MACHINES, able, f"{clash[0]} and {clash[1]} overlap on {machine} at {at}", clash
            )
        if unsaid:
            return self._verdict(f"machine:{machine}", MACHINES, able, f"{unsaid[0]} names no machine", unsaid)
        return self._verdict(f"machine:{machine}", MACHINES, able)

    def _crew(self) -> Verdict:
        """Never more people than there are; the need can only rise where a task starts."""
        instance = self.instance
        able = [task for task in instance.tasks if instance.needs.get(task)]
        here = sorted(
            (self.placed[task] for task in able if task in self.placed), key=lambda entry: (entry.start, entry.task)
        )
        for entry in here:
            running = [other for other in here if other.start <= entry.start < instance.end(other)]
            total = sum(instance.needs[other.task] for other in running)
            if total > instance.crew:
                names = tuple(sorted(other.task for other in running))
                problem = f"at {entry.start} {', '.join(names)} need {total} people, {instance.crew} are there"
                return self._verdict("crew", MACHINES, able, problem, names)
        return self._verdict("crew", MACHINES, able)

    def _release(self, task: str, release: int) -> Verdict:
        entry = self.placed.get(task)
        early = entry is not None and entry.start < release
        problem = f"{task} starts at {entry.start}, but cannot start before {release}" if entry and early else ""
        return self._verdict(f"release:{task}", TIMES, (task,), problem, (task,))

    def _deadline(self, task: str, deadline: int) -> Verdict:
        entry = self.placed.get(task)
        end = None if entry is None else self.instance.end(entry)
        in_time = end is None or end <= deadline
        problem = "" if in_time else f"{task} ends at {end}, after its deadline {deadline}"
        return self._verdict(f"deadline:{task}", TIMES, (task,), problem, (task,))
