"""The dbbench setting, action by action, and whole episodes of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from harness_mdp.executors.protocol import Completion, Purpose
from harness_mdp.executors.simulated import SimulatedExecutor
from harness_mdp.executors.skill import skill_profile
from harness_mdp.mdp import Action, Event, advance, legal_mask, start
from harness_mdp.runner import EpisodePlan, run_episode
from harness_mdp.scoring.rubric import Scorer
from harness_mdp.settings.acting import act
from harness_mdp.settings.dbbench.setting import DBBench
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.scripts import script_policy
from harness_mdp.settings.tasks import Sealed
from tests.dbbench_files import few_records, record, write

SETTING = DBBench()


@pytest.fixture
def store(tmp_path):
    return SETTING.tasks(seed=0, n=1, path=write(tmp_path / "mine.jsonl", few_records()))


def replying(*texts: str):
    """An `Ask` that gives the texts in turn, and remembers the prompts."""
    left = list(texts)

    async def ask(purpose, messages):
        ask.prompts.append((purpose, messages[-1].content))
        return Completion(left.pop(0), 1, 1, 0.0, 0.0, "stop", "scripted")

    ask.prompts = []
    return ask


def play(task, *steps):
    """Events, final state and prompts of `(action, reply)` steps; a bare action asks nothing."""
    workspace = Workspace(task)
    state = start(SETTING.horizon, SETTING.budgets)
    events: list[Event] = []
    prompts = []
    for step in steps:
        action, *replies = step if isinstance(step, tuple) else (step,)
        ask = replying(*replies)
        event = asyncio.run(act(SETTING, action, workspace, ask))
        events.append(event)
        prompts.extend(ask.prompts)
        state = advance(state, event)
    return events, state, prompts, workspace


def test_evidence_comes_once_each(store):
    task = store.tasks[0]
    actions = [Action.OBSERVE, Action.OBSERVE, Action.RETRIEVE, Action.RETRIEVE, Action.RETRIEVE]
    events, state, _, workspace = play(task, *actions)
    assert [event.evidence for event in events] == [("schema",), (), ("sample",), ("values",), ()]
    assert "`Hockey Teams`, 3 rows" in workspace.evidence["schema"]
    assert "`Home ground`" in workspace.evidence["schema"]
    assert "- Oslo Bears | 1999 | Valle" in workspace.evidence["sample"]
    assert "- `Year` = 1999" in workspace.evidence["values"]
    assert SETTING.flags(state) == (True, True, False, False)


def test_without_a_matching_word_the_distinct_values_of_columns_are_shown(tmp_path):
    path = write(tmp_path / "x.jsonl", [record(question="Say something about the year")])
    task = SETTING.tasks(seed=0, n=1, path=path).tasks[0]
    *_, workspace = play(task, Action.RETRIEVE, Action.RETRIEVE)
    assert "- `Year`: 1999, 2004" in workspace.evidence["values"]


def test_the_tool_needs_a_draft():
    assert not legal_mask(SETTING.rules, start(10))[Action.CALL_TOOL]


def test_the_tool_shows_rows(store):
    events, state, _, workspace = play(
        store.tasks[0],
        (Action.DRAFT, "SELECT Team FROM `Hockey Teams` WHERE Year = 2004"),
        Action.CALL_TOOL,
    )
    tool = events[1].tool
    assert (tool.name, tool.valid, tool.ok, tool.version, tool.problems) == ("run_sql", True, True, 1, ())
    assert workspace.tool_results == [
        ("tool1", "run_sql: 2 rows\ncolumns: Team\n- Bergen Owls\n- Malmö FF"),
    ]
    assert SETTING.flags(state) == (False, False, True, False)


def test_the_tool_shows_changed_rows_and_leaves_the_table_alone(store):
    draft = "UPDATE `Hockey Teams` SET Year = '1' WHERE Team = 'Oslo Bears'"
    events, _, _, workspace = play(store.tasks[3], (Action.DRAFT, draft), Action.CALL_TOOL, Action.CALL_TOOL)
    texts = [text for _, text in workspace.tool_results]
    assert texts[0] == texts[1]
    assert "1 row added, 1 row removed" in texts[0]
    assert "+ Oslo Bears | 1 | Valle" in texts[0]
    assert events[1].tool.problems == ()


@pytest.mark.parametrize(
    ("draft", "valid", "ok", "problem"),
    [
        ("SELECT Nope FROM `Hockey Teams`", True, False, "SQL error: no such column: Nope"),
        ("SELECT Team FROM `Hockey Teams` WHERE Year = '3'", True, True, "the SQL returns no row"),
        ('{"answer": ["Oslo Bears"]}', False, False, "the draft has no SQL to run"),
    ],
)
def test_the_tool_names_what_is_wrong(store, draft, valid, ok, problem):
    events, state, _, _ = play(store.tasks[0], (Action.DRAFT, draft), Action.CALL_TOOL)
    tool = events[1].tool
    assert (tool.valid, tool.ok, tool.problems) == (valid, ok, (problem,))
    assert state.open_problems == 1
    assert SETTING.flags(state)[3]


def check(task, draft, review="OK"):
    events, *_ = play(task, (Action.DRAFT, draft), (Action.CHECK, review))
    return events[1].check


@pytest.mark.parametrize(
    ("index", "draft", "problem"),
    [
        (0, "SELECT Nope FROM `Hockey Teams`", "SQL error: no such column: Nope"),
        (0, "DELETE FROM `Hockey Teams`", "the SQL begins with DELETE; the task asks for SELECT"),
        (0, "SELECT Team FROM `Hockey Teams` WHERE Year = 'x'", "the SQL returns no row"),
        (0, '{"answer": []}', "there is no answer"),
        (
            0,
            '{"sql": "SELECT Team FROM `Hockey Teams`", "answer": ["Oslo"]}',
            "the answer differs from the rows of the SQL",
        ),
        (1, "SELECT Team FROM `Hockey Teams`", "the question asks for one number; the answer has 3 values"),
        (1, '{"answer": ["Oslo"]}', "the question asks for a number; the answer is not one"),
        (2, "INSERT INTO `Hockey Teams` SELECT 1, 2, 3 WHERE 0", "INSERT shall add rows; added 0, removed 0"),
        (2, '{"answer": ["done"]}', "the draft has no SQL; the task asks for INSERT"),
        (3, "UPDATE `Hockey Teams` SET Year = 1 WHERE 0 = 1", "UPDATE shall change rows; changed 0"),
        (4, "DELETE FROM `Hockey Teams` WHERE Year = 'x'", "DELETE shall remove rows; added 0, removed 0"),
    ],
)
def test_check_names_what_can_be_seen_without_the_reference(store, index, draft, problem):
    result = check(store.tasks[index], draft)
    assert problem in result.problems
    assert result.score < 1.0


def test_check_passes_the_references(store):
    for task in store.tasks:
        assert check(task, store.answers[task.id].text.reference).score == 1.0


def test_self_review_counts_as_one_item(store):
    draft = store.answers["mine-1"].text.reference
    result = check(store.tasks[0], draft, "- the condition may be wrong")
    assert result.problems == ("the condition may be wrong",)
    assert result.score == pytest.approx(3 / 4)


def test_a_claim_is_supported_by_what_was_seen(store):
    draft = (Action.DRAFT, "SELECT Team FROM `Hockey Teams` WHERE Year = '1999'")
    _, blind, _, _ = play(store.tasks[0], draft)
    assert [(claim.text, claim.supported) for claim in blind.claims] == [
        ("column Team", False),
        ("column Year", False),
        ("value 1999", False),
    ]
    _, seen, _, _ = play(store.tasks[0], draft, Action.OBSERVE)
    assert [claim.supported for claim in seen.claims] == [True, True, False]
    _, all_seen, _, _ = play(store.tasks[0], draft, Action.OBSERVE, Action.RETRIEVE)
    assert [claim.supported for claim in all_seen.claims] == [True, True, True]


def test_an_answer_is_supported_by_the_tool_that_showed_it(store):
    draft = '{"sql": "SELECT Team FROM `Hockey Teams` WHERE Year = 1999", "answer": ["Oslo Bears"]}'
    _, state, _, _ = play(store.tasks[0], (Action.DRAFT, draft), Action.CALL_TOOL)
    assert ("answer Oslo Bears", True) in [(claim.text, claim.supported) for claim in state.claims]


def test_values_that_a_change_writes_are_no_claims(store):
    text = store.answers["mine-3"].text.reference
    _, state, _, _ = play(store.tasks[2], (Action.DRAFT, text))
    assert state.claims == ()


def test_a_reply_that_cannot_be_read_leaves_the_draft(store):
    events, state, _, workspace = play(
        store.tasks[0], (Action.DRAFT, "SELECT Team FROM `Hockey Teams`"), (Action.REVISE, "I cannot.")
    )
    assert events[1].error == "parse"
    assert state.version == 1
    assert workspace.artifact == '{"sql":"SELECT Team FROM `Hockey Teams`"}'


def test_prompts_are_short_even_for_wide_tables_and_long_results(tmp_path):
    columns = [f"column number {i} with a long name" for i in range(40)]
    line = record()
    line["table"]["table_info"] = {
        "columns": [{"name": name} for name in columns],
        "rows": [["a rather long cell that goes on and on " * 5] * 40] * 50,
    }
    task = SETTING.tasks(seed=0, n=1, path=write(tmp_path / "wide.jsonl", [line])).tasks[0]
    steps = [Action.OBSERVE, Action.RETRIEVE, Action.RETRIEVE, (Action.DRAFT, "SELECT * FROM `Hockey Teams`")]
    _, _, prompts, _ = play(task, *steps, *[Action.CALL_TOOL] * 5, (Action.REVISE, "SELECT 1 FROM t"))
    assert prompts[-1][0] is Purpose.REVISE
    assert len(prompts[-1][1]) < 5_500


def plan(task, policy, rollout=0, executor="x"):
    return EpisodePlan(
        run="test",
        phase="collect",
        setting=SETTING,
        task=task,
        policy=script_policy(SETTING, policy),
        executor=executor,
        seed=0,
        rollout=rollout,
        horizon=SETTING.horizon,
        budgets=SETTING.budgets,
    )


def episode(store, task, policy, rollout=0, profile="strong", sealed=None):
    executor = SimulatedExecutor(
        skill_profile(profile), store.answers, {each.id: each.difficulty for each in store.tasks}
    )
    scorer = Scorer(SETTING, sealed or store.sealed)
    return asyncio.run(run_episode(plan(task, policy, rollout, executor.fingerprint), executor, scorer))


@pytest.mark.parametrize("policy", ["base", "forced_check", "check_revise", "tool_first", "more_evidence"])
def test_every_script_ends_with_a_scored_answer(store, policy):
    returns = [episode(store, task, policy, rollout).return_ for task in store.tasks for rollout in range(4)]
    assert set(returns) <= {0.0, 1.0}
    assert 1.0 in returns


def test_sealed_values_change_returns_and_nothing_else(store):
    other = {name: Sealed({"label": ["no such answer"], "digest": "0" * 32}) for name in store.sealed}
    for task in store.tasks:
        true = episode(store, task, "check_revise", profile="weak")
        blind = episode(store, task, "check_revise", profile="weak", sealed=other)
        assert blind.return_ == 0.0
        untimed = [[replace(step.event, seconds=0.0) for step in each.steps] for each in (true, blind)]
        assert untimed[0] == untimed[1]
        assert (true.artifacts, true.final_artifact) == (blind.artifacts, blind.final_artifact)


def test_the_wrong_answer_scores_nothing_and_the_right_one_all(store):
    for task in store.tasks:
        text = store.answers[task.id].text
        scorer = Scorer(SETTING, store.sealed)
        assert asyncio.run(scorer.score(task, text.reference)).value == 1.0
        assert asyncio.run(scorer.score(task, text.render([1] * len(text.slots)))).value == 0.0


def test_claims_tell_1_from_1_0_whatever_was_asked_before(store):
    texts = []
    for draft in ('{"answer": [1]}', '{"answer": [1.0]}', '{"answer": [1]}'):
        _, state, _, _ = play(store.tasks[1], (Action.DRAFT, draft))
        texts.append([claim.text for claim in state.claims])
    assert texts == [["answer 1"], ["answer 1.0"], ["answer 1"]]
