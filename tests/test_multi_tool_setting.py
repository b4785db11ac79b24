"""The multi_tool setting, action by action, and whole episodes of it."""

from __future__ import annotations

import asyncio
import json
import re
from statistics import mean

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.executors.protocol import Completion, DrawKey, Purpose, Request
from harness_mdp.executors.reply import estimated_tokens
from harness_mdp.mdp import Action, Event, advance, legal_mask, start
from harness_mdp.settings.acting import act
from harness_mdp.settings.multi_tool import MultiTool
from harness_mdp.settings.multi_tool.calls import result_id
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.scripts import SCRIPTS, script_policy
from tests.runs import run, simulated

SETTING = MultiTool()
STORE = SETTING.tasks(seed=0, n=100, path=None)
TASKS = {task.id: task for task in STORE.tasks}
OBSERVE, TOOL, DRAFT, CHECK, REVISE = Action.OBSERVE, Action.CALL_TOOL, Action.DRAFT, Action.CHECK, Action.REVISE


def play(task, *steps):
    """Events, states and prompts of `(action, reply)` steps; a bare action asks nothing."""
    workspace, state = Workspace(task), start(SETTING.horizon, SETTING.budgets)
    events: list[Event] = []
    states, prompts = [state], []
    for step in steps:
        action, reply = step if isinstance(step, tuple) else (step, None)

        async def ask(purpose, messages, reply=reply):
            prompts.append(messages[-1].content)
            return Completion(reply, 1, 1, 0.0, 0.0, "stop", "scripted")

        events.append(asyncio.run(act(SETTING, action, workspace, ask)))
        state = advance(state, events[-1])
        states.append(state)
    return events, states, prompts, workspace


def solved(identity: str):
    """A task, its right calls and its reference."""
    answer = STORE.answers[identity]
    return TASKS[identity], answer.tool_calls, answer.text.reference


def trip():
    """A standard task of template trip_cost."""
    task, _, _ = solved("standard-000")
    assert task.template == "trip_cost"
    return task


def test_statement_then_tools_then_tables_are_observed():
    task, _, _ = solved("standard-000")
    events, states, _, workspace = play(task, OBSERVE, OBSERVE, OBSERVE, OBSERVE)
    assert [event.evidence for event in events] == [("details",), ("tools",), ("tables",), ()]
    assert workspace.evidence["details"] == task.public["details"]
    assert "add_business_days" in workspace.evidence["tools"]
    assert workspace.evidence["tables"] == "fuel (4 rows): country, diesel, petrol. EUR a litre"
    assert [SETTING.flags(state)[0] for state in states] == [False, False, True, True, True]


def test_a_task_without_tables_has_two_things_to_observe():
    events, *_ = play(solved("easy-000")[0], OBSERVE, OBSERVE, OBSERVE)
    assert [event.evidence for event in events] == [("details",), ("tools",), ()]


def test_a_tool_may_be_called_at_once_and_nothing_is_retrieved():
    mask = legal_mask(SETTING.rules, start(10))
    assert mask[TOOL]
    assert not mask[Action.RETRIEVE]
    with pytest.raises(ValueError, match="not offered"):
        SETTING.retrieve(Workspace(solved("easy-000")[0]))


def test_the_executor_chooses_the_call_and_reads_its_result():
    pound = '{"tool": "convert", "args": {"value": 1, "from": "lb", "to": "g"}}'
    events, states, prompts, workspace = play(trip(), (TOOL, "calculator: 12 * 7"), (TOOL, pound), (TOOL, "none"))
    assert [(e.tool.name, e.tool.valid, e.tool.ok, e.tool.version) for e in events] == [
        ("calculator", True, True, 0),
        ("convert", True, True, 0),
        ("none", False, False, 0),
    ]
    assert workspace.tool_results == [
        ("tool1", "calculator: 12 * 7 = 84"),
        ("tool2", "convert: 1 lb to g = 453.5924"),
        ("tool3", "no call: the reply names none of calculator, convert, calendar, table"),
    ]
    first = result_id("calculator: 12 * 7")
    assert events[0].evidence == (first,)
    assert f"[{first}] see tool1" in prompts[2]
    assert "[tool2] convert: 1 lb to g = 453.5924" in prompts[2]
    assert [SETTING.flags(state)[1:3] for state in states] == [
        (False, False),
        (True, False),
        (True, False),
        (True, True),
    ]
    assert states[-1].tool_errors == 1


def test_the_same_call_twice_brings_nothing_new():
    events, states, _, _ = play(trip(), (TOOL, "calculator: 12 * 7"), (TOOL, "calculator: 12*7"))
    assert events[1].tool.ok
    assert events[1].evidence == ()
    assert SETTING.flags(states[-1])[2]


def test_evidence_ids_do_not_tell_right_calls_from_wrong_ones():
    for identity in ("easy-000", "standard-003", "hard-004"):
        answer = STORE.answers[identity]
        replies = [(TOOL, call) for call in (*answer.tool_calls, *answer.wrong_tool_calls)]
        events, *_ = play(TASKS[identity], *replies)
        gathered = [name for event in events for name in event.evidence]
        assert len(gathered) == len(replies) - 1
        assert all(re.fullmatch(r"result-[0-9a-f]{6}", name) for name in gathered)


def test_a_reference_worked_out_with_tools_passes_the_check_and_is_supported():
    for identity in TASKS:
        task, calls, reference = solved(identity)
        steps = [OBSERVE, *((TOOL, call) for call in calls), (DRAFT, reference), (CHECK, "OK")]
        events, states, _, _ = play(task, *steps)
        assert events[-1].check.problems == (), identity
        assert events[-1].check.score == 1.0
        assert states[-1].claims
        assert all(claim.supported for claim in states[-1].claims)
        assert all(len(claim.text) <= 80 for claim in states[-1].claims)
        assert states[-1].claims[0].text.startswith("answer = ")
        assert SETTING.flags(states[-1])[3]


