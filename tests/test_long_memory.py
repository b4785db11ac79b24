"""How an episode of long_memory goes: what is seen when, what check and claims rest on, and what stays sealed."""

from __future__ import annotations

import asyncio
import statistics
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from controllers.exploration import Uniform
from harness_mdp.executors.protocol import Completion, DrawKey, Purpose, Request
from harness_mdp.mdp import Action, EvalStatus, Status, Termination, advance, legal_mask, start
from harness_mdp.settings import open_setting
from harness_mdp.settings.acting import act
from harness_mdp.settings.long_memory import LongMemory
from harness_mdp.settings.long_memory.draft import Finding, draft_text
from harness_mdp.settings.long_memory.kept import Kept
from harness_mdp.settings.long_memory.sessions import excerpt, log_of
from harness_mdp.settings.long_memory.tasks import queries_of
from harness_mdp.settings.prompts import Unparsable
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.scripts import script_policy
from tests.long_memory_oracle import deeds, facts
from tests.runs import run, simulated

SETTING = LongMemory()
STORE = SETTING.tasks(seed=0, n=100, path=None)
EASY = STORE.tasks[0]


class Episode:
    """Carries out actions with replies given in advance; keeps state, events and prompts."""

    def __init__(self, task=EASY, *replies):
        self.workspace, self.replies, self.prompts = Workspace(task), list(replies), []
        self.state = start(SETTING.horizon, SETTING.budgets)

    async def ask(self, purpose, messages):
        self.prompts.append((purpose, messages[-1].content))
        return Completion(self.replies.pop(0), 1, 1, 0.0, 0.0, "stop", "scripted")

    def act(self, *actions):
        for action in actions:
            self.event = asyncio.run(act(SETTING, action, self.workspace, self.ask))
            self.state = advance(self.state, self.event)
        return self.event

    def open(self, *numbers):
        """Has found and opened these sessions, as retrieve and call_tool would bring them."""
        log, question = log_of(self.workspace.task), self.workspace.task.public["question"]
        for number in numbers:
            session = log.sessions[number - 1]
            self.workspace.evidence[session.id] = f"{session.date}: {excerpt(session, question)}"
        return self

    def check(self, draft):
        self.replies += [draft, "OK"]
        self.act(Action.DRAFT)
        return self.act(Action.CHECK).check


def reference(task):
    return STORE.answers[task.id].text.reference


def mentioning(task):
    """Every session in which anything asked for is said."""
    log = log_of(task)
    topics = {name for q in queries_of(task) for name in (q.thing, q.role, *q.options) if name}
    return [n for n, session in enumerate(log.plan, start=1) if any(entry.thing in topics for entry in session[3])]


def test_it_is_opened_by_name():
    assert isinstance(open_setting("long_memory"), LongMemory)


def test_observe_tells_the_day_then_lists_the_sessions_newest_first_then_nothing():
    episode = Episode()
    found = [episode.act(Action.OBSERVE).evidence for _ in range(5)]
    assert found == [("asked",), ("list-1",), ("list-2",), (), ()]
    texts = episode.workspace.evidence
    assert EASY.public["asked_on"] in texts["asked"]
    log = log_of(EASY)
    assert texts["list-1"].startswith(f"S{len(log)} {log.date(len(log))}")
    assert "S1 " in texts["list-2"] + texts["list-1"]


def test_retrieve_brings_the_next_hits_until_nothing_matches():
    episode, seen = Episode(STORE.tasks[-1]), []
    while found := episode.act(Action.RETRIEVE).evidence:
        assert len(found) <= 4
        seen += found
        assert len(seen) < 60
    assert len(seen) == len(set(seen)) > 8
    for name in seen:
        text = episode.workspace.evidence[name]
        assert text.startswith(f"{log_of(STORE.tasks[-1]).date(int(name.removeprefix('hit-S')))}: User: ")
        assert len(text) < 140


