"""Generated multi_tool tasks: shape, references against a second implementation, the rubric slot by slot."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import date, timedelta
from statistics import mean

import pytest

from harness_mdp.hashing import canonical_json
from harness_mdp.scoring.rubric import Scorer
from harness_mdp.settings.multi_tool import MultiTool
from harness_mdp.settings.multi_tool.calls import call_tool, result_id, result_text
from harness_mdp.settings.tasks import split_tasks
from tests.multi_tool_oracle import SOLVERS, solve

SETTING = MultiTool()
STORES = {seed: SETTING.tasks(seed=seed, n=100, path=None) for seed in (0, 1)}
EVERY = [(store, task) for store in STORES.values() for task in store.tasks]


def score(store, task, text: str) -> float:
    return asyncio.run(Scorer(SETTING, store.sealed).score(task, text)).value


def submitted(store, task, reply: str) -> float:
    return score(store, task, SETTING.parse(reply))


def test_the_same_seed_gives_the_same_tasks_and_another_seed_others():
    again = SETTING.tasks(seed=0, n=100, path=None)
    for one, two in zip(STORES[0].tasks, again.tasks, strict=True):
        assert canonical_json([one.id, one.template, one.public]) == canonical_json([two.id, two.template, two.public])
        assert STORES[0].sealed[one.id] == again.sealed[two.id]
        assert STORES[0].answers[one.id] == again.answers[two.id]
    assert {t.hash for t in STORES[0].tasks}.isdisjoint(t.hash for t in STORES[1].tasks)


@pytest.mark.parametrize("n", [100, 10, 50])
def test_a_fifth_is_easy_and_a_fifth_hard(n):
    counts = Counter(task.difficulty for task in SETTING.tasks(seed=3, n=n, path=None).tasks)
    assert counts == {"easy": n // 5, "standard": n - 2 * (n // 5), "hard": n // 5}


def test_every_template_is_in_both_splits():
    for part in ("train", "eval"):
        templates = {task.template for task in split_tasks(STORES[0].tasks) if task.split == part}
        assert templates == set(SOLVERS), part


def test_no_two_tasks_are_the_same_problem():
    for store in STORES.values():
        problems = Counter(
            canonical_json([t.public["details"], t.public["tables"], t.public["title"]]) for t in store.tasks
        )
        assert max(problems.values()) == 1


def test_harder_tasks_have_longer_chains_more_quantities_and_bigger_tables():
    store = STORES[0]
    ranks = ("easy", "standard", "hard")
    groups = [[t for t in store.tasks if t.difficulty == rank] for rank in ranks]
    calls = [{len(store.answers[t.id].tool_calls) for t in group} for group in groups]
    assert calls == [{1}, {3, 4}, {5}]
    slots = [[len(store.answers[t.id].text.slots) for t in group] for group in groups]
    assert mean(slots[0]) < mean(slots[1]) < mean(slots[2])
    assert all(3 <= n <= 8 for group in slots for n in group)
    rows = [mean(sum(len(x["rows"]) for x in t.public["tables"].values()) for t in group) for group in groups]
    assert rows[0] < rows[1] < rows[2]


def test_references_agree_with_a_second_implementation():
    for store, task in EVERY:
        sealed = store.sealed[task.id].values
        expected = {**sealed["steps"], "answer": sealed["answer"]}
        solved = solve(task.template, task.public)
        assert solved.keys() == expected.keys() == {field["name"] for field in task.public["fields"]}, task.id
        for name, value in solved.items():
            if isinstance(value, str):
                assert value == expected[name], (task.id, name)
            else:
                assert value == pytest.approx(expected[name], rel=1e-4, abs=2e-3), (task.id, name)


def test_the_right_calls_give_the_values_of_the_reference_in_order():
    for store, task in EVERY:
        answer = store.answers[task.id]
        outcomes = [call_tool(call, task.public["tables"]) for call in answer.tool_calls]
        assert [outcome.call for outcome in outcomes] == list(answer.tool_calls), "calls are in canonical spelling"
        results = [result_text(outcome.text) for outcome in outcomes]
        required = store.sealed[task.id].values["required"]
        assert len(results) == len(required)
        for result, value in zip(results, required, strict=True):
            assert result == value if isinstance(value, str) else float(result) == value


def test_no_call_hides_behind_another_that_begins_alike():
    for store, task in EVERY:
        answer = store.answers[task.id]
        calls = [*answer.tool_calls, *answer.wrong_tool_calls]
        assert len(set(calls)) == len(calls)
        for right in answer.tool_calls:
            assert [call for call in calls if right in call] == [right], task.id


def test_of_the_wrong_calls_one_gives_nothing_and_the_others_something_else():
    for store, task in EVERY:
        answer = store.answers[task.id]
        *slips, broken = [call_tool(call, task.public["tables"]) for call in answer.wrong_tool_calls]
        assert not broken.ok
        assert all(outcome.ok for outcome in slips)


def test_reference_scores_one_and_every_single_wrong_choice_less():
    for store, task in EVERY:
        text = store.answers[task.id].text
        right = [0] * len(text.slots)
        assert score(store, task, text.reference) == 1.0
        for place, slot in enumerate(text.slots):
            for choice in range(1, len(slot.options)):
                wrong = [*right[:place], choice, *right[place + 1 :]]
                assert score(store, task, text.render(wrong)) < 1.0, (task.id, slot)


def test_drafts_are_canonical_so_that_they_can_be_read_back():
    for store, task in EVERY:
        text = store.answers[task.id].text
        for place, slot in enumerate(text.slots):
            for choice in range(len(slot.options)):
                choices = [0] * len(text.slots)
                choices[place] = choice
                assert SETTING.parse(text.reply(choices)) == text.render(choices)
                assert text.read(text.render(choices)) == choices


def test_a_wrong_answer_scores_below_a_half_even_with_every_step_right():
    for store, task in EVERY:
        text = store.answers[task.id].text
        for choice in range(1, len(text.slots[-1].options)):
            assert score(store, task, text.render([0] * (len(text.slots) - 1) + [choice])) < 0.5


def off_by(value, step):
    """`value` a unit (or a day) beside itself."""
    if isinstance(value, str):
        return f"{date.fromisoformat(value[:10]) + timedelta(days=round(step))}{value[10:]}"
    return round(value + step, 4)


@pytest.mark.parametrize("step", [1, -1])
def test_off_by_one_is_wrong_however_large_the_number(step):
    for store, task in EVERY:
        sealed = store.sealed[task.id].values
        slip = json.dumps({"answer": off_by(sealed["answer"], step), "steps": sealed["steps"]})
        assert submitted(store, task, slip) <= 0.4, task.id
        for name in sealed["steps"]:
            steps = {**sealed["steps"], name: off_by(sealed["steps"][name], step)}
            missed = json.dumps({"answer": sealed["answer"], "steps": steps})
            assert submitted(store, task, missed) < 1.0, (task.id, name)


def test_exact_values_rounded_to_two_decimals_are_right():
    """Worked out without rounding on the way, the last decimals of a long chain differ from what the tools give."""
    for store, task in EVERY:
        exact = solve(task.template, task.public)
        said = {name: value if isinstance(value, str) else round(float(value), 2) for name, value in exact.items()}
        answer = said.pop("answer")
        assert submitted(store, task, json.dumps({"answer": answer, "steps": said})) == 1.0, task.id


def test_an_empty_text_and_an_answer_to_something_else_score_nothing():
    store = STORES[0]
    for task in store.tasks:
        assert score(store, task, "") == 0.0
        assert submitted(store, task, '{"answer": "tomorrow"}') == 0.0


def test_the_answer_alone_is_worth_something_but_not_all():
    store = STORES[0]
    for task in store.tasks:
        answer = store.sealed[task.id].values["answer"]
        assert 0.5 < submitted(store, task, json.dumps({"answer": answer})) < 0.9


def test_the_rubric_is_blind_to_style():
    store = STORES[0]
    for task in store.tasks:
        sealed = store.sealed[task.id].values
        steps = sealed["steps"]
        said = {name: f"{value:,.2f}" if isinstance(value, int | float) else value for name, value in steps.items()}
        answer = sealed["answer"]
        shown = f"{answer:,.3f} " if isinstance(answer, int | float) else answer.replace(" ", "T")
        backwards = dict(reversed(said.items()))
        replies = (
            json.dumps({"answer": shown, "steps": backwards}, indent=4),
            json.dumps({"Answer": shown, **{name.replace("_", " ").title(): v for name, v in said.items()}}),
            json.dumps({"steps": [{"name": n, "value": v} for n, v in said.items()], "answer": {"value": answer}}),
        )
        for reply in replies:
            assert submitted(store, task, f"Here you are:\n```json\n{reply}\n```\nGood luck!") == 1.0, (task.id, reply)


def test_slots_are_helped_by_evidence_that_exists():
    for store, task in EVERY:
        answer = store.answers[task.id]
        there = {"details", "tools", *map(result_id, answer.tool_calls)} | (
            {"tables"} if task.public["tables"] else set()
        )
        helping = {name for slot in answer.text.slots for name in slot.helped_by}
        assert helping <= there
        assert set(map(result_id, answer.tool_calls)) <= helping, "every right call helps some quantity"


def test_the_statement_holds_the_given_quantities_and_no_answer_that_only_tools_give():
    for store, task in EVERY:
        sealed = store.sealed[task.id].values
        answer = sealed["answer"]
        if isinstance(answer, str):
            assert answer not in task.public["details"]
        elif answer != int(answer):
            assert str(answer) not in task.public["details"]
        assert "answer" not in canonical_json([task.public["details"], task.public["tables"]])
