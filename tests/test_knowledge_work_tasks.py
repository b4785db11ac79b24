"""The generator of knowledge_work: what tasks there are, that they are right, and that faults show."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from harness_mdp.hashing import canonical_json, digest
from harness_mdp.scoring.rubric import rubric_value
from harness_mdp.settings import open_setting
from harness_mdp.settings.knowledge_work import KnowledgeWork
from harness_mdp.settings.knowledge_work.query import evaluate, parse_query
from harness_mdp.settings.knowledge_work.sources import tables_of
from harness_mdp.settings.tasks import split_tasks
from tests.knowledge_oracle import solve

SETTING = KnowledgeWork()
STORE = SETTING.tasks(seed=0, n=100, path=None)
SEEDS = [STORE, *(SETTING.tasks(seed=seed, n=100, path=None) for seed in (1, 2))]


def score(task, artifact, store=STORE):
    return rubric_value(asyncio.run(SETTING.criteria(task, store.sealed[task.id], artifact)))


def with_wrong(text, *places, option=1):
    choices = [0] * len(text.slots)
    for place in places:
        choices[place] = option
    return choices


def test_the_setting_is_found_by_name():
    assert isinstance(open_setting("knowledge_work"), KnowledgeWork)


def test_a_fifth_is_easy_and_a_fifth_hard():
    for n, expected in ((100, (20, 60, 20)), (10, (2, 6, 2)), (1, (0, 1, 0))):
        found = Counter(task.difficulty for task in SETTING.tasks(seed=3, n=n, path=None).tasks)
        assert (found["easy"], found["standard"], found["hard"]) == expected
    assert [STORE.tasks[i].id for i in (0, 20, 99)] == ["easy-000", "standard-020", "hard-099"]


def test_every_template_is_in_both_splits():
    tasks = split_tasks(STORE.tasks, by="task")
    templates = {task.template for task in tasks}
    assert len(templates) == 7
    for split in ("train", "eval"):
        assert {task.template for task in tasks if task.split == split} == templates


def test_a_difficulty_is_more_to_read_and_more_places_to_go_wrong():
    sizes = {}
    for task in STORE.tasks:
        rows = sum(len(table["rows"]) for table in task.public["tables"])
        size = (len(STORE.answers[task.id].text.slots), len(task.public["memos"]), rows)
        sizes.setdefault(task.difficulty, []).append(size)
    easy, standard, hard = ([sum(column) / len(column) for column in zip(*sizes[d], strict=True)] for d in sizes)
    assert all(a < b < c for a, b, c in zip(easy, standard, hard, strict=True))
    assert {d: {s[0] for s in found} for d, found in sizes.items()} == {"easy": {4}, "standard": {6}, "hard": {8}}


def test_the_same_seed_gives_the_same_tasks_and_another_seed_others():
    def content(store):
        return [
            canonical_json([dict(t.public), dict(store.sealed[t.id].values), store.answers[t.id].text.reference])
            for t in store.tasks
        ]

    again = SETTING.tasks(seed=0, n=100, path=None)
    assert content(again) == content(STORE)
    assert not set(content(STORE)) & set(content(SEEDS[1]))


def test_no_two_tasks_share_instance_question_and_answer():
    keys = [digest([dict(t.public), store.answers[t.id].text.reference]) for store in SEEDS for t in store.tasks]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("store", SEEDS)
def test_references_agree_with_a_second_solution(store):
    for task in store.tasks:
        values, solution = store.sealed[task.id].values, solve(task.public)
        for figure in values["figures"]:
            assert figure["value"] == pytest.approx(solution.figures[figure["label"]])
        assert (values["limit"]["value"], values["stance"]) == (solution.limit, solution.stance)
        assert (values["decision"], values["owner"]) == (solution.decision, solution.owner)


def test_the_wrong_memo_turns_the_decision():
    for task in STORE.tasks:
        values = STORE.sealed[task.id].values
        key = next(f["value"] for f in values["figures"] if f["key"])
        for rival in values["limit"]["rivals"]:
            assert (key > rival) != (key > values["limit"]["value"])


def test_tool_calls_compute_the_figures():
    for task in STORE.tasks:
        tables, answer = tables_of(task.public), STORE.answers[task.id]
        values = [evaluate(parse_query(call, tables), tables) for call in answer.tool_calls]
        assert values == [figure["value"] for figure in STORE.sealed[task.id].values["figures"]]
        assert all(str(parse_query(call, tables)) == call for call in answer.tool_calls)


@pytest.mark.parametrize("store", SEEDS)
def test_the_reference_scores_1_and_every_single_fault_less(store):
    for task in store.tasks:
        text = store.answers[task.id].text
        assert score(task, text.reference, store) == 1.0
        for place, slot in enumerate(text.slots):
            for option in range(1, len(slot.options)):
                fault = score(task, text.render(with_wrong(text, place, option=option)), store)
                assert fault < 1.0, (task.id, slot)
                if slot.problem == "the decision may not follow the rule":
                    assert fault < 0.5


def test_a_plausible_wrong_brief_scores_below_half():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        figures = [i for i, slot in enumerate(text.slots) if slot.correct[:1].isdigit()]
        decision = next(i for i, slot in enumerate(text.slots) if "follow the rule" in slot.problem)
        assert score(task, text.render(with_wrong(text, *range(len(text.slots))))) < 0.15
        assert score(task, text.render(with_wrong(text, *figures))) < 0.5, "right by luck"
        assert score(task, text.render(with_wrong(text, 0, decision))) < 0.5, "the wrong side of the limit"


def test_a_draft_reads_back_as_written():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        for place, slot in enumerate(text.slots):
            for option in range(len(slot.options)):
                choices = with_wrong(text, place, option=option)
                assert SETTING.parse(text.reply(choices)) == text.render(choices)
                assert text.read(text.render(choices)) == choices


def test_what_helps_a_slot_is_a_source_or_query_that_holds_it():
    for task in STORE.tasks:
        tables = tables_of(task.public)
        sources = {s["id"] for s in (*task.public["tables"], *task.public["memos"])}
        bodies = {m["id"]: m["body"] for m in task.public["memos"]}
        answer = STORE.answers[task.id]
        for slot in answer.text.slots:
            assert slot.helped_by
            assert set(slot.helped_by) <= sources | set(answer.tool_calls)
            if slot.problem.startswith(("the decision", "the owner", "another limit")):
                assert slot.correct in bodies[slot.helped_by[0]]
            elif slot.correct[:1].isdigit():
                value = evaluate(parse_query(slot.helped_by[0], tables), tables)
                assert f"{value:,.1f}".startswith(slot.correct.rstrip("%"))


def test_labels_of_a_task_can_be_told_apart():
    for task in STORE.tasks:
        labels = [set(figure["label"].split()) for figure in task.public["figures"]]
        assert all(a is b or not a <= b for a in labels for b in labels)