def test_a_value_that_no_tool_gave_is_named():
    task, calls, reference = solved("standard-000")
    events, states, _, _ = play(task, OBSERVE, (TOOL, calls[0]), (DRAFT, reference), (CHECK, "OK"))
    problems = [f"{name} is in no tool result nor in the statement" for name in ("answer", "litres", "eur_per_litre")]
    assert list(events[-1].check.problems) == problems
    assert events[-1].check.score == pytest.approx(3 / 6)
    assert [claim.supported for claim in states[-1].claims] == [False, True, False, False]
    assert not SETTING.flags(states[-1])[3]


def test_numbers_that_the_executor_put_into_a_call_support_nothing():
    _, states, _, _ = play(trip(), (TOOL, "calculator: 43.94 * 1000"), (DRAFT, '{"answer": 43.94}'))
    assert not states[-1].claims[0].supported


def test_a_claim_gains_support_when_a_tool_gives_it():
    events, states, _, _ = play(trip(), (DRAFT, '{"answer": 84}'), (TOOL, "calculator: 12 * 7"))
    assert [state.claims[0].supported for state in states[1:]] == [False, True]
    assert events[1].claims is not None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"answer": "soon"}, "answer is not a number"),
        ({"steps": {"litres": 3}}, "distance_km is missing; eur_per_litre is missing"),
    ],
)
def test_the_form_asked_for_is_checked(change, problem):
    task, _, reference = solved("standard-000")
    events, *_ = play(task, (DRAFT, json.dumps(json.loads(reference) | change)), (CHECK, "OK"))
    assert problem in events[-1].check.problems


def test_a_date_has_to_be_a_date():
    task, _, reference = solved("easy-001")
    events, *_ = play(task, (DRAFT, json.dumps(json.loads(reference) | {"answer": "Friday"})), (CHECK, "OK"))
    assert "answer is not of the form YYYY-MM-DD" in events[-1].check.problems


def test_problems_reach_the_revision_and_the_draft_stays_when_it_cannot_be_read():
    task, _, reference = solved("standard-000")
    events, states, prompts, workspace = play(
        task, (DRAFT, reference), (CHECK, "- litres: the consumption may be applied wrong"), (REVISE, "I cannot.")
    )
    assert "- litres: the consumption may be applied wrong" in prompts[-1]
    assert '"answer": <number>' in prompts[-1]
    assert events[-1].error == "parse"
    assert (states[-1].version, workspace.artifact) == (1, reference)


def test_prompts_are_short():
    for identity in TASKS:
        task, calls, reference = solved(identity)
        many = [(TOOL, call) for call in calls] + [(TOOL, "calculator: 1 / 0")] * (7 - len(calls))
        *_, prompts, _ = play(task, OBSERVE, OBSERVE, OBSERVE, *many, (DRAFT, reference), (CHECK, "OK"))
        assert max(estimated_tokens(len(prompt)) for prompt in prompts) < 900


def test_tool_first_calls_until_nothing_new_comes_then_drafts():
    task, calls, _ = solved("easy-000")
    first = SETTING.scripts["tool_first"]
    _, states, _, _ = play(task, OBSERVE, (TOOL, calls[0]), (TOOL, calls[0]))
    assert [first(state, SETTING.rules) for state in states] == [OBSERVE, TOOL, TOOL, DRAFT]
    _, states, _, _ = play(task, OBSERVE, *((TOOL, f"calculator: {i}") for i in range(4)), (DRAFT, '{"answer": 1}'))
    assert [first(state, SETTING.rules) for state in states[-2:]] == [DRAFT, Action.SUBMIT]


def test_bad_requests_for_tasks_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no benchmark files"):
        SETTING.tasks(seed=0, n=10, path=tmp_path)
    with pytest.raises(ConfigError, match="at least 1"):
        SETTING.tasks(seed=0, n=0, path=None)


def episodes(script: str, rollouts: int = 1, n: int = 100):
    tasks = STORE.tasks[:: 100 // n]
    return run(SETTING, tasks, script_policy(SETTING, script), simulated(STORE), STORE.sealed, rollouts=rollouts)


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_simulated_episodes_end_scored_and_spread(script):
    done = episodes(script, n=50)
    returns = [episode.return_ for episode in done]
    assert len(done) == 50
    assert 0.15 < mean(returns) < 0.95
    assert len(set(returns)) > 5


def test_the_simulated_executor_mostly_calls_the_right_tools():
    calls = [e.tool for episode in episodes("tool_first", n=50) for e in episode.events if e.tool is not None]
    assert mean(tool.ok for tool in calls) > 0.85
    assert {tool.name for tool in calls} >= {"calculator", "convert", "calendar", "table"}


def test_results_at_hand_mean_fewer_faults():
    with_tools, without = (mean(e.return_ for e in episodes(s, rollouts=3)) for s in ("tool_first", "base"))
    assert with_tools > without


def test_simulated_drafts_are_read_back():
    executor = simulated(STORE)
    for task in STORE.tasks[::9]:
        workspace = Workspace(task)
        for rollout in range(3):
            messages = SETTING.messages(Purpose.DRAFT, workspace)
            request = Request(messages, Purpose.DRAFT, task.id, task.hash, DrawKey(0, rollout, 0))
            reply = asyncio.run(executor.complete(request)).text
            if "sorry" not in reply:
                assert STORE.answers[task.id].text.read(SETTING.parse(reply)) is not None
