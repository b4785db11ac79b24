"""What every generator owes: the same tasks from the same seed, shares of difficulty, splits that share nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from harness_mdp.executors.protocol import Purpose
from harness_mdp.hashing import canonical_json
from harness_mdp.settings import SETTINGS
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.tasks import Task, split_tasks
from tests.runs import SETTING_NAMES, opened, store_digest

ROOT = Path(__file__).parents[1]
ELSEWHERE = """
import json
from tests.runs import SETTING_NAMES, opened, store_digest
print(json.dumps({name: store_digest(opened(name)[1]) for name in SETTING_NAMES}))
"""

every_setting = pytest.mark.parametrize("name", SETTING_NAMES)


@cache
def digests_of_another_process() -> dict[str, str]:
    """Digest by setting, from one process with another PYTHONHASHSEED, for all settings at once."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def read(name: str, task: Task) -> tuple[str, str]:
    """What there is to read in a task, all of it, and what is the right answer."""
    setting, store = opened(name)
    workspace = Workspace(task)
    for gather in (setting.observe, *((setting.retrieve,) if setting.rules.offers_retrieve else ())):
        while new := [item for item in gather(workspace) if item.id not in workspace.evidence]:
            workspace.evidence.update((item.id, item.text) for item in new)
    prompt = setting.messages(Purpose.DRAFT, workspace)[-1].content
    return prompt + canonical_json(workspace.evidence), store.answers[task.id].text.reference


@every_setting
def test_a_hundred_tasks_are_20_easy_60_standard_20_hard_of_several_templates(name):
    _, store = opened(name)
    assert Counter(task.difficulty for task in store.tasks) == {"easy": 20, "standard": 60, "hard": 20}
    assert len({task.id for task in store.tasks}) == len({task.hash for task in store.tasks}) == 100
    assert len({task.template for task in store.tasks}) >= (5 if name in SETTINGS else 2)
    assert set(store.answers) == {task.id for task in store.tasks}


@every_setting
def test_the_same_seed_gives_the_same_bytes_in_another_process(name):
    assert digests_of_another_process()[name] == store_digest(opened(name)[1])


@every_setting
def test_another_seed_gives_other_tasks(name):
    setting, store = opened(name)
    others = setting.tasks(seed=1, n=5, path=None)
    publics = {canonical_json(task.public) for task in store.tasks}
    assert not [task.id for task in others.tasks if canonical_json(task.public) in publics]


@every_setting
def test_a_fifth_is_for_evaluation_in_every_difficulty_and_shares_no_task_with_training(name):
    _, store = opened(name)
    tasks = split_tasks(store.tasks)
    assert Counter(task.split for task in tasks) == {"train": 80, "eval": 20}
    assert Counter(t.difficulty for t in tasks if t.split == "eval") == {"easy": 4, "standard": 12, "hard": 4}
    instances = {
        split: {(canonical_json(t.public), store.answers[t.id].text.reference) for t in tasks if t.split == split}
        for split in ("train", "eval")
    }
    assert len(instances["train"] & instances["eval"]) == 0
    texts = {split: {read(name, task) for task in tasks if task.split == split} for split in ("train", "eval")}
    assert len(texts["train"] & texts["eval"]) == 0, "no public instance may differ in what nobody reads only"


@every_setting
def test_a_split_by_template_keeps_templates_whole(name):
    _, store = opened(name)
    tasks = split_tasks(store.tasks, by="template")
    homes = {task.template: {t.split for t in tasks if t.template == task.template} for task in tasks}
    assert all(len(splits) == 1 for splits in homes.values())
    assert {task.split for task in tasks} == {"train", "eval"}
    assert sum(task.split == "eval" for task in tasks) >= 20
