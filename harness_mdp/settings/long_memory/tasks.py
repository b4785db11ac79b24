"""Generates the tasks of `long_memory` from a seed: a fifth easy, a fifth hard; the seven templates take turns.

A harder task has more sessions, facts that change more often, more people with the same thing, more values that were
only talked about, and a second question: so more places to go wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from harness_mdp.hashing import Json, generator
from harness_mdp.settings.long_memory.diary import Diary, Level
from harness_mdp.settings.long_memory.draft import Finding, draft_text
from harness_mdp.settings.long_memory.queries import Kind, Query, full_question
from harness_mdp.settings.long_memory.reading import statements
from harness_mdp.settings.long_memory.sessions import Log, snippet
from harness_mdp.settings.long_memory.templates import MAKERS, Plan
from harness_mdp.settings.long_memory.words import ACTIVITIES
from harness_mdp.settings.slots import Slot, SlottedText
from harness_mdp.settings.tasks import Answer, Difficulty, Sealed, Task, TaskStore, difficulties

__all__ = ["LEVELS", "generate", "hit_id", "queries_of"]

LEVELS: Final[Mapping[Difficulty, Level]] = {
    "easy": Level((30, 36), changes=1, others=1, considered=0, questions=(1,)),
    "standard": Level((38, 48), changes=2, others=2, considered=1, questions=(1, 2)),
    "hard": Level((50, 60), changes=3, others=3, considered=2, questions=(2,)),
}
MAX_WRONG: Final = 3


def hit_id(number: int) -> str:
    """Evidence id of a search hit; the open session is `S12`."""
    return f"hit-S{number}"


def queries_of(task: Task) -> tuple[Query, ...]:
    """The questions of a task."""
    return tuple(Query.read(query) for query in task.public["queries"])


@lru_cache(maxsize=4)
def generate(seed: int, n: int) -> TaskStore:
    """`n` different tasks, the same for the same seed; made once in a process. Ids as `standard-017`."""
    made = [_make(seed, index, difficulty) for index, difficulty in enumerate(difficulties(n))]
    return TaskStore(
        tuple(task for task, _, _ in made),
        {task.id: sealed for task, sealed, _ in made},
        {task.id: answer for task, _, answer in made},
    )


def _make(seed: int, index: int, difficulty: Difficulty) -> tuple[Task, Sealed, Answer]:
    rng, level = generator("long_memory", seed, index), LEVELS[difficulty]
    kind = list(Kind)[index % len(Kind)]
    diary = Diary(f"{seed}-{index}", level, rng)
    # The templates are an odd number, so every one comes with each number of questions.
    count = level.questions[index % len(level.questions)]
    plans = [MAKERS[kind](diary), *(MAKERS[Kind.CURRENT](diary) for _ in range(count - 1))]
    diary.small_talk()
    question = full_question([plan.query for plan in plans])
    public: dict[str, Json] = {
        "question": question,
        "asked_on": diary.asked_on,
        "queries": [plan.query.public() for plan in plans],
        "log_seed": diary.seed,
        "sessions": diary.public(),
    }
    log = diary.log()
    sealed = Sealed({"answers": [_key(plan, log) for plan in plans]})
    parts: list[str | Slot] = []
    for number, plan in enumerate(plans, start=1):
        place = f" of answer {number}" if count > 1 else ""
        parts += ["\n"] if parts else []
        parts += _slotted(plan, log, question, place, rng)
    text = SlottedText(parts, fence="json")
    return Task(f"{difficulty}-{index:03d}", kind.value, difficulty, public), sealed, Answer(text)


def _key(plan: Plan, log: Log) -> dict[str, Json]:
    """What the rubric needs: the answer, the sessions that show it, their dates, and what else is not to be named."""
    return {
        "answer": plan.answer,
        "sessions": [f"S{number}" for number in plan.right],
        "dates": [log.date(number) for number in plan.right],
        "rivals": list(dict.fromkeys(said.value for said in plan.wrong if said.value != plan.answer)),
    }


def _slotted(plan: Plan, log: Log, question: str, place: str, rng: np.random.Generator) -> list[str | Slot]:
    """The draft line of one answer, with its three places for a fault: value, session, date."""
    reference = plan.right[-1]
    values = list(dict.fromkeys(said.value for said in plan.wrong if said.value != plan.answer))[:MAX_WRONG]
    misleading = [said.number for said in plan.wrong] + [int(n) + 1 for n in rng.permutation(len(log))]
    numbers = list(dict.fromkeys(n for n in misleading if n not in plan.right))[:MAX_WRONG]
    known = tuple(name for number in plan.needed for name in _read_in(log, number, plan.query, question))
    source = _read_in(log, reference, plan.query, question)
    marks = draft_text([Finding("\0", "\0", "\0")]).split("\\u0000")
    return [
        marks[0],
        Slot(plan.answer, tuple(values), f"the value{place} may be outdated or mistaken", known),
        marks[1],
        Slot(f"S{reference}", tuple(f"S{n}" for n in numbers), f"the session{place} may be another one", source),
        marks[2],
        Slot(
            log.date(reference),
            tuple(log.date(n) for n in numbers),
            f"the date{place} may be another one",
            (hit_id(reference), f"S{reference}"),
        ),
        marks[3],
    ]


def _read_in(log: Log, number: int, query: Query, question: str) -> tuple[str, ...]:
    """Evidence in which the statement of a session can be read: the open session, and its hit if it shows it."""
    topics = {query.thing, query.role, *query.options}
    shown = statements(snippet(log.write(number), question))
    if any(said.thing in topics and (said.value or said.thing in ACTIVITIES) for said in shown):
        return (hit_id(number), f"S{number}")
    return (f"S{number}",)