def test_the_tool_opens_hits_one_after_another_and_says_when_none_is_left():
    episode = Episode()
    assert not legal_mask(SETTING.rules, episode.state)[Action.CALL_TOOL]
    hits = episode.act(Action.RETRIEVE).evidence
    assert legal_mask(SETTING.rules, episode.state)[Action.CALL_TOOL]
    assert SETTING.flags(episode.state) == (False, True, False, False)
    events = [episode.act(Action.CALL_TOOL) for _ in range(len(hits) + 1)]
    assert [name for event in events for name in event.evidence] == [name.removeprefix("hit-") for name in hits]
    assert [event.tool.ok for event in events] == [True] * len(hits) + [False]
    assert all(event.tool.name == "open_session" and event.tool.valid for event in events)
    assert SETTING.flags(episode.state) == (True, False, False, False)
    assert all(len(text) < 420 for text in episode.workspace.evidence.values())


def test_who_was_found_to_have_a_role_is_searched_for():
    for task in (t for t in STORE.tasks if t.template == "chain"):
        told = facts(log_of(task).sessions)
        role = [fact for fact in told if fact.thing == task.public["queries"][0]["role"]][-1]
        episode = Episode(task).open(role.number)
        episode.act(Action.RETRIEVE, Action.RETRIEVE, Action.RETRIEVE)
        thing = task.public["queries"][0]["thing"]
        wanted = {f"hit-S{f.number}" for f in told if (f.owner, f.thing) == (role.value, thing)}
        assert wanted & set(episode.workspace.evidence), task.id


def test_with_everything_relevant_open_the_check_passes_references_and_names_every_single_fault():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        right = [0] * len(text.slots)
        episode = Episode(task).open(*mentioning(task))
        passed = episode.check(text.reply(right))
        assert (passed.score, passed.problems) == (1.0, ()), (task.id, passed)
        assert all(claim.supported for claim in episode.state.claims)
        for place in range(len(right)):
            fault = [int(at == place) for at in range(len(right))]
            found = episode.check(text.reply(fault))
            assert found.problems, (task.id, text.render(fault))
            assert found.passed < found.total


def test_an_outdated_answer_with_its_own_session_fails_only_by_what_is_newer_at_hand():
    tried = 0
    for task in (t for t in STORE.tasks if t.template == "current" and len(t.public["queries"]) == 1):
        query = task.public["queries"][0]
        told = [f for f in facts(log_of(task).sessions) if (f.owner, f.thing) == (query["owner"], query["thing"])]
        old, new = next((a, b) for a, b in pairwise(told) if a.value != b.value)
        draft = draft_text([Finding(old.value, f"S{old.number}", old.date)])
        assert Episode(task).open(old.number).check(draft).problems == ()
        (problem,) = Episode(task).open(old.number, new.number).check(draft).problems
        assert problem == f"S{new.number} is later and states another value"
        tried += 1
    assert tried > 5


def test_the_newest_value_is_wrong_where_the_past_is_asked_for():
    for task in (t for t in STORE.tasks if t.template in ("previous", "as_of") and len(t.public["queries"]) == 1):
        query = task.public["queries"][0]
        told = [f for f in facts(log_of(task).sessions) if (f.owner, f.thing) == (query["owner"], query["thing"])]
        draft = draft_text([Finding(told[-1].value, f"S{told[-1].number}", told[-1].date)])
        (problem,) = Episode(task).open(told[-1].number).check(draft).problems
        assert "asks for the one before" in problem or "is later than" in problem


def test_a_count_is_supported_by_as_many_open_sessions_and_denied_by_more():
    task = next(t for t in STORE.tasks if t.template == "count" and t.difficulty == "easy")
    numbers = deeds(log_of(task).sessions, task.public["queries"][0]["thing"])
    last = log_of(task).sessions[numbers[-1] - 1]
    few = draft_text([Finding(str(len(numbers) - 1), last.id, last.date)])
    assert Episode(task).open(*numbers[1:]).check(few).problems == ()
    assert any("sessions at hand say so" in line for line in Episode(task).open(*numbers).check(few).problems)
    episode = Episode(task).open(numbers[-1])
    assert episode.check(reference(task)).problems == ("the open sessions do not add up to the answer",)


def test_the_check_names_what_is_missing_and_claims_are_unsupported_without_evidence():
    episode = Episode()
    check = episode.check("Orbit Flex")
    assert set(check.problems) == {
        "no session is named",
        "no open session that is named shows the answer",
        "the date is not that of the session",
    }
    assert check.score == pytest.approx(3 / 6)
    assert [(c.text, c.supported) for c in episode.state.claims] == [("Orbit Flex []", False)]
    assert SETTING.flags(episode.state)[2:] == (False, True)


