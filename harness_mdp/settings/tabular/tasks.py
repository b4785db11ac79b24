"""Generated tasks: two figures of an order to report. The figures differ, the chances of a difficulty do not."""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness_mdp.hashing import generator
from harness_mdp.settings.slots import Slot, SlottedText
from harness_mdp.settings.tabular.world import FIGURES, HELP, evidence_id, skill
from harness_mdp.settings.tasks import Answer, Sealed, Task, TaskStore, difficulties

__all__ = ["MISSING", "TEMPLATES", "draft_text", "generate", "missing_problem"]

MISSING = "TODO"
"""Stands in a draft for a figure that is not there."""

TEMPLATES: Mapping[str, tuple[str, str]] = {
    "shipment": ("boxes", "weight in grams"),
    "harvest": ("rows", "sacks in store"),
    "print": ("sheets", "copies"),
    "tour": ("kilometres", "passengers"),
    "library": ("shelves", "loans of the year"),
}
"""What the two figures are, by template."""


def draft_text(figures: Mapping[str, int | None]) -> str:
    """The canonical draft; None is a missing figure."""
    shown = {name: MISSING if figures[name] is None else figures[name] for name in FIGURES}
    return json.dumps(shown, separators=(",", ":"))


def missing_problem(name: str) -> str:
    """How a review names a missing figure."""
    return f"figure {name} is missing"


def generate(seed: int, n: int) -> TaskStore:
    """`n` tasks from `seed`: a fifth easy, a fifth hard; every template in turn."""
    names = list(TEMPLATES)
    made = [_make(seed, number, level, names[number % len(names)]) for number, level in enumerate(difficulties(n))]
    return TaskStore(
        tasks=tuple(task for task, _, _ in made),
        sealed={task.id: sealed for task, sealed, _ in made},
        answers={task.id: answer for task, _, answer in made},
    )


def _make(seed: int, number: int, level: str, template: str) -> tuple[Task, Sealed, Answer]:
    rng = generator("tabular", seed, number)
    figures = {name: int(rng.integers(1000, 10_000)) for name in FIGURES}
    task = Task(
        id=f"tabular-{seed}-{number:03d}",
        template=template,
        difficulty=level,
        public={"order": number, "meanings": list(TEMPLATES[template]), "record": figures},
    )
    evidence = tuple(evidence_id(name, level) for name in HELP)
    slots = {
        name: Slot(str(figures[name]), (f'"{MISSING}"',), missing_problem(name), helped_by=evidence) for name in FIGURES
    }
    text = SlottedText(('{"a":', slots["a"], ',"b":', slots["b"], "}"), fence="json")
    return task, Sealed(dict(figures)), Answer(text, skill=skill(level))
