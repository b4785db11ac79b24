"""How an episode of `planning` goes: what is seen when, what tool, check and rubric say, and what stays sealed."""

import asyncio
import json
import re
from statistics import mean

import numpy as np
import pytest

from harness_mdp.executors.protocol import Completion, Purpose
from harness_mdp.hashing import canonical_json
from harness_mdp.mdp import Action, Status, advance, legal_mask, start
from harness_mdp.scoring.rubric import Scorer, rubric_value
from harness_mdp.settings import open_setting
from harness_mdp.settings.acting import act
from harness_mdp.settings.planning import Planning
from harness_mdp.settings.planning.instance import Instance
from harness_mdp.settings.prompts import read_sections
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.scripts import decision_point, script_policy
from harness_mdp.settings.tasks import Sealed
from tests.runs import run, simulated

PLANNING = Planning()
STORE = PLANNING.tasks(seed=0, n=100, path=None)
TASK = next(task for task in reversed(STORE.tasks) if Instance.read(task.public).chooses_machines)
TEXT = STORE.answers[TASK.id].text
RIGHT = [0] * len(TEXT.slots)
PIECES = ("durations", "order", "machines", "times")


class Episode:
    """Carries out actions with an executor whose replies are given in advance; keeps every prompt."""

    def __init__(self, *replies, task=TASK):
        self.workspace = Workspace(task)
        self.replies, self.prompts = list(replies), []
        self.state = start(PLANNING.horizon, PLANNING.budgets)

    async def ask(self, purpose, messages):
        self.prompts.append((purpose, messages))
        return Completion(self.replies.pop(0), 1, 1, None, 0.0, "stop", "fixed")

    def act(self, *actions):
        for action in actions:
            event = asyncio.run(act(PLANNING, action, self.workspace, self.ask))
            self.state = advance(self.state, event)
        return event

    def flags(self):
        return dict(zip(PLANNING.schema.flags, PLANNING.flags(self.state), strict=True))


def wrong_at(place, choice=1):
    return TEXT.reply([choice if i == place else 0 for i in range(len(RIGHT))])


def rubric(task, artifact, store=STORE):
    return asyncio.run(PLANNING.criteria(task, store.sealed[task.id], artifact))


def test_the_setting_is_found_by_name():
    assert isinstance(open_setting("planning"), Planning)


def test_observe_brings_four_pieces_one_at_a_time_then_nothing():
    episode = Episode()
    brought = [episode.act(Action.OBSERVE).evidence for _ in range(5)]
    assert brought == [*((piece,) for piece in PIECES), ()]
    assert episode.flags()["all_rules_seen"]


@pytest.mark.parametrize("task", STORE.tasks[::9], ids=lambda task: f"{task.id}-{task.template}")
def test_the_pieces_state_every_rule(task):
    episode = Episode(task=task)
    episode.act(*[Action.OBSERVE] * 4)
    seen, public = episode.workspace.evidence, task.public
    for name, duration in public["durations"].items():
        assert f"{name} {duration}" in seen["durations"]
    for before, after, wait in public["orders"]:
        rule = f"at least {wait} after" if wait else "after"
        assert f"{after} starts {rule} {before} has ended." in seen["order"]
    for machines in public["machines"].values():
        assert f"on {' or '.join(machines)}." in seen["machines"]
    for name, need in public["needs"].items():
        assert f"{name} {need}" in seen["machines"]
    assert not public["crew"] or f"The crew has {public['crew']} people." in seen["machines"]
    for name, release in public["releases"].items():
        assert f"{name} cannot start before {release}." in seen["times"]
    for name, deadline in public["deadlines"].items():
        assert f"{name} has to end by {deadline}." in seen["times"]


def test_legal_actions_follow_the_table():
    episode = Episode(TEXT.reply(RIGHT))

    def legal():
        return {Action(i).label for i in np.flatnonzero(legal_mask(PLANNING.rules, episode.state))}

    assert legal() == {"observe", "draft"}
    episode.act(Action.DRAFT)
    assert legal() == {"observe", "draft", "call_tool", "check", "revise", "submit"}


