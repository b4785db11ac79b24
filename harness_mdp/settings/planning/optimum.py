"""The shortest schedule, by a time-indexed mixed-integer program (`scipy.optimize.milp`, HiGHS).

x[j,m,s] = 1: task j starts at s on machine m (m is empty where it needs none). y[t] = 1: some task ends after t.
All variables are binary, so that Σ y is the makespan:

    min  W · Σ_t y[t] + Σ s·x[j,m,s]
    s.t. Σ_{m,s} x[j,m,s] = 1                                         for every task j
         Σ_{m, s > t - d_j} x[j,m,s] ≤ y[t]                           for every task j and time t
         Σ_{m, s ≤ t} x[k,m,s] ≤ Σ_{m, s ≤ t - d_j - wait} x[j,m,s]   for every order j before k, and time t
         Σ_j Σ_{s in (t - d_j, t]} x[j,m,s] ≤ 1                       for every machine m and time t
         Σ_j need_j · Σ_{m, s in (t - d_j, t]} x[j,m,s] ≤ crew        for every time t

Starts are limited beforehand by releases, deadlines, chains of orders and a bound on the makespan. W is larger than any
sum of starts, so that among the shortest schedules one with the least sum of starts is found: in it no task can start
earlier while the others stay. (Time-indexed with disaggregated orders, as Christofides, Alvarez-Valdés and Tamarit 1987
for project scheduling; its coefficients are 0 and 1, which a solver's tolerances do not hurt.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from harness_mdp.settings.planning.constraints import makespan, verdicts
from harness_mdp.settings.planning.instance import Entry, Instance

# scipy has no stubs: from the defaults of its bounds a checker infers float, where arrays are what it wants.

__all__ = ["Optimum", "shortest"]


@dataclass(frozen=True)
class Optimum:
    """The least makespan and a schedule that has it."""

    makespan: int
    entries: tuple[Entry, ...]
    """By task name; `machine` is set where the problem has machines to choose from."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What one binary variable stands for."""

    task: str
    machine: str
    start: int


def shortest(instance: Instance, bound: int) -> Optimum | None:
    """The optimum among schedules that end by `bound`; None when there is none.

    Raises:
        RuntimeError: the solver gave up, or its schedule breaks a rule (it has neither a time limit nor a gap, so
            either is a bug).
    """
    choices = _choices(instance, bound)
    if choices is None:
        return None
    columns = len(choices) + bound
    weight = bound * len(instance.durations) + 1
    result = milp(
        np.array([*(float(choice.start) for choice in choices), *[float(weight)] * bound]),
        constraints=_program(instance, choices, bound),
        integrality=np.ones(columns),
        bounds=Bounds(np.zeros(columns), np.ones(columns)),  # pyright: ignore[reportArgumentType]
        options={"mip_rel_gap": 0.0},
    )
    if result.status == 2:
        return None
    if result.x is None or result.status != 0:
        raise RuntimeError(f"milp stopped with status {result.status}: {result.message}")
    taken = [choice for choice, value in zip(choices, result.x[: len(choices)], strict=True) if value > 0.5]
    says = instance.chooses_machines
    entries = tuple(
        Entry(choice.task, choice.start, choice.machine if says else "")
        for choice in sorted(taken, key=lambda choice: choice.task)
    )
    broken = next((verdict for verdict in verdicts(instance, entries) if not verdict.kept), None)
    if broken is not None:  # solvers have called infeasible points optimal; such a reference must not get out
        raise RuntimeError(f"milp called a schedule optimal that breaks {broken.id}: {broken.problem}")
    return Optimum(int(makespan(instance, entries)), entries)


def _choices(instance: Instance, bound: int) -> list[_Choice] | None:
    """Every start that chains, releases and deadlines leave, on every fitting machine; None: a task has none left."""
    windows = _windows(instance, bound)
    if any(first > last for first, last in windows.values()):
        return None
    return [
        _Choice(task, machine, start)
        for task in instance.tasks
        for machine in instance.machines.get(task, ("",))
        for start in range(windows[task][0], windows[task][1] + 1)
    ]


def _windows(instance: Instance, bound: int) -> dict[str, tuple[int, int]]:
    """First and last start of each task: longest paths over the orders (at most one pass a task is needed)."""
    durations = instance.durations
    first = {task: instance.releases.get(task, 0) for task in instance.tasks}
    last = {task: min(bound, instance.deadlines.get(task, bound)) - durations[task] for task in instance.tasks}
    for _ in instance.tasks:
        for order in instance.orders:
            step = durations[order.before] + order.wait
            first[order.after] = max(first[order.after], first[order.before] + step)
            last[order.before] = min(last[order.before], last[order.after] - step)
    return {task: (first[task], last[task]) for task in instance.tasks}


class _Rows:
    """A sparse matrix, row by row, with the bounds of each row."""

    def __init__(self) -> None:
        self._data: list[float] = []
        self._row: list[int] = []
        self._column: list[int] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def add(self, terms: Mapping[int, float], low: float, high: float) -> None:
        """Adds low ≤ Σ terms[column]·x[column] ≤ high."""
        self._data.extend(terms.values())
        self._column.extend(terms)
        self._row.extend([len(self._low)] * len(terms))
        self._low.append(low)
        self._high.append(high)

    def constraint(self, columns: int) -> LinearConstraint:
        """(rows, columns) as scipy wants it."""
        matrix = coo_array((self._data, (self._row, self._column)), shape=(len(self._low), columns))
        low, high = np.array(self._low), np.array(self._high)
        return LinearConstraint(matrix.tocsr(), low, high)  # pyright: ignore[reportArgumentType]


def _program(instance: Instance, choices: Sequence[_Choice], bound: int) -> LinearConstraint:
    rows = _Rows()
    late = len(choices)  # the columns from here on are y[0..bound-1]
    columns: defaultdict[str, list[int]] = defaultdict(list)
    busy: defaultdict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    people: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for column, choice in enumerate(choices):
        columns[choice.task].append(column)
        need = instance.needs.get(choice.task, 0)
        for time in range(choice.start, choice.start + instance.durations[choice.task]):
            if choice.machine:
                busy[choice.machine, time][column] = 1.0
            if need:
                people[time][column] = float(need)
    for task in instance.tasks:
        rows.add(dict.fromkeys(columns[task], 1.0), 1.0, 1.0)
        for time in range(bound):
            ends_later = [c for c in columns[task] if choices[c].start + instance.durations[task] > time]
            rows.add({**dict.fromkeys(ends_later, 1.0), late + time: -1.0}, -np.inf, 0.0)
    for order in instance.orders:
        step = instance.durations[order.before] + order.wait
        for time in range(bound):
            started = [column for column in columns[order.after] if choices[column].start <= time]
            ended = [column for column in columns[order.before] if choices[column].start <= time - step]
            if started:
                rows.add({**dict.fromkeys(started, 1.0), **dict.fromkeys(ended, -1.0)}, -np.inf, 0.0)
    for terms in busy.values():
        rows.add(terms, -np.inf, 1.0)
    for terms in people.values():
        rows.add(terms, -np.inf, float(instance.crew))
    return rows.constraint(late + bound)
