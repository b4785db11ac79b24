"""The generator of `multi_tool`: tasks in their public part, the sealed reference, and the answer with its slots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from harness_mdp.hashing import Json, generator
from harness_mdp.settings.multi_tool.chains import Chain, Plan, Quantity, written
from harness_mdp.settings.multi_tool.numbers import read_number
from harness_mdp.settings.multi_tool.templates import TEMPLATES
from harness_mdp.settings.slots import Slot, SlottedText
from harness_mdp.settings.tasks import Answer, Sealed, Task, TaskStore, difficulties

__all__ = ["ANSWER", "generate"]

ANSWER: Final = "answer"


def generate(seed: int, n: int) -> TaskStore:
    """`n` tasks, a fifth easy and a fifth hard, templates in turn; the same seed gives the same tasks byte for byte."""
    counts = Counter(difficulties(n))
    tasks: list[Task] = []
    sealed: dict[str, Sealed] = {}
    answers: dict[str, Answer] = {}
    seen: set[str] = set()
    names = tuple(TEMPLATES)
    for difficulty, count in counts.items():
        for index in range(count):
            identity = f"{difficulty}-{index:03d}"
            template = names[index % len(names)]
            plan = _fresh(seed, difficulty, index, template, seen)
            tasks.append(Task(identity, template, difficulty, _public(plan)))
            sealed[identity] = _sealed(plan)
            answers[identity] = Answer(_slotted(plan), plan.calls, plan.wrong_calls)
    return TaskStore(tuple(tasks), sealed, answers)


def _fresh(seed: int, difficulty: str, index: int, template: str, seen: set[str]) -> Plan:
    """A plan whose statement no task before has; small instances do come twice."""
    attempt = 0
    while True:
        rng = generator("multi_tool", seed, difficulty, index, attempt)
        plan = TEMPLATES[template](Chain(rng), difficulty)
        if plan.details not in seen:
            seen.add(plan.details)
            return plan
        attempt += 1


def _public(plan: Plan) -> dict[str, Json]:
    return {
        "title": plan.title,
        "details": plan.details,
        "tables": plan.tables,
        "fields": [{"name": quantity.name, "kind": quantity.kind} for quantity in plan.quantities],
    }


def _sealed(plan: Plan) -> Sealed:
    """Values by name, and the names of those that only a tool call gives."""
    values = {quantity.name: _json_value(quantity) for quantity in plan.quantities}
    required = [_json_value(quantity) for quantity in plan.quantities if quantity.call]
    answer = values.pop(ANSWER)
    return Sealed({"answer": answer, "steps": values, "required": required})


def _json_value(quantity: Quantity) -> Json:
    number = read_number(quantity.value)
    if quantity.kind != "number" or number is None:
        return quantity.value
    return int(number) if number.denominator == 1 else float(number)


def _slotted(plan: Plan) -> SlottedText:
    """The canonical draft with one slot for every value."""
    *steps, answer = plan.quantities
    parts: list[str | Slot] = ['{"steps":{']
    for place, quantity in enumerate(steps):
        parts += [f"{',' if place else ''}{json.dumps(quantity.name)}:", _slot(quantity)]
    parts += [f'}},"{ANSWER}":', _slot(answer), "}"]
    return SlottedText(parts, "json")


def _slot(quantity: Quantity) -> Slot:
    options: Sequence[str] = [written(quantity.kind, value) for value in (quantity.value, *quantity.wrong)]
    problem = f"{quantity.name}: {quantity.fault}"
    return Slot(options[0], tuple(options[1:]), problem, quantity.helped_by)
