"""Which actions are legal in every setting, as listed here; every script keeps to it; and budgets end episodes."""

from __future__ import annotations

from itertools import product

import pytest

from controllers.exploration import Uniform
from harness_mdp.mdp import (
    Action,
    Artifact,
    Budgets,
    Episode,
    EvalStatus,
    Event,
    Needs,
    State,
    Termination,
    advance,
    legal_mask,
    start,
)
from harness_mdp.settings import SETTINGS
from harness_mdp.settings.scripts import SCRIPTS, script_policy
from tests.runs import SETTING_NAMES, opened, run, simulated
from tests.scripted import Course

every_setting = pytest.mark.parametrize("name", SETTING_NAMES)

WITHOUT_RETRIEVE = {"coding", "multi_tool", "planning"}
TOOL_NEEDS = {
    "coding": Needs.ARTIFACT,
    "dbbench": Needs.ARTIFACT,
    "knowledge_work": Needs.NOTHING,
    "long_memory": Needs.RETRIEVED,
    "multi_tool": Needs.NOTHING,
    "planning": Needs.ARTIFACT,
    "research": Needs.RETRIEVED,
    "tau_retail": Needs.ARTIFACT,
}
"""The table of legal actions; a new setting of ours is entered here."""


def test_the_table_lists_every_setting_of_ours():
    assert set(TOOL_NEEDS) == set(SETTINGS)


def state_with(*, artifact: bool, retrieved: bool) -> State:
    state = start(10)
    if retrieved:
        state = advance(state, Event(Action.RETRIEVE, evidence=("something",)))
    if artifact:
        state = advance(state, Event(Action.DRAFT, artifact=Artifact(1, "0" * 64, 1)))
    return state


@pytest.mark.parametrize("name", sorted(TOOL_NEEDS))
@pytest.mark.parametrize(("artifact", "retrieved"), list(product((False, True), repeat=2)))
def test_legal_actions_are_those_of_the_table(name, artifact, retrieved):
    setting, _ = opened(name)
    legal = {Action.OBSERVE, Action.DRAFT}
    if name not in WITHOUT_RETRIEVE:
        legal.add(Action.RETRIEVE)
    if artifact:
        legal |= {Action.CHECK, Action.REVISE, Action.SUBMIT}
    met = {Needs.NOTHING: True, Needs.ARTIFACT: artifact, Needs.RETRIEVED: retrieved}
    if met[TOOL_NEEDS[name]]:
        legal.add(Action.CALL_TOOL)
    mask = legal_mask(setting.rules, state_with(artifact=artifact, retrieved=retrieved))
    assert {action for action in Action if mask[action]} == legal


def assert_legal(episode: Episode) -> None:
    for step in episode.steps:
        assert step.mask[step.action]
        assert step.mask[step.base_action], "what base would do is legal wherever a policy has led"
        assert not step.propensities[~step.mask].any()
        assert step.propensities.sum() == pytest.approx(1.0)
    assert len(episode.steps) <= episode.horizon
    assert (episode.termination is Termination.SUBMIT) == (episode.steps[-1].action is Action.SUBMIT)
    assert (episode.eval_status is EvalStatus.SCORED) == bool(episode.final_artifact)


@every_setting
def test_every_script_runs_to_the_end_by_legal_actions(name):
    setting, store = opened(name)
    assert set(SCRIPTS) <= set(setting.scripts)
    for script in setting.scripts:
        episodes = run(setting, store.tasks[10::40], script_policy(setting, script), simulated(store), store.sealed)
        for episode in episodes:
            assert_legal(episode)
            assert episode.termination is Termination.SUBMIT


@every_setting
def test_random_actions_run_to_the_end_by_legal_actions(name):
    setting, store = opened(name)
    episodes = run(setting, store.tasks[10::40], Uniform(), simulated(store, "weak"), store.sealed, rollouts=3)
    for episode in episodes:
        assert_legal(episode)


@every_setting
def test_a_spent_budget_ends_the_episode_and_what_there_is_is_submitted(name):
    setting, store = opened(name)
    course = Course((Action.OBSERVE, Action.DRAFT, Action.CHECK, Action.SUBMIT))
    tasks = store.tasks[10::30]
    for budgets in (Budgets(tokens=1), Budgets(usd=0.0)):
        episodes = run(setting, tasks, course, simulated(store, "strong"), store.sealed, budgets=budgets)
        for episode in episodes:
            assert episode.termination is Termination.BUDGET
            drafted = episode.steps[-1].event.artifact
            assert (episode.eval_status is EvalStatus.SCORED) == (drafted is not None)
            assert episode.final_artifact == (drafted.sha256 if drafted else "")
            # Looking costs no token, so that a budget of one is spent by the draft, and one of no money at once.
            assert len(episode.steps) == (2 if budgets.tokens else 1)
