"""What the simulated executor can get wrong in DB-Bench is really wrong, and what it gets right is right."""

from __future__ import annotations

import pytest

from harness_mdp.settings.dbbench.draft import read_draft
from harness_mdp.settings.dbbench.scoring import native_score
from harness_mdp.settings.dbbench.setting import DBBench
from harness_mdp.settings.dbbench.sql_worker import SqlResult, sql_pool
from harness_mdp.settings.dbbench.tasks import table_of
from harness_mdp.settings.tasks import TaskStore
from tests.dbbench_files import SHARED, few_records, needs_shared_data, write

SETTING = DBBench()


def scores(store: TaskStore, task, artifacts: list[str]) -> list[float]:
    """The native score of each artifact, as `criteria` computes it, in one round trip to the worker."""
    drafts = [read_draft(text) for text in artifacts]
    results = sql_pool().run(table_of(task), [draft.sql or "SELECT 1" for draft in drafts])
    sealed = store.sealed[task.id].values
    kind, table = task.public["kind"], table_of(task)
    found = []
    for draft, result in zip(drafts, results, strict=True):
        outcome: SqlResult | None = result if draft.sql else None
        found.append(native_score(kind, table, draft.values(outcome), outcome, sealed["label"], sealed["digest"]))
    return found


def single_faults(text):
    for index, slot in enumerate(text.slots):
        for choice in range(1, len(slot.options)):
            yield [choice if i == index else 0 for i in range(len(text.slots))]


def check_answers(store: TaskStore) -> list[str]:
    """Asserts every property; ids of tasks whose reference does not score 1."""
    unreachable = []
    for task in store.tasks:
        text = store.answers[task.id].text
        assert 1 <= len(text.slots) <= 4
        choices = [[0] * len(text.slots), *single_faults(text)]
        for choice in choices:
            artifact = text.render(choice)
            assert SETTING.parse(text.reply(choice)) == artifact
            read = text.read(artifact)
            assert read is not None
            assert text.render(read) == artifact
        right, *wrong = scores(store, task, [text.render(choice) for choice in choices])
        if right < 1.0:
            unreachable.append(task.id)
        assert max(wrong) == 0.0, (task.id, text.render(choices[1 + wrong.index(max(wrong))]))
    return unreachable


@pytest.mark.parametrize("seed", [5])
def test_generated_tasks(seed):
    assert check_answers(SETTING.tasks(seed=seed, n=100, path=None)) == []


def test_records_of_every_sort(tmp_path):
    store = SETTING.tasks(seed=0, n=1, path=write(tmp_path / "mine.jsonl", few_records()))
    assert check_answers(store) == []
    texts = [store.answers[task.id].text.reference for task in store.tasks]
    assert [sorted(key for key in ("sql", "answer") if f'"{key}"' in text) for text in texts] == [
        ["sql"],
        ["answer"],
        ["sql"],
        ["sql"],
        ["sql"],
    ]


@needs_shared_data
@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "unreachable"), [("standard", ["standard-226"]), ("dev", [])])
def test_real_tasks(name, unreachable):
    assert check_answers(SETTING.tasks(seed=0, n=1, path=SHARED / f"{name}.jsonl")) == unreachable


def test_answers_do_not_depend_on_who_asks_first(tmp_path):
    path = write(tmp_path / "mine.jsonl", few_records())
    forward, backward = (SETTING.tasks(seed=0, n=1, path=path) for _ in range(2))
    ids = [task.id for task in forward.tasks]
    first = {task_id: forward.answers[task_id] for task_id in ids}
    second = {task_id: backward.answers[task_id] for task_id in reversed(ids)}
    assert first == second
