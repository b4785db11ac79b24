"""Scheduling worked out a second time, from the public JSON alone and without the code under test.

Feasibility is counted minute by minute. The optimum is found by trying: tasks are put in place one after another in
every sequence and on every machine, each as early as it can be. Every rule here is only ever eased by starting
earlier, so some such schedule is a shortest one.
"""

from __future__ import annotations

import json


def starts_of(artifact: str) -> dict[str, tuple[int, str]]:
    """Task -> (start, machine) of a canonical text."""
    return {row["task"]: (row["start"], row.get("machine", "")) for row in json.loads(artifact)["schedule"]}


def feasible(public: dict, plan: dict[str, tuple[int, str]], *, whole: bool = True) -> bool:
    """The plan keeps every rule; with `whole` off, of the tasks that it has."""
    if whole and set(plan) != set(public["durations"]):
        return False
    busy: set[tuple[str, int]] = set()
    people: dict[int, int] = {}
    for task, (start, named) in plan.items():
        end = start + public["durations"][task]
        if start < public["releases"].get(task, 0) or end > public["deadlines"].get(task, end):
            return False
        able = public["machines"].get(task, [])
        machine = named or (able[0] if len(able) == 1 else "")
        if able and machine not in able:
            return False
        for minute in range(start, end):
            if able and (machine, minute) in busy:
                return False
            busy.add((machine, minute))
            people[minute] = people.get(minute, 0) + public["needs"].get(task, 0)
            if public["crew"] and people[minute] > public["crew"]:
                return False
    return all(
        plan[after][0] >= plan[before][0] + public["durations"][before] + wait
        for before, after, wait in public["orders"]
        if before in plan and after in plan
    )


def length(public: dict, plan: dict[str, tuple[int, str]]) -> int:
    return max(start + public["durations"][task] for task, (start, _) in plan.items())


def ends_by(public: dict, bound: int) -> bool:
    """Some schedule that keeps every rule ends by `bound`."""
    tried: set[frozenset] = set()

    def place(plan: dict[str, tuple[int, str]]) -> bool:
        if len(plan) == len(public["durations"]):
            return True
        key = frozenset(plan.items())
        if key in tried:
            return False
        tried.add(key)
        for task, duration in public["durations"].items():
            before = {b for b, after, _ in public["orders"] if after == task}
            if task in plan or not before <= set(plan):
                continue
            for machine in public["machines"].get(task, [""]):
                starts = range(bound - duration + 1)
                tries = ({**plan, task: (start, machine)} for start in starts)
                step = next((each for each in tries if feasible(public, each, whole=False)), None)
                if step is not None and place(step):
                    return True
        return False

    return place({})


def optimum(public: dict, limit: int) -> int:
    """The least makespan, at most `limit`."""
    return next(bound for bound in range(1, limit + 1) if ends_by(public, bound))
