"""How an episode of knowledge_work goes: what is seen when, what tool and check say, what claims evidence supports."""

from __future__ import annotations

import asyncio

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.executors.protocol import Completion, Purpose
from harness_mdp.mdp import Action, Status, advance, legal_mask, start
from harness_mdp.settings.acting import act
from harness_mdp.settings.knowledge_work import KnowledgeWork
from harness_mdp.settings.prompts import read_sections
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.scripts import script_policy
from tests.runs import run, simulated

SETTING = KnowledgeWork()
STORE = SETTING.tasks(seed=0, n=100, path=None)
HARD = STORE.tasks[-1]
SCRIPTS = ("base", "forced_check", "check_revise", "tool_first", "more_evidence")


class Course:
    """Carries out actions with replies given in advance; keeps every prompt."""

    def __init__(self, task=HARD):
        self.workspace, self.state = Workspace(task), start(SETTING.horizon, SETTING.budgets)
        self.prompts = []

    def act(self, action, *replies):
        left = list(replies)

        async def ask(purpose, messages):
            self.prompts.append((purpose, messages))
            return Completion(left.pop(0), 1, 1, None, 0.0, "stop", "fixed")

        event = asyncio.run(act(SETTING, action, self.workspace, ask))
        self.state = advance(self.state, event)
        return event

    def read_all(self):
        for action in (Action.OBSERVE, Action.OBSERVE, *[Action.RETRIEVE] * 6):
            self.act(action)
        for call in STORE.answers[self.workspace.task.id].tool_calls:
            self.act(Action.CALL_TOOL, call)

    def flags(self):
        return SETTING.flags(self.state)


def test_observe_brings_the_request_then_the_memo_in_force_then_nothing():
    course = Course()
    brought = [course.act(Action.OBSERVE).evidence for _ in range(3)]
    assert brought == [("request", "sources"), (HARD.public["rule"],), ()]
    request, sources = (course.workspace.evidence[name] for name in ("request", "sources"))
    assert all(f"{figure['label']} of {HARD.public['subject']}" in request for figure in HARD.public["figures"])
    assert all(f"{s['id']} {s['title']}" in sources for s in (*HARD.public["tables"], *HARD.public["memos"]))
    assert course.workspace.evidence[HARD.public["rule"]].startswith("Guidance in force: ")


def test_retrieve_brings_two_sources_at_a_time_until_all_are_there():
    course = Course()
    brought = [course.act(Action.RETRIEVE).evidence for _ in range(7)]
    every = [source["id"] for source in (*HARD.public["tables"], *HARD.public["memos"])]
    assert sorted(name for event in brought for name in event) == sorted(every)
    assert [len(event) for event in brought] == [2, 2, 2, 2, 1, 0, 0]


def test_long_tables_are_shown_in_part_and_easy_ones_whole():
    for task in (STORE.tasks[0], HARD):
        course = Course(task)
        course.read_all()
        for table in task.public["tables"]:
            shown = course.workspace.evidence[table["id"]].count("\n") - 1
            assert shown == min(6, len(table["rows"]))
    assert max(len(table["rows"]) for table in STORE.tasks[0].public["tables"]) == 6


def test_tool_is_always_legal_and_the_executor_chooses_the_query():
    course = Course()
    assert legal_mask(SETTING.rules, course.state)[Action.CALL_TOOL]
    call = STORE.answers[HARD.id].tool_calls[0]
    event = course.act(Action.CALL_TOOL, f"I would run `{call}` next.")
    assert (event.tool.valid, event.tool.ok, event.evidence) == (True, True, (call,))
    value = STORE.sealed[HARD.id].values["figures"][0]["value"]
    assert float(course.workspace.evidence[call]) == pytest.approx(value, abs=0.01)
    course.act(Action.CALL_TOOL, call)
    assert call in read_sections(course.prompts[1][1])["Tool results"]
    assert course.flags() == (False, False, False, True)


@pytest.mark.parametrize(
    ("reply", "valid", "message"),
    [
        ("I am sorry, I would need more information to do that.", False, "holds no query"),
        ("sum(T77.amount)", False, "there is no table 'T77'"),
        ("ratio(1, 0)", True, "nothing can be divided by it"),
    ],
)
def test_a_query_that_fails_is_a_tool_error_that_the_next_prompt_shows(reply, valid, message):
    course = Course()
    event = course.act(Action.CALL_TOOL, reply)
    assert (event.status, event.tool.valid, event.tool.ok, event.evidence) == (Status.OK, valid, False, ())
    assert course.state.tool_errors == 1
    course.act(Action.CALL_TOOL, reply)
    assert message in read_sections(course.prompts[1][1])["Tool results"]


