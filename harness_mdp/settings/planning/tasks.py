"""Generates the tasks of `planning` from a seed: a fifth easy, a fifth hard, the rest standard; templates take turns.

A harder task has more tasks to plan, longer durations, more time limits, and more places to go wrong. The optimum is
found once, here, and sealed. A draw is thrown away when a lazy schedule (all at 0, or one after another by name) would
score half or more: then there would be little to plan.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import digest, generator
from harness_mdp.settings.planning.draft import schedule_text
from harness_mdp.settings.planning.faults import slotted
from harness_mdp.settings.planning.instance import Entry, Instance
from harness_mdp.settings.planning.optimum import Optimum, shortest
from harness_mdp.settings.planning.scoring import quality
from harness_mdp.settings.planning.templates import SHAPES, TEMPLATES, Template, make
from harness_mdp.settings.tasks import Answer, Difficulty, Sealed, Task, TaskStore, difficulties

__all__ = ["generate", "lazy_schedules"]

ATTEMPTS: Final = 200
LAZY_BELOW: Final = 0.5


@lru_cache(maxsize=8)
def generate(seed: int, n: int) -> TaskStore:
    """`n` different tasks, the same for the same seed; made once in a process. Ids as `standard-017`.

    Raises:
        ConfigError: there are not so many different ones.
    """
    tasks: list[Task] = []
    sealed: dict[str, Sealed] = {}
    answers: dict[str, Answer] = {}
    seen: set[str] = set()
    for index, difficulty in enumerate(difficulties(n)):
        template = TEMPLATES[index % len(TEMPLATES)]
        instance, optimum = _fresh(template, difficulty, seed, index, seen)
        task = Task(
            id=f"{difficulty}-{index:03d}",
            template=template.name,
            difficulty=difficulty,
            public={"title": template.title, **instance.public()},
        )
        rng = generator("planning", "slots", seed, index)
        fewest, most = SHAPES[difficulty].slots
        answers[task.id] = Answer(slotted(instance, optimum, int(rng.integers(fewest, most + 1)), rng))
        sealed[task.id] = Sealed({"optimum": optimum.makespan, "reference": schedule_text(optimum.entries)})
        tasks.append(task)
    return TaskStore(tuple(tasks), sealed, answers)


def lazy_schedules(instance: Instance) -> tuple[tuple[Entry, ...], ...]:
    """What takes no planning: all at 0, and one after another by name; each on the first fitting machine."""
    machines = {task: names[0] for task, names in instance.machines.items()}
    at_once = tuple(Entry(task, 0, machines.get(task, "")) for task in instance.tasks)
    row: list[Entry] = []
    time = 0
    for task in instance.tasks:
        row.append(Entry(task, time, machines.get(task, "")))
        time += instance.durations[task]
    return at_once, tuple(row)


def _fresh(
    template: Template, difficulty: Difficulty, seed: int, index: int, seen: set[str]
) -> tuple[Instance, Optimum]:
    """A problem that did not occur yet and takes planning; draws again until there is one."""
    for attempt in range(ATTEMPTS):
        rng = generator("planning", seed, index, attempt)
        instance, bound = make(template, SHAPES[difficulty], rng)
        key = digest(instance.public())
        if key in seen:
            continue
        optimum = shortest(instance, bound)
        if optimum is None:
            raise RuntimeError(f"planning {template.name}, seed {seed}, task {index}: no schedule ends by {bound}")
        if _takes_planning(instance, optimum):
            seen.add(key)
            return instance, optimum
    raise ConfigError(
        f"the generator of planning found only {len(seen)} different tasks for seed {seed}; ask for fewer"
    )


def _takes_planning(instance: Instance, optimum: Optimum) -> bool:
    scores = (quality(instance, lazy, optimum.makespan) for lazy in lazy_schedules(instance))
    return all(score < LAZY_BELOW for score in scores)
