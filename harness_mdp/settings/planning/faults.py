"""The reference schedule as text with the places where a model goes wrong: starts, and choices of a machine.

A wrong start is a little early or late, or far too late; a wrong machine is another one of the problem. Each of them
alone lowers the rubric: it breaks a precedence, a capacity or a time limit, or it makes the whole longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from harness_mdp.settings.planning.constraints import DURATIONS, MACHINES, PIECES, verdicts
from harness_mdp.settings.planning.instance import Entry, Instance
from harness_mdp.settings.planning.optimum import Optimum
from harness_mdp.settings.planning.scoring import quality
from harness_mdp.settings.planning.whatif import wrong_machine, wrong_start
from harness_mdp.settings.slots import Slot, SlottedText

__all__ = ["pieces_of", "slotted"]

MAX_WRONG: Final = 3
MAX_MACHINE_SLOTS: Final = 2
_NEAR: Final = 3
"""Wrong starts lie up to so far from the right one, where such a start is wrong at all."""


def slotted(instance: Instance, optimum: Optimum, count: int, rng: np.random.Generator) -> SlottedText:
    """The canonical text of the optimum's schedule with up to `count` slots."""
    entries = optimum.entries
    starts: dict[str, Slot] = {}
    machines: dict[str, Slot] = {}
    for index in rng.permutation(len(entries)):
        entry = entries[int(index)]
        slot = _machine_slot(instance, optimum, entry, rng)
        if slot is not None and len(machines) < MAX_MACHINE_SLOTS:
            machines[entry.task] = slot
    for index in rng.permutation(len(entries)):
        entry = entries[int(index)]
        slot = _start_slot(instance, optimum, entry, rng)
        if slot is not None and len(starts) + len(machines) < count:
            starts[entry.task] = slot
    return SlottedText(list(_parts(entries, starts, machines)), fence="json")


def pieces_of(instance: Instance, entries: Sequence[Entry], task: str) -> tuple[str, ...]:
    """Evidence that states something about `task`: its duration always, and its constraints."""
    bound = {verdict.piece for verdict in verdicts(instance, entries) if task in verdict.tasks}
    return tuple(piece for piece in PIECES if piece == DURATIONS or piece in bound)


def _parts(entries: Sequence[Entry], starts: dict[str, Slot], machines: dict[str, Slot]) -> Iterator[str | Slot]:
    """Literal text and slots that make the same text as `draft.schedule_text`."""
    yield '{"schedule": ['
    for number, entry in enumerate(entries):
        yield f'{", " if number else ""}{{"task": "{entry.task}", "start": '
        yield starts.get(entry.task, str(entry.start))
        if entry.machine:
            yield ', "machine": "'
            yield machines.get(entry.task, entry.machine)
            yield '"'
        yield "}"
    yield "]}"


def _start_slot(instance: Instance, optimum: Optimum, entry: Entry, rng: np.random.Generator) -> Slot | None:
    start = int(entry.start)
    near = [value for value in range(max(0, start - _NEAR), start + _NEAR + 1) if value != start]
    far = range(start + _NEAR + 1, optimum.makespan + 1)  # the last of these ends after the optimum
    wrong = [value for value in near if _lowers(instance, optimum, replace(entry, start=value))]
    if not wrong:
        wrong = [value for value in far if _lowers(instance, optimum, replace(entry, start=value))][:1]
    early = [value for value in wrong if value < start]
    late = [value for value in wrong if value > start]
    # Both kinds, where both are there, then whatever is left.
    picks = [group[int(rng.integers(len(group)))] for group in (early, late) if group]
    rest = [value for value in wrong if value not in picks]
    picks += [rest[int(i)] for i in rng.permutation(len(rest))[: MAX_WRONG - len(picks)]]
    if not picks:
        return None
    helped_by = pieces_of(instance, optimum.entries, entry.task)
    return Slot(str(start), tuple(map(str, sorted(picks))), wrong_start(entry.task), helped_by)


def _machine_slot(instance: Instance, optimum: Optimum, entry: Entry, rng: np.random.Generator) -> Slot | None:
    others = [name for name in instance.machine_names if name != entry.machine] if entry.machine else []
    wrong = [name for name in others if _lowers(instance, optimum, replace(entry, machine=name))]
    if not wrong:
        return None
    picks = sorted(wrong[int(i)] for i in rng.permutation(len(wrong))[:MAX_WRONG])
    return Slot(entry.machine, tuple(picks), wrong_machine(entry.task), (DURATIONS, MACHINES))


def _lowers(instance: Instance, optimum: Optimum, changed: Entry) -> bool:
    entries = [changed if entry.task == changed.task else entry for entry in optimum.entries]
    return quality(instance, entries, optimum.makespan) < 1.0
