"""What if one step of a schedule started when it is planned to? The tool of planning; it asks no executor.

Steps are put in place one by one in the order of their starts. The first that breaks a constraint is named, with the
rule. If none does, the first step that could start earlier, while all others stay, is named, with how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness_mdp.settings.planning.constraints import verdicts
from harness_mdp.settings.planning.instance import Entry, Instance

__all__ = ["WhatIf", "earliest", "what_if", "wrong_machine", "wrong_start"]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What trying a schedule step by step has shown."""

    text: str
    """One line, for the executor."""
    problems: tuple[str, ...] = ()
    """The place and then the rule, or nothing."""


def wrong_start(task: str) -> str:
    """How a fault in a start is named, by the tool as by a reviewer."""
    return f"{task} starts at the wrong time"


def wrong_machine(task: str) -> str:
    """How a fault in the choice of a machine is named."""
    return f"{task} is on the wrong machine"


def what_if(instance: Instance, entries: Sequence[Entry]) -> WhatIf:
    """The first step that cannot start as planned, else the first that could start earlier, else neither."""
    names = [entry.task for entry in entries]
    unusable = [name for name in names if name not in instance.durations or names.count(name) > 1]
    if unusable:
        problem = (
            f"{unusable[0][:20]} is planned twice"
            if unusable[0] in instance.durations
            else f"{unusable[0][:20]} is no task here"
        )
        return WhatIf(f"What if failed: {problem}.", (problem,))
    steps = sorted(entries, key=lambda entry: (entry.start, entry.task))
    for count, step in enumerate(steps, start=1):
        placed = steps[:count]
        broken = next((v for v in verdicts(instance.only([each.task for each in placed]), placed) if not v.kept), None)
        if broken is not None:
            # The steps before this one broke nothing, so this one did.
            place = wrong_machine(step.task) if broken.id == "machine_choice" else wrong_start(step.task)
            return WhatIf(f"What if {step.task} starts at {step.start}: {broken.problem}.", (place, broken.problem))
    for step in steps:
        others = [each for each in steps if each is not step]
        start = earliest(instance.only(names), step, others)
        if start is not None and start < step.start:
            problem = f"{step.task} could start at {start}, {step.start - start} earlier"
            return WhatIf(f"What if {step.task} starts at {step.start}: {problem}.", (wrong_start(step.task), problem))
    return WhatIf("What if: every step keeps the rules, and none can start earlier while the others stay.")


def earliest(instance: Instance, step: Entry, others: Sequence[Entry], limit: int | None = None) -> int | None:
    """The first whole start in [0, limit] at which `step` keeps every rule of `instance`, the others as they are.

    Args:
        instance: has exactly the tasks of `step` and `others`.
        step: what is moved; its machine stays.
        others: the rest of the schedule.
        limit: None: the start of `step`.
    """
    for start in range(int(step.start if limit is None else limit) + 1):
        if all(verdict.kept for verdict in verdicts(instance, [*others, replace(step, start=start)])):
            return start
    return None
