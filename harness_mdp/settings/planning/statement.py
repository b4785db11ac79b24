"""The words in which a problem is put to a model: the task's text, and the four pieces of evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from harness_mdp.executors.protocol import Purpose
from harness_mdp.settings.planning.constraints import DURATIONS, MACHINES, ORDER, PIECES, TIMES
from harness_mdp.settings.planning.instance import Instance
from harness_mdp.settings.protocol import Evidence

__all__ = ["PLANNER", "REVIEWER", "instructions", "pieces", "task_text"]

PLANNER: Final = "You plan schedules. Reply with one JSON object and nothing else."
REVIEWER: Final = "You review a schedule. Be short."


def task_text(title: str, instance: Instance) -> str:
    """What is asked; the rules themselves are evidence."""
    machine = " and a machine" if instance.chooses_machines else ""
    return (
        f"{title} Tasks: {', '.join(instance.tasks)}. Give each task a start (a whole number from 0 on){machine}. "
        "Keep all rules on durations, order, machines and times. The last task shall end as early as possible."
    )


def instructions(purpose: Purpose, instance: Instance) -> str:
    """What to reply, and in which form."""
    if purpose is Purpose.CHECK:
        return (
            "Compare the draft with the rules. If it keeps them and is short, reply OK. Otherwise name one problem per "
            'line, each line starting with "- ".'
        )
    first, second = instance.tasks[:2]
    # A placeholder: which machines there are is evidence that may not have been observed yet.
    machine = ', "machine": "<machine>"' if instance.chooses_machines else ""
    example = (
        f'{{"schedule": [{{"task": "{first}", "start": 0{machine}}}, {{"task": "{second}", "start": 1{machine}}}]}}'
    )
    todo = (
        "Plan all tasks."
        if purpose is Purpose.DRAFT
        else "Correct the draft: solve the problems named, keep the rest. Plan all tasks."
    )
    return f"{todo} Reply with JSON of this form, one entry per task: {example}"


def pieces(instance: Instance) -> tuple[Evidence, ...]:
    """All that is stated, one piece for each of `PIECES`, in that order."""
    texts = {
        DURATIONS: f"Durations: {_listed(instance.durations)}.",
        ORDER: " ".join(_orders(instance)) or "No task has to wait for another.",
        MACHINES: " ".join(_machines(instance)) or "No task needs a machine.",
        TIMES: " ".join(_times(instance)) or "There are no time limits.",
    }
    return tuple(Evidence(piece, texts[piece]) for piece in PIECES)


def _listed(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _orders(instance: Instance) -> list[str]:
    return [
        f"{order.after} starts {f'at least {order.wait} after' if order.wait else 'after'} {order.before} has ended."
        for order in instance.orders
    ]


def _machines(instance: Instance) -> list[str]:
    said: list[str] = []
    users: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for task, machines in instance.machines.items():
        users[machines].append(task)
    for machines, tasks in sorted(users.items()):
        said.append(f"{', '.join(tasks)}: on {' or '.join(machines)}.")
    if users:
        said.append(f"{', '.join(instance.machine_names)}: one task at a time.")
    if instance.crew:
        said.append(f"The crew has {instance.crew} people. People needed: {_listed(instance.needs)}.")
    return said


def _times(instance: Instance) -> list[str]:
    said = [f"{task} cannot start before {release}." for task, release in instance.releases.items()]
    return said + [f"{task} has to end by {deadline}." for task, deadline in instance.deadlines.items()]