def test_a_support_comes_when_the_session_is_opened():
    episode = Episode(EASY, STORE.answers[EASY.id].text.reply([0, 0, 0]))
    episode.act(Action.RETRIEVE, Action.DRAFT)
    assert not episode.state.claims[0].supported
    episode.act(*[Action.CALL_TOOL] * 4)
    assert episode.state.claims[0].supported
    assert SETTING.flags(episode.state)[2]


def test_a_reply_that_cannot_be_read_is_an_error_and_leaves_the_draft():
    episode = Episode(EASY, reference(EASY), "I am sorry, I would need more information to do that.")
    episode.act(Action.DRAFT)
    assert episode.act(Action.REVISE).status is Status.ERROR
    assert episode.workspace.artifact == reference(EASY)


def test_prompts_are_short_and_hold_no_answer_before_evidence():
    for task in STORE.tasks[::3]:
        text = STORE.answers[task.id].text
        wrong = text.reply([1] * len(text.slots))
        episode = Episode(task, wrong, wrong, "- the value may be outdated", wrong)
        episode.act(Action.DRAFT, *[Action.OBSERVE] * 3, *[Action.RETRIEVE] * 4, *[Action.CALL_TOOL] * 7, Action.DRAFT)
        episode.act(Action.CHECK, Action.REVISE)
        (_, first), *_, (purpose, last) = episode.prompts
        assert purpose is Purpose.REVISE
        assert len(last) < 6_000
        if task.template not in ("count", "latest_change", "whose"):  # those offer their answers in the question
            for key in STORE.sealed[task.id].values["answers"]:
                assert key["answer"] not in first


def test_the_bounded_memory_forgets_what_was_used_longest_ago():
    kept, made = Kept[str](2), []

    def make(key):
        return kept.get(key, lambda: made.append(key) or key)

    for key in ("a", "b", "a", "c", "a", "b"):
        assert make(key) == key
    assert made == ["a", "b", "c", "b"]
    assert len(kept) == 2


def test_simulated_episodes_of_base_end_scored_and_spread():
    episodes = run(SETTING, STORE.tasks[::2], script_policy(SETTING, "base"), simulated(STORE), STORE.sealed)
    returns = [episode.return_ for episode in episodes]
    assert 0.15 < statistics.mean(returns) < 0.95
    assert len(set(returns)) > 5
    assert {episode.termination for episode in episodes} == {Termination.SUBMIT}


@pytest.mark.parametrize("name", sorted(SETTING.scripts))
def test_every_script_ends_with_a_scored_answer(name):
    tasks = STORE.tasks[::20]
    for episode in run(SETTING, tasks, script_policy(SETTING, name), simulated(STORE), STORE.sealed):
        assert episode.eval_status is EvalStatus.SCORED
        assert episode.tokens < SETTING.budgets.tokens


def test_random_actions_replay_and_do_not_depend_on_what_ran_before():
    tasks = STORE.tasks[::10]
    one = run(SETTING, tasks, Uniform(), simulated(STORE), STORE.sealed, concurrency=1)
    two = run(LongMemory(), tasks[::-1], Uniform(), simulated(STORE), STORE.sealed, concurrency=3)[::-1]
    for first, second in zip(one, two, strict=True):
        assert first.artifacts == second.artifacts
        assert [replace(e, seconds=0.0) for e in first.events] == [replace(e, seconds=0.0) for e in second.events]


def test_more_evidence_means_fewer_faults():
    def mean_return(prepare):
        drafts = []
        for task in STORE.tasks:
            episode = prepare(Episode(task))
            executor = simulated(STORE)
            for rollout in range(3):
                found = run_draft(executor, task, SETTING.messages(Purpose.DRAFT, episode.workspace), rollout)
                drafts.append(np.mean([choice == 0 for choice in found]) if found else 0.0)
        return np.mean(drafts)

    blind = mean_return(lambda episode: episode)
    sighted = mean_return(lambda episode: episode.open(*mentioning(episode.workspace.task)[-6:]))
    assert sighted > blind + 0.02


def run_draft(executor, task, messages, rollout):
    request = Request(messages, Purpose.DRAFT, task.id, task.hash, DrawKey(0, rollout, 0))
    reply = asyncio.run(executor.complete(request)).text
    try:
        return STORE.answers[task.id].text.read(SETTING.parse(reply))
    except Unparsable:
        return None
