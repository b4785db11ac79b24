"""The hand-written experts: one for every setting, legal wherever an episode may be, better than the rule of thumb."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.config import SettingConfig
from experiments.expert_search import axes, search_plan
from experiments.experts import PLANS, Confirm, ExpertPlan, Remedy, Verdict, expert, expert_policy
from experiments.tasks import load_tasks
from harness_mdp.errors import ConfigError
from harness_mdp.mdp import (
    Action,
    Artifact,
    CheckResult,
    Event,
    LegalRules,
    Needs,
    State,
    Status,
    ToolResult,
    advance,
    ended,
    legal_mask,
    start,
)
from harness_mdp.settings import open_setting
from harness_mdp.settings.scripts import script_policy
from tests.runs import opened, run, simulated

SETTINGS = ("knowledge_work", "coding", "research", "multi_tool", "long_memory", "planning", "tau_retail", "dbbench")

PLAN = st.builds(
    ExpertPlan,
    observes=st.integers(0, 4),
    retrieves=st.integers(0, 4),
    tools=st.integers(0, 4),
    late_tools=st.integers(0, 2),
    verdict=st.sampled_from(Verdict),
    failed_tool=st.sampled_from(Remedy),
    redraft_problems=st.integers(0, 3),
    redraft_score=st.sampled_from((0.0, 0.5, 1.0)),
    rechecks=st.integers(0, 2),
    confirm=st.sampled_from(Confirm),
    accept=st.booleans(),
    last_revise=st.booleans(),
)
RULES = st.builds(LegalRules, offers_retrieve=st.booleans(), tool_needs=st.sampled_from(Needs))


def outcome(state: State, action: Action, luck: int) -> Event:
    """An event that `action` may bring: `luck` says how well it went, 0 is an error where there can be one."""
    if luck == 0 and action in (Action.DRAFT, Action.REVISE):
        return Event(action, Status.ERROR)
    problems = tuple(f"problem {n}" for n in range(luck % 3))
    match action:
        case Action.OBSERVE | Action.RETRIEVE:
            return Event(action, evidence=(f"{action.label}{state.steps}",) if luck else ())
        case Action.CALL_TOOL:
            ok = not problems
            return Event(action, tool=ToolResult("tool", True, ok, state.version, problems=problems))
        case Action.DRAFT | Action.REVISE:
            return Event(action, artifact=Artifact(state.version + 1, f"{state.steps:064d}", 10 + luck))
        case Action.CHECK:
            return Event(
                action, check=CheckResult(1 - len(problems) / 3, state.version, 3 - len(problems), 3, problems)
            )
        case Action.SUBMIT:
            return Event(action)


@given(plan=PLAN, rules=RULES, horizon=st.integers(1, 12), luck=st.lists(st.integers(0, 5), min_size=12, max_size=12))
def test_any_plan_acts_legally_and_leaves_something_to_submit(plan, rules, horizon, luck) -> None:
    state = start(horizon)
    for each in luck:
        if ended(state) is not None:
            break
        action = plan.script(state, rules)
        assert legal_mask(rules, state)[action]
        state = advance(state, outcome(state, action, each))
    assert ended(state) is not None
    assert state.count(Action.DRAFT) > 0


@given(
    plan=PLAN,
    rules=RULES,
    course=st.lists(st.tuples(st.sampled_from(Action), st.integers(0, 5)), max_size=9),
)
def test_any_plan_is_legal_wherever_exploration_has_led(plan, rules, course) -> None:
    state = start(10)
    for action, luck in course:
        assert legal_mask(rules, state)[plan.script(state, rules)]
        if legal_mask(rules, state)[action] and action is not Action.SUBMIT:
            state = advance(state, outcome(state, action, luck))


def drafted(*events: Event, steps: int = 0) -> State:
    state = start(10)
    for event in (*[Event(Action.OBSERVE)] * steps, Event(Action.DRAFT, artifact=Artifact(1, "a" * 64, 9)), *events):
        state = advance(state, event)
    return state


def checked(*problems: str) -> Event:
    return Event(Action.CHECK, check=CheckResult(1.0 - 0.2 * len(problems), 1, 5 - len(problems), 5, problems))


NEEDS_DRAFT = LegalRules(offers_retrieve=False, tool_needs=Needs.ARTIFACT)


def test_a_version_is_judged_then_mended_then_submitted_when_clean() -> None:
    plan = ExpertPlan()
    assert plan.script(drafted(), NEEDS_DRAFT) is Action.CHECK
    assert plan.script(drafted(checked("wrong")), NEEDS_DRAFT) is Action.REVISE
    assert plan.script(drafted(checked()), NEEDS_DRAFT) is Action.SUBMIT


def test_the_last_step_is_not_spent_on_a_verdict_that_nothing_can_follow() -> None:
    assert ExpertPlan().script(drafted(steps=8), NEEDS_DRAFT) is Action.SUBMIT
    wrong = drafted(checked("wrong"), steps=7)
    assert ExpertPlan().script(wrong, NEEDS_DRAFT) is Action.REVISE
    assert ExpertPlan(last_revise=False).script(wrong, NEEDS_DRAFT) is Action.SUBMIT


def test_each_parameter_does_what_it_says() -> None:
    few, many = drafted(checked("a")), drafted(checked("a", "b", "c"))
    assert ExpertPlan(redraft_problems=3).script(few, NEEDS_DRAFT) is Action.REVISE
    assert ExpertPlan(redraft_problems=3).script(many, NEEDS_DRAFT) is Action.DRAFT
    assert ExpertPlan(redraft_score=0.5).script(many, NEEDS_DRAFT) is Action.DRAFT
    assert ExpertPlan(accept=True).script(few, NEEDS_DRAFT) is Action.SUBMIT
    assert ExpertPlan(accept=True).script(many, NEEDS_DRAFT) is Action.REVISE
    assert ExpertPlan(confirm=Confirm.CHECK).script(few, NEEDS_DRAFT) is Action.CHECK
    assert ExpertPlan(confirm=Confirm.CHECK).script(drafted(checked("a"), checked("a")), NEEDS_DRAFT) is Action.REVISE
    assert ExpertPlan(confirm=Confirm.TOOL).script(few, NEEDS_DRAFT) is Action.CALL_TOOL
    assert ExpertPlan(rechecks=1).script(drafted(checked()), NEEDS_DRAFT) is Action.CHECK
    assert ExpertPlan(rechecks=1).script(drafted(checked(), checked()), NEEDS_DRAFT) is Action.SUBMIT
    failed = drafted(Event(Action.CALL_TOOL, tool=ToolResult("tests", True, True, 1, 1, 2, ("case 2",))))
    for remedy, action in (
        (Remedy.REVISE, Action.REVISE),
        (Remedy.CHECK, Action.CHECK),
        (Remedy.REDRAFT, Action.DRAFT),
    ):
        plan = ExpertPlan(verdict=Verdict.TOOL, failed_tool=remedy)
        assert plan.script(failed, NEEDS_DRAFT) is action
    free = LegalRules(offers_retrieve=True, tool_needs=Needs.NOTHING)
    assert ExpertPlan(observes=0, retrieves=0, tools=1).script(start(10), free) is Action.CALL_TOOL
    assert ExpertPlan(late_tools=1).script(drafted(), free) is Action.CALL_TOOL
    assert ExpertPlan(late_tools=1).script(drafted(), NEEDS_DRAFT) is Action.CHECK  # there the tool judges


def test_every_setting_of_the_paper_has_an_expert_and_another_is_refused_by_name() -> None:
    assert tuple(sorted(PLANS)) == tuple(sorted(SETTINGS))
    for name in SETTINGS:
        assert expert(open_setting(name)).setting == name
    with pytest.raises(ConfigError, match="tabular"):
        expert(open_setting("tabular"))


def test_the_fingerprint_tells_plans_and_settings_apart() -> None:
    plans = [ExpertPlan()]
    for field in fields(ExpertPlan):
        value = getattr(ExpertPlan(), field.name)
        other = {Verdict.CHECK: Verdict.TOOL, Remedy.REVISE: Remedy.CHECK, Confirm.NO: Confirm.TOOL}.get(value)
        plans.append(replace(ExpertPlan(), **{field.name: other or (not value if type(value) is bool else value + 1)}))
    prints = {expert_policy(open_setting(name), plan).fingerprint for name in ("planning", "dbbench") for plan in plans}
    assert len(prints) == 2 * len(plans)


@pytest.mark.parametrize("name", ["planning", "tau_retail", "multi_tool"])
def test_the_expert_is_better_than_the_rule_of_thumb_on_training_tasks(name: str) -> None:
    """Simulated; 40 training tasks, the same draws for both. The other settings are slower and no different."""
    setting, store = opened(name)
    tasks = load_tasks(SettingConfig(name=name)).select("train")[::2]

    def value(policy) -> float:
        episodes = run(setting, tasks, policy, simulated(store), store.sealed, rollouts=2, concurrency=8)
        return sum(episode.return_ for episode in episodes) / len(episodes)

    rule, best = value(script_policy(setting, "check_revise")), value(expert(setting))
    assert best > rule
    assert rule > value(script_policy(setting, "base"))


def test_the_search_keeps_what_is_better_by_the_margin_and_builds_on_it() -> None:
    def value(plan: ExpertPlan) -> float:
        return 0.5 + 0.1 * (plan.observes == 2) + 0.1 * (plan.observes == 2 and plan.rechecks == 1) + 0.001 * plan.tools

    groups = [[{"observes": 2}, {"observes": 3}], [{"rechecks": 1}, {"rechecks": 2}], [{"tools": 1}]]
    tried = list(search_plan(value, groups, margin=0.01))
    best = [plan for plan, _, better in tried if better][-1]
    assert best == ExpertPlan(observes=2, rechecks=1)
    assert len(tried) == 6


def test_the_search_tries_only_what_a_setting_has() -> None:
    names = {key for group in axes(NEEDS_DRAFT) for changes in group for key in changes}
    assert "verdict" in names
    assert not {"retrieves", "tools", "late_tools"} & names
    names = {key for group in axes(LegalRules(True, Needs.RETRIEVED)) for changes in group for key in changes}
    assert {"retrieves", "tools", "late_tools"} <= names
    assert not {"verdict", "failed_tool"} & names
