"""Tasks in two parts: a public one for executor and controller, a sealed one for the scorer alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json, digest, generator
from harness_mdp.settings.slots import SlottedText

__all__ = ["Answer", "Difficulty", "Sealed", "Task", "TaskStore", "split_tasks"]

Difficulty = str
"""`easy`, `standard` or `hard`."""


@dataclass(frozen=True)
class Task:
    """What executor, controller and harness may see of one problem."""

    id: str
    """Unique in its setting, stable across runs of the same generator seed or file."""
    template: str
    """Family of tasks that differ in their instance only; `split_by=template` keeps it together."""
    difficulty: Difficulty
    public: Mapping[str, Json]
    """JSON of the setting's own shape."""
    split: str = ""
    """`train` or `eval`; set by `split_tasks`."""

    @cached_property
    def hash(self) -> str:
        """Hash of id, template, difficulty and public part (not the split)."""
        return digest([self.id, self.template, self.difficulty, self.public])


@dataclass(frozen=True)
class Sealed:
    """What only the scorer may see: reference, hidden tests, rubric keys."""

    values: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class Answer:
    """What the simulated executor knows of a task, since it plays the model."""

    text: SlottedText
    tool_calls: tuple[str, ...] = ()
    """Right tool calls, in order, as replies to a tool prompt (settings whose executor chooses tools)."""
    wrong_tool_calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskStore:
    """The tasks of a setting. Hands the parts out separately: `tasks`, `sealed` (scorer), `answers` (simulator)."""

    tasks: tuple[Task, ...]
    sealed: Mapping[str, Sealed] = field(repr=False)
    answers: Mapping[str, Answer] = field(repr=False)

    def __post_init__(self) -> None:
        ids = [task.id for task in self.tasks]
        if len(set(ids)) != len(ids):
            raise ValueError("task ids are not unique")
        if set(self.sealed) != set(ids):
            raise ValueError("sealed parts and tasks do not match")

    def select(self, split: str) -> tuple[Task, ...]:
        """Tasks of `split` (`train`, `eval` or `all`), in store order."""
        if split not in ("train", "eval", "all"):
            raise ConfigError(f"split is {split!r}; expected train, eval or all")
        return tuple(task for task in self.tasks if split in ("all", task.split))


def split_tasks(tasks: Sequence[Task], *, by: str = "task", eval_share: float = 0.2) -> tuple[Task, ...]:
    """The same tasks with their `split` set, 80/20 by default.

    The order in which tasks are dealt is the hash of their content, so the split depends neither on a seed nor
    on the order of a file. `by="task"` is stratified by difficulty: each difficulty gives its share to `eval`.
    `by="template"` sends whole templates to `eval` until the share is reached.

    Raises:
        ConfigError: `by` is unknown, or `template` is asked for and there are fewer than two templates.
    """
    if by == "task":
        evaluation = set(_stratified(tasks, eval_share))
    elif by == "template":
        templates = sorted({task.template for task in tasks})
        if len(templates) < 2:
            raise ConfigError(f"split_by=template needs two templates; these tasks have {templates}")
        evaluation = set(_whole_templates(tasks, templates, eval_share))
    else:
        raise ConfigError(f"split_by is {by!r}; expected task or template")
    return tuple(replace(task, split="eval" if task.id in evaluation else "train") for task in tasks)


def _stratified(tasks: Sequence[Task], share: float) -> Iterable[str]:
    """Each difficulty gives its share, its templates in turn; what rounding leaves goes to the largest remainders."""
    nth: Counter[tuple[str, str]] = Counter()
    turns: dict[str, list[tuple[int, Task]]] = {}
    for task in sorted(tasks, key=_dealt):
        turns.setdefault(task.difficulty, []).append((nth[task.difficulty, task.template], task))
        nth[task.difficulty, task.template] += 1
    strata = {
        difficulty: [task for _, task in sorted(members, key=lambda turn: (turn[0], _dealt(turn[1])))]
        for difficulty, members in turns.items()
    }
    quotas = {difficulty: share * len(members) for difficulty, members in strata.items()}
    seats = {difficulty: int(quota) for difficulty, quota in quotas.items()}
    left = round(share * len(tasks)) - sum(seats.values())
    for difficulty in sorted(strata, key=lambda name: (seats[name] - quotas[name], name))[:left]:
        seats[difficulty] += 1
    for difficulty, members in strata.items():
        yield from (task.id for task in members[: seats[difficulty]])


def _dealt(task: Task) -> str:
    return digest(["split", task.hash])


def _whole_templates(tasks: Sequence[Task], templates: Sequence[str], share: float) -> Iterable[str]:
    order = generator("split", *templates).permutation(len(templates))
    taken: list[str] = []
    for index in order[:-1]:  # the last template always stays for training
        if taken and len(taken) >= share * len(tasks):
            break
        taken.extend(task.id for task in tasks if task.template == templates[index])
    return taken
