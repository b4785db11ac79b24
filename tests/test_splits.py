"""Tasks are dealt to train and eval by their content: stratified, templates in turn, or whole templates."""

from __future__ import annotations

from collections import Counter

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.settings.tasks import Task, split_tasks

TASKS = tuple(
    Task(f"t{i}", f"template-{i % 7}", ("easy", "standard", "standard", "standard", "hard")[i % 5], {"question": i})
    for i in range(100)
)


def test_each_difficulty_gives_a_fifth() -> None:
    counts = Counter((task.difficulty, task.split) for task in split_tasks(TASKS))
    assert counts == {
        ("easy", "train"): 16,
        ("easy", "eval"): 4,
        ("standard", "train"): 48,
        ("standard", "eval"): 12,
        ("hard", "train"): 16,
        ("hard", "eval"): 4,
    }


def test_every_template_is_in_both_splits() -> None:
    dealt = {(task.template, task.split) for task in split_tasks(TASKS)}
    assert len(dealt) == 14


def test_the_split_does_not_depend_on_the_order_of_the_tasks() -> None:
    one = {task.id: task.split for task in split_tasks(TASKS)}
    assert {task.id: task.split for task in split_tasks(TASKS[::-1])} == one


def test_few_tasks_give_their_whole_share_too() -> None:
    assert sum(task.split == "eval" for task in split_tasks(TASKS[:10])) == 2


def test_split_by_template_keeps_templates_whole() -> None:
    split = split_tasks(TASKS, by="template")
    for template in {task.template for task in TASKS}:
        assert len({task.split for task in split if task.template == template}) == 1
    assert 20 <= sum(task.split == "eval" for task in split) <= 40


def test_one_template_cannot_be_split_by_template() -> None:
    with pytest.raises(ConfigError, match="two templates"):
        split_tasks(TASKS[::7], by="template")