def test_the_reference_passes_the_check_once_all_is_read():
    for task in STORE.tasks[::7]:
        course = Course(task)
        text = STORE.answers[task.id].text
        course.read_all()
        course.act(Action.DRAFT, text.reply([0] * len(text.slots)))
        check = course.act(Action.CHECK, "OK").check
        assert (check.score, check.problems) == (1.0, ())
        assert course.state.claims
        assert all(claim.supported for claim in course.state.claims)
        assert course.flags() == (True, True, True, True)


def test_nothing_read_supports_nothing():
    course = Course()
    text = STORE.answers[HARD.id].text
    course.act(Action.DRAFT, text.reply([0] * len(text.slots)))
    assert not any(claim.supported for claim in course.state.claims)
    problems = course.act(Action.CHECK, "OK").check.problems
    assert any("cited but not read" in problem for problem in problems)
    assert any("stands in no source or query result" in problem for problem in problems)


def test_a_query_supports_the_figure_that_it_computes():
    course = Course()
    answer = STORE.answers[HARD.id]
    course.act(Action.DRAFT, answer.text.reply([0] * len(answer.text.slots)))
    for _ in range(6):
        course.act(Action.RETRIEVE)
    label = HARD.public["figures"][-1]["label"]

    def supported():
        return next(c.supported for c in course.state.claims if c.text.startswith(f"{label} of"))

    assert not supported()
    course.act(Action.CALL_TOOL, answer.tool_calls[-1])
    assert supported()


@pytest.mark.parametrize(
    ("draft", "problem"),
    [
        ("## Summary\nGood.", "Findings, Recommendation: section missing or empty"),
        ("## Summary\nGood.", "no source is cited"),
        ("## Findings\n- load: 4 [T9]", "T9: cited, but there is no such source"),
        ("## Findings\n- load: 4711", "4711: stands in no source or query result at hand"),
        ("## Findings\n- load: 4711", "recommendation: has to name one option and no other"),
    ],
)
def test_the_check_names_what_can_be_seen_without_the_reference(draft, problem):
    course = Course()
    course.read_all()
    course.act(Action.DRAFT, draft)
    check = course.act(Action.CHECK, "OK").check
    assert problem in check.problems
    assert check.score < 1.0


def test_a_reply_that_cannot_be_read_leaves_the_draft():
    course = Course()
    course.act(Action.DRAFT, "## Summary\nGood.")
    event = course.act(Action.REVISE, "I am sorry, I would need more information to do that.")
    assert (event.status, course.workspace.artifact) == (Status.ERROR, "## Summary\nGood.")


def test_prompts_are_short_and_hold_only_what_is_at_hand():
    for task in STORE.tasks[::9]:
        course = Course(task)
        text = STORE.answers[task.id].text
        reply = text.reply([1] * len(text.slots))
        course.act(Action.DRAFT, reply)
        course.read_all()
        course.act(Action.CHECK, "- the owner may be wrong")
        course.act(Action.REVISE, reply)
        assert all(sum(len(m.content) for m in messages) < 6000 for _, messages in course.prompts)
        draft, *_, check, revise = [(purpose, read_sections(messages)) for purpose, messages in course.prompts]
        assert (draft[0], set(draft[1])) == (Purpose.DRAFT, {"Task", "Instructions"})
        assert set(check[1]) == {"Task", "Evidence", "Tool results", "Draft", "Instructions"}
        assert set(revise[1]) == {*check[1], "Problems"}
        assert text.read(revise[1]["Draft"]) == [1] * len(text.slots)
        assert draft[1]["Task"].startswith(task.public["title"])


def test_a_path_or_no_tasks_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no benchmark files"):
        SETTING.tasks(seed=0, n=10, path=tmp_path)
    with pytest.raises(ConfigError, match="at least 1"):
        SETTING.tasks(seed=0, n=0, path=None)


@pytest.mark.parametrize("policy", SCRIPTS)
def test_whole_episodes_with_the_simulated_executor(policy):
    tasks = STORE.tasks[::10]
    episodes = run(SETTING, tasks, script_policy(SETTING, policy), simulated(STORE), STORE.sealed, rollouts=4)
    returns = [episode.return_ for episode in episodes]
    assert len(returns) == 40
    assert len(set(returns)) > 5
    assert 0.15 < sum(returns) / len(returns) < 0.95
