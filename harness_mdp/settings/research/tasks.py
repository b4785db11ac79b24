"""Research tasks from a seed: a question over a small corpus whose answer is known by construction.

Six templates. easy: one fact of one document, among few short ones. standard: more documents, and questions that
need two or three of them. hard: longer chains, comparisons through a bridge, more candidates, longer documents.
Every answer is a name or year that stands in a supporting document, so that a check can look for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np

from harness_mdp.hashing import Json, generator
from harness_mdp.settings.research.world import RELATIONS, Document, World
from harness_mdp.settings.slots import Slot, SlottedText
from harness_mdp.settings.tasks import Answer, Sealed, Task, TaskStore, difficulties

__all__ = ["TEMPLATES", "generate", "hit_id"]


@dataclass(frozen=True)
class Shape:
    """How large the corpus of a difficulty is."""

    documents: tuple[int, int]
    """Fewest and most."""
    sentences: int


SHAPES: Final[Mapping[str, Shape]] = {
    "easy": Shape((6, 8), 2),
    "standard": Shape((10, 13), 3),
    "hard": Shape((15, 18), 3),
}


@dataclass(frozen=True)
class Plan:
    """A question with what it takes to answer it."""

    question: str
    answer: str
    kind: str
    """Kind of the answer: `year` or a kind of entity."""
    needs: tuple[tuple[str, tuple[str, ...]], ...]
    """Supporting entities, each with the relations of it that are needed."""
    decoys: tuple[str, ...] = ()
    """Entities of the corpus that look like supporting ones and are not."""


Maker = Callable[[World, str], Plan]
T = TypeVar("T")

_ONE_HOP: Final = (
    ("ship", "builder", "Which company built the {0}?"),
    ("ship", "captain", "Who is the captain of the {0}?"),
    ("ship", "port", "Which town is the home port of the {0}?"),
    ("book", "author", "Who wrote {0}?"),
    ("bridge", "designer", "Who designed the {0}?"),
    ("company", "seat", "In which town is {0} based?"),
    ("company", "founder", "Who started {0}?"),
    ("town", "river", "On which river does {0} lie?"),
    ("person", "birthplace", "In which town was {0} born?"),
)
_ONE_HOP_YEAR: Final = (
    ("ship", "launched", "In which year was the {0} launched?"),
    ("book", "published", "In which year was {0} published?"),
    ("bridge", "opened", "In which year was the {0} opened?"),
    ("company", "established", "In which year was {0} established?"),
    ("town", "founded", "In which year was {0} founded?"),
    ("person", "born", "In which year was {0} born?"),
)
# Each chain: the kind of the named entity, then (relation, kind of what it leads to), and the question.
_CHAINS_2: Final = (
    ("book", (("author", "person"), ("birthplace", "town")), "In which town was the author of {0} born?"),
    ("book", (("author", "person"), ("born", "year")), "In which year was the author of {0} born?"),
    ("ship", (("builder", "company"), ("seat", "town")), "In which town is the company based that built the {0}?"),
    ("ship", (("captain", "person"), ("birthplace", "town")), "In which town was the captain of the {0} born?"),
    ("company", (("seat", "town"), ("river", "river")), "On which river lies the town where {0} is based?"),
    ("company", (("founder", "person"), ("born", "year")), "In which year was the founder of {0} born?"),
    ("bridge", (("designer", "person"), ("employer", "company")), "Which company employed the designer of the {0}?"),
)
_CHAINS_3: Final = (
    (
        "book",
        (("author", "person"), ("birthplace", "town"), ("river", "river")),
        "On which river lies the town where the author of {0} was born?",
    ),
    (
        "ship",
        (("builder", "company"), ("founder", "person"), ("birthplace", "town")),
        "In which town was the founder of the company born that built the {0}?",
    ),
    (
        "ship",
        (("captain", "person"), ("birthplace", "town"), ("founded", "year")),
        "In which year was the town founded where the captain of the {0} was born?",
    ),
    (
        "bridge",
        (("designer", "person"), ("employer", "company"), ("seat", "town")),
        "In which town is the company based that employed the designer of the {0}?",
    ),
)
_COMPARED: Final = (
    ("ship", "launched", "Which ship was launched {when}, the {a} or the {b}?"),
    ("book", "published", "Which book was published {when}, {a} or {b}?"),
    ("bridge", "opened", "Which bridge was opened {when}, the {a} or the {b}?"),
    ("company", "established", "Which company was established {when}, {a} or {b}?"),
    ("town", "founded", "Which town was founded {when}, {a} or {b}?"),
)
_COMPARED_BY: Final = (
    ("book", "author", "person", "born", "Which book has the author who was born {when}, {a} or {b}?"),
    ("ship", "builder", "company", "established", "Which ship has the builder established {when}, the {a} or the {b}?"),
    ("bridge", "designer", "person", "born", "Which bridge has the designer who was born {when}, the {a} or the {b}?"),
)
# Members of a group: kind, relation to the group, kind of the group, year that ranks them, question; and a relation of
# the winner with the question for it.
_GROUPS: Final = (
    ("ship", "builder", "company", "launched", "Which of the ships built by {0} was launched {when}?",
     "captain", "Who is the captain of the ship built by {0} that was launched {when}?"),
    ("book", "author", "person", "published", "Which of the books written by {0} was published {when}?",
     "scene", "In which town is the book by {0} set that was published {when}?"),
    ("bridge", "designer", "person", "opened", "Which of the bridges designed by {0} was opened {when}?",
     "spans", "Which river does the bridge designed by {0} cross that was opened {when}?"),
)  # fmt: skip


def _one_hop_name(world: World, difficulty: str) -> Plan:
    return _one_hop(world, _ONE_HOP, difficulty)


def _one_hop_year(world: World, difficulty: str) -> Plan:
    return _one_hop(world, _ONE_HOP_YEAR, difficulty)


def _one_hop(world: World, forms: Sequence[tuple[str, str, str]], _difficulty: str) -> Plan:
    kind, relation, question = _pick(world, forms)
    target = RELATIONS[kind][relation][0][0]
    answer = world.fresh(target)
    name = world.add(kind, facts={relation: answer})
    return Plan(question.format(name), answer, target, ((name, (relation,)),))


def _bridge(world: World, difficulty: str) -> Plan:
    kind, links, question = _pick(world, _CHAINS_3 if difficulty == "hard" else _CHAINS_2)
    start = name = world.fresh(kind)
    needs: list[tuple[str, tuple[str, ...]]] = []
    for relation, target in links:
        reached = world.fresh(target)
        world.add(kind, name, facts={relation: reached})
        needs.append((name, (relation,)))
        kind, name = target, reached
    return Plan(question.format(start), name, kind, tuple(needs))


def _comparison(world: World, difficulty: str) -> Plan:
    earlier, later = world.years(2)
    ascending = bool(world.rng.random() < 0.5)
    when = "earlier" if ascending else "later"
    if difficulty == "hard":
        kind, link, through, relation, question = _pick(world, _COMPARED_BY)
        pair: list[str] = []
        needs: list[tuple[str, tuple[str, ...]]] = []
        for year in (earlier, later):
            middle = world.add(through, facts={relation: year})
            pair.append(world.add(kind, facts={link: middle}))
            needs += [(pair[-1], (link,)), (middle, (relation,))]
    else:
        kind, relation, question = _pick(world, _COMPARED)
        pair = [world.add(kind, facts={relation: year}) for year in (earlier, later)]
        needs = [(name, (relation,)) for name in pair]
    shown = [pair[i] for i in world.rng.permutation(2)]
    text = question.format(when=when, a=shown[0], b=shown[1])
    return Plan(text, pair[0] if ascending else pair[1], kind, tuple(needs))


def _superlative(world: World, difficulty: str) -> Plan:
    kind, link, group_kind, year, question, wanted, further = _pick(world, _GROUPS)
    group = world.fresh(group_kind)
    first = bool(world.rng.random() < 0.5)
    when = "first" if first else "last"
    years = world.years(4 if difficulty == "hard" else 3)
    winner = years[0] if first else years[-1]
    if difficulty == "hard":
        target = RELATIONS[kind][wanted][0][0]
        values = {y: world.fresh(target) for y in years}
        names = {y: world.add(kind, facts={link: group, year: y, wanted: values[y]}) for y in years}
        asked, answer = further, values[winner]
    else:
        target = kind
        names = {y: world.add(kind, facts={link: group, year: y}) for y in years}
        asked, answer = question, names[winner]
    needs = tuple((names[y], (link, year, wanted) if y == winner and target != kind else (link, year)) for y in years)
    return Plan(asked.format(group, when=when), answer, target, needs)


def _temporal(world: World, difficulty: str) -> Plan:
    """Who held an office in a year: several terms that follow each other; the right one has to be read."""
    town = world.fresh("town")
    hard = difficulty == "hard"
    edges = [int(world.rng.integers(1750, 1900))]
    for _ in range(4 if hard else 3):
        edges.append(edges[-1] + int(world.rng.integers(4, 13)))
    terms = list(pairwise(edges))
    names = [world.add("person", facts={"mayor": (town, str(a), str(b))}) for a, b in terms]
    index = int(world.rng.integers(len(terms)))
    year = int(world.rng.integers(terms[index][0] + 1, terms[index][1]))
    needs = ((names[index], ("mayor",)),)
    if not hard:
        question = f"Who was mayor of {town} in {year}?"
    else:
        river = world.fresh("river")
        world.add("town", town, facts={"river": river})
        needs = ((town, ("river",)), *needs)
        question = f"In {year}, who was mayor of the town that lies on the {river}?"
    decoys = tuple(name for name in names if name != names[index])
    return Plan(question, names[index], "person", needs, decoys)


TEMPLATES: Final[Mapping[str, Maker]] = {
    "one_hop_name": _one_hop_name,
    "one_hop_year": _one_hop_year,
    "bridge": _bridge,
    "comparison": _comparison,
    "superlative": _superlative,
    "temporal": _temporal,
}
_OFFERED: Final[Mapping[str, tuple[str, ...]]] = {
    "easy": ("one_hop_name", "one_hop_year"),
    "standard": tuple(TEMPLATES),
    "hard": ("bridge", "comparison", "superlative", "temporal"),
}


def generate(seed: int, n: int) -> TaskStore:
    """`n` tasks, a fifth easy and a fifth hard, templates in turn; the same seed gives the same tasks byte for byte."""
    counts = Counter(difficulties(n))
    tasks: list[Task] = []
    sealed: dict[str, Sealed] = {}
    answers: dict[str, Answer] = {}
    asked: set[str] = set()
    for difficulty, number in counts.items():
        for index in range(number):
            template = _OFFERED[difficulty][index % len(_OFFERED[difficulty])]
            task_id = f"{difficulty}-{index:03d}"
            task, sealed[task_id], answers[task_id] = _new(task_id, template, difficulty, seed, asked)
            asked.add(task.public["question"])
            tasks.append(task)
    return TaskStore(tuple(tasks), sealed, answers)


def _new(task_id: str, template: str, difficulty: str, seed: int, asked: set[str]) -> tuple[Task, Sealed, Answer]:
    """A task whose question was not asked yet; invented names repeat now and then."""
    attempt = 0
    while True:
        made = _make(task_id, template, difficulty, generator("research", seed, task_id, attempt))
        if made[0].public["question"] not in asked:
            return made
        attempt += 1


def _make(task_id: str, template: str, difficulty: str, rng: np.random.Generator) -> tuple[Task, Sealed, Answer]:
    shape = SHAPES[difficulty]
    world = World(rng, shape.sentences)
    plan = TEMPLATES[template](world, difficulty)
    size = int(rng.integers(shape.documents[0], shape.documents[1] + 1))
    fillers = _add_distractors(world, plan, size - len(world.entities))
    documents = world.documents()
    supporting = [documents[name] for name, _ in plan.needs]
    others = [documents[name] for name in (*plan.decoys, *fillers)]
    rivals = _rivals(world, plan)
    public: dict[str, Json] = {
        "question": plan.question,
        "kind": plan.kind,
        "documents": [{"id": d.id, "title": d.title, "text": d.text, "lead": d.lead} for d in documents.values()],
    }
    sealed = Sealed({"answer": plan.answer, "supporting": [d.id for d in supporting], "rivals": rivals})
    text = _slotted(plan, supporting, others, rivals, rng)
    return Task(task_id, template, difficulty, public), sealed, Answer(text)


def _add_distractors(world: World, plan: Plan, count: int) -> list[str]:
    """Documents of the same kinds that state the same relations, about other things; their names."""
    kinds = {entity.name: entity.kind for entity in world.entities}
    models = [(kinds[name], relations) for name, relations in plan.needs]
    names: list[str] = []
    for index in range(count):
        kind, relations = models[index % len(models)]
        facts: dict[str, str | tuple[str, ...]] = {r: world.fresh_values(kind, r) for r in relations}
        names.append(world.add(kind, facts=facts))
    return names


def _rivals(world: World, plan: Plan) -> list[str]:
    """Names or years of the answer's kind that the corpus holds or the question offers, but the answer."""
    named = {name for name, _ in plan.needs}
    return [v for v in world.used[plan.kind] if v != plan.answer and (v in named or v not in plan.question)]