def test_the_tool_asks_no_executor_and_names_one_step():
    episode = Episode(wrong_at(0), TEXT.reply(RIGHT))
    episode.act(Action.DRAFT)
    tool = episode.act(Action.CALL_TOOL).tool
    assert len(episode.prompts) == 1, "only the draft was asked for"
    assert (tool.name, tool.valid, tool.ok, tool.version, tool.passed, tool.total) == ("what_if", True, True, 1, 0, 1)
    assert episode.workspace.problems == tool.problems
    assert episode.workspace.tool_results[-1][1].startswith("What if")
    assert episode.flags() == {
        "all_rules_seen": False,
        "tried_current": True,
        "step_failed": True,
        "check_named_problems": False,
    }
    episode.act(Action.REVISE)
    assert not any(episode.flags().values())
    assert not episode.act(Action.CALL_TOOL).tool.failed
    assert episode.flags()["tried_current"]


def test_the_check_names_broken_rules_and_asks_for_a_review():
    place = next(i for i, slot in enumerate(TEXT.slots) if "machine" in slot.problem)
    episode = Episode(TEXT.reply(RIGHT), "OK", wrong_at(place), "- it is long")
    episode.act(Action.DRAFT)
    good = episode.act(Action.CHECK).check
    assert (good.score, good.problems) == (1.0, ())
    assert not episode.flags()["check_named_problems"]
    episode.act(Action.DRAFT)
    bad = episode.act(Action.CHECK).check
    assert bad.score < 1.0
    assert bad.problems[-1] == "it is long"
    assert bad.total == good.total
    assert episode.flags()["check_named_problems"]


def test_the_check_does_not_know_the_optimum():
    """A schedule that keeps every rule and wastes time passes; the rubric sees the waste."""
    task = next(t for t in STORE.tasks if t.template == "site" and t.difficulty == "standard")
    free = {**task.public, "deadlines": {}}
    rows = json.loads(STORE.sealed[task.id].values["reference"])["schedule"]
    slow = json.dumps({"schedule": [{**row, "start": row["start"] + 50} for row in rows]})
    relaxed = type(task)(task.id, task.template, task.difficulty, free)
    episode = Episode(slow, "OK", task=relaxed)
    episode.act(Action.DRAFT)
    assert episode.act(Action.CHECK).check.score == 1.0
    kept, length = rubric(relaxed, episode.workspace.artifact)
    assert (kept.score, length.score) == (1.0, 0.0)
    assert rubric_value((kept, length)) == pytest.approx(0.4)


def test_the_makespan_is_scored_between_the_optimum_and_one_and_a_half_of_it():
    public = {**Instance({"A": 2, "B": 8}).public(), "title": "t"}
    task = type(TASK)("t", "t", "easy", public)

    def scored(a):
        found = asyncio.run(PLANNING.criteria(task, Sealed({"optimum": 8}), f'{{"A": {a}, "B": 0}}'))
        return [criterion.score for criterion in found]

    assert scored(6) == [1.0, 1.0]
    assert scored(8) == [1.0, 0.5]
    assert scored(9) == [1.0, 0.25]
    assert scored(10) == scored(30) == [1.0, 0.0]
    assert scored(-1) == [0.0, 0.0]


def test_length_counts_for_nothing_when_a_rule_is_broken():
    for task in STORE.tasks[::10]:
        names = task.public["durations"]
        kept, length = rubric(task, json.dumps(dict.fromkeys(names, 0)))
        assert kept.score < 1.0
        assert length.score == 0.0
        assert (kept.weight, length.weight) == (2.0, 3.0)


def test_texts_that_do_not_try_score_nothing():
    scorer = Scorer(PLANNING, STORE.sealed)
    for task in STORE.tasks[::10]:
        for artifact in (None, "", "   "):
            assert asyncio.run(scorer.score(task, artifact)).value == 0.0
        for artifact in ("I cannot do that.", '{"schedule": []}', '{"Z": 0}'):
            assert rubric_value(rubric(task, artifact)) == 0.0
        half = json.loads(STORE.sealed[task.id].values["reference"])["schedule"][::2]
        assert rubric_value(rubric(task, json.dumps({"schedule": half}))) < 0.4


def test_the_rubric_is_blind_to_style():
    for task in STORE.tasks[::10]:
        rows = json.loads(STORE.sealed[task.id].values["reference"])["schedule"]
        turned = [dict(reversed(row.items())) for row in reversed(rows)]
        floats = [{**row, "start": float(row["start"])} for row in rows]
        texts = [{**row, "start": f" {row['start']}.0 ", "end": "?", "task": row["task"].lower()} for row in rows]
        for style in (turned, floats, texts):
            for artifact in (json.dumps({"schedule": style}, indent=3), json.dumps(style)):
                assert rubric_value(rubric(task, artifact)) == 1.0


def test_a_claim_is_supported_when_all_that_binds_it_is_at_hand_and_kept():
    episode = Episode(TEXT.reply(RIGHT))
    episode.act(Action.DRAFT)
    assert len(episode.state.claims) == len(TASK.public["durations"])
    assert not any(claim.supported for claim in episode.state.claims)
    shares = []
    for _ in PIECES:
        episode.act(Action.OBSERVE)
        shares.append(mean(claim.supported for claim in episode.state.claims))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert all(len(claim.text) <= 80 for claim in episode.state.claims)


def test_a_claim_that_a_stated_rule_speaks_against_is_not_supported():
    task = next(task for task in STORE.tasks if task.public["releases"])
    late = next(iter(task.public["releases"]))
    rows = json.loads(STORE.sealed[task.id].values["reference"])["schedule"]
    early = [{**row, "start": 0} if row["task"] == late else row for row in rows]
    episode = Episode(json.dumps(early), task=task)
    episode.act(*[Action.OBSERVE] * 4, Action.DRAFT)
    verdicts = {claim.text: claim.supported for claim in episode.state.claims}
    assert not next(supported for text, supported in verdicts.items() if text.startswith(f"{late} starts at 0"))
    assert any(verdicts.values())


def test_what_is_no_task_is_a_claim_without_support():
    episode = Episode('{"schedule": [{"task": "Z", "start": 0}]}')
    episode.act(*[Action.OBSERVE] * 4, Action.DRAFT)
    assert [(c.text, c.supported) for c in episode.state.claims] == [("Z starts at 0", False)]


def test_prompts_hold_only_what_is_at_hand_and_are_short():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        episode = Episode(text.reply([1] * len(text.slots)), "- too long", text.reply([0] * len(text.slots)), task=task)
        episode.act(Action.DRAFT, *[Action.OBSERVE] * 4, Action.CALL_TOOL, Action.CHECK, Action.REVISE)
        draft, check, revise = [read_sections(messages) for _, messages in episode.prompts]
        assert set(draft) == {"Task", "Instructions"}
        assert set(check) == {"Task", "Evidence", "Tool results", "Draft", "Instructions"}
        assert set(revise) == {*check, "Problems"}
        assert text.read(revise["Draft"]) == [1] * len(text.slots)
        assert sum(len(message.content) for message in episode.prompts[-1][1]) < 3500


def test_nothing_sealed_is_in_the_public_part_or_in_any_prompt():
    for task in STORE.tasks:
        values, text = STORE.sealed[task.id].values, STORE.answers[task.id].text
        wrong = text.reply([1] * len(text.slots))
        episode = Episode(wrong, "- something", wrong, task=task)
        episode.act(*[Action.OBSERVE] * 4, Action.DRAFT, Action.CALL_TOOL, Action.CHECK, Action.REVISE)
        seen = [message.content for _, messages in episode.prompts for message in messages]
        seen.append(canonical_json(dict(task.public)))
        assert not any(values["reference"] in text or "optimum" in text for text in seen)
        assert "optimum" not in task.public


def test_no_prompt_tells_of_machines_before_they_were_observed():
    for task in STORE.tasks:
        instance = Instance.read(task.public)
        episode = Episode(*[STORE.answers[task.id].text.reply([1] * len(STORE.answers[task.id].text.slots))], task=task)
        episode.act(Action.OBSERVE, Action.OBSERVE, Action.DRAFT)
        prompt = episode.prompts[0][1][-1].content
        words = set(re.findall(r"\w+", prompt))
        assert not words & set(instance.machine_names), task.id
        assert ("machine" in prompt.split("=== Instructions ===")[1]) == instance.chooses_machines
        workspace = Workspace(task)
        check = PLANNING.messages(Purpose.CHECK, workspace)[-1].content
        assert not set(re.findall(r"\w+", check)) & set(instance.machine_names)