def _slotted(
    plan: Plan,
    supporting: Sequence[Document],
    others: Sequence[Document],
    rivals: Sequence[str],
    rng: np.random.Generator,
) -> SlottedText:
    """The right answer with its faults: a rival named, a source left out or mistaken, a source too many.

    Answer and superfluous sources are helped by the open documents that hold the facts; a source also by its hit,
    which prompts show until a document is open.
    """
    named = {name for name, _ in plan.needs} | set(plan.decoys)
    near = [rival for rival in rivals if rival in named]
    wrong: list[str] = near or [rivals[int(i)] for i in rng.permutation(len(rivals))[:3]]
    opened = tuple(document.id for document in supporting)
    ids = [document.id for document in others]
    parts: list[str | Slot] = [Slot(plan.answer, tuple(wrong[:3]), "the answer may be wrong", opened)]
    for number, document in enumerate(supporting, start=1):
        mistaken = ("", f" [{ids[number - 1]}]")
        problem = f"source {number} may be missing or mistaken"
        parts.append(Slot(f" [{document.id}]", mistaken, problem, (hit_id(document.id), document.id)))
    spare = tuple(f" [{name}]" for name in ids[len(supporting) : len(supporting) + 2])
    parts.append(Slot("", spare, "a source may not belong there", opened))
    return SlottedText(parts)


def _pick(world: World, options: Sequence[T]) -> T:
    return options[int(world.rng.integers(len(options)))]


def hit_id(document_id: str) -> str:
    """Evidence id of the retrieval hit for a document."""
    return document_id.replace("doc-", "hit-")