def test_a_fractional_start_costs_the_makespan():
    plan = json.loads(TEXT.reference)
    last = max(plan["schedule"], key=lambda row: row["start"])
    last["start"] += 0.5
    artifact = PLANNING.parse(json.dumps(plan))
    constraints, length = rubric(TASK, artifact)
    assert constraints.score < 1
    assert length.score == 0


def test_the_example_in_the_prompt_is_no_answer():
    """Copying the form earns next to nothing."""
    for task in STORE.tasks[::5]:
        prompt = PLANNING.messages(Purpose.DRAFT, Workspace(task))[-1].content
        artifact = PLANNING.parse(prompt.rsplit("=== Instructions ===")[-1])
        assert rubric_value(rubric(task, artifact)) < 0.3


def test_a_reply_without_a_schedule_is_an_error_step_that_changes_nothing():
    episode = Episode(TEXT.reply(RIGHT), "I cannot.")
    episode.act(Action.DRAFT)
    event = episode.act(Action.REVISE)
    assert (event.status, event.error) == (Status.ERROR, "parse")
    assert episode.workspace.artifact == TEXT.reference
    assert episode.workspace.version == 1


def test_any_draft_of_a_model_can_be_tried_checked_and_scored():
    odd = [
        '{"Z": 0}',
        '{"schedule": [{"task": "A", "start": -5}, {"task": "A", "start": 1}, {"task": "'
        + "x" * 5000
        + '", "start": 2}]}',
        '{"A": [1000000, "M9"], "B": 2.25}',
        "[" + ",".join('{"task": "A", "start": 1}' for _ in range(50)) + "]",
    ]
    for reply in odd:
        episode = Episode(reply, "OK")
        episode.act(Action.DRAFT, Action.OBSERVE, Action.CALL_TOOL, Action.CHECK)
        assert episode.state.executor_errors == 0
        assert episode.state.last_check.problems
        assert max(map(len, (*episode.state.last_tool.problems, *episode.state.last_check.problems))) <= 120
        assert len(episode.state.claims) <= 12
        assert rubric_value(rubric(TASK, episode.workspace.artifact)) < 0.3


@pytest.mark.parametrize("name", sorted(PLANNING.scripts))
def test_every_script_ends_in_a_submission(name):
    episode = Episode(*[TEXT.reply(RIGHT), *["OK", TEXT.reply(RIGHT)] * 4])
    taken = []
    while Action.SUBMIT not in taken:
        point = decision_point(PLANNING, episode.state)
        action = PLANNING.scripts[name](episode.state, PLANNING.rules)
        assert point.mask[action]
        episode.act(action)
        taken.append(action)
        assert len(taken) <= PLANNING.horizon
    expected = {
        "base": "observe draft submit",
        "forced_check": "observe draft check submit",
        "check_revise": "observe draft check submit",
        "tool_first": "observe draft call_tool submit",
        "more_evidence": "observe observe observe observe draft submit",
    }
    assert " ".join(action.label for action in taken) == expected[name]


@pytest.mark.parametrize("name", sorted(PLANNING.scripts))
def test_simulated_episodes_run_to_their_end_and_returns_spread(name):
    tasks = STORE.tasks[::2]
    returns = [
        episode.return_
        for episode in run(PLANNING, tasks, script_policy(PLANNING, name), simulated(STORE), STORE.sealed, rollouts=2)
    ]
    assert len(returns) == 100
    assert len(set(returns)) > 5
    assert 0.15 < mean(returns) < 0.95


def test_a_simulated_model_makes_fewer_faults_with_more_evidence():
    def mean_return(name):
        policy = script_policy(PLANNING, name)
        return mean(e.return_ for e in run(PLANNING, STORE.tasks, policy, simulated(STORE), STORE.sealed, rollouts=2))

    assert mean_return("more_evidence") > mean_return("base")
