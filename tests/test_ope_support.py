"""When a log may speak about a policy, and when it has to say that it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.ope import Models, SupportVerdict, estimate_policy, logged, measure_support
from analysis.ope.weighting import lost_probability
from controllers.config import AWConfig, Method
from controllers.policy import ControllerPolicy
from controllers.training import train
from harness_mdp.mdp import Action, DecisionBatch
from harness_mdp.settings.tabular import optimal_policy, sample_buffer, tabular_mdp
from tests.ope_logs import random_log
from tests.tabular import policy

MDP = tabular_mdp()
PORTFOLIO, PAPER = (MDP.table(policy(name)) for name in ("portfolio", "paper"))
CHECK_REVISE = MDP.table(policy("check_revise"))
BUFFER = sample_buffer(MDP, PORTFOLIO, n_tasks=40, rollouts=20, seed=2)
PAPER_SIZE = sample_buffer(MDP, PORTFOLIO, n_tasks=80, rollouts=20, seed=1)


def verdict_of(probs: np.ndarray, buffer=BUFFER):
    log = logged(buffer, probs)
    return measure_support(log, Models(log).abstract)


def on_buffer(table: np.ndarray, buffer=BUFFER) -> np.ndarray:
    return table[buffer.level[buffer.episode], buffer.state]


def test_the_behaviour_policy_is_supported_by_all_its_episodes() -> None:
    support = verdict_of(on_buffer(PORTFOLIO))
    assert support.verdict is SupportVerdict.SUPPORTED
    assert support.ess == pytest.approx(800)
    assert support.mean_weight == pytest.approx(1.0)
    assert support.lost == 0.0


def test_behaviour_cloning_is_supported() -> None:
    result = train(BUFFER, AWConfig(method=Method.BC, epochs=10), seed=0)
    batch = DecisionBatch(BUFFER.features, BUFFER.mask, BUFFER.base_action)
    support = verdict_of(ControllerPolicy(result.weights).probs_batch(batch))
    assert support.verdict is SupportVerdict.SUPPORTED
    assert support.ess > 200


def test_a_policy_that_the_log_never_follows_is_refused_and_no_number_is_shown() -> None:
    buffer = sample_buffer(MDP, PAPER, n_tasks=20, rollouts=10, seed=0)
    log = logged(buffer, on_buffer(MDP.table(optimal_policy(MDP)), buffer))
    value = estimate_policy(log, draws=500, value_range=(0, 1))
    assert value.support.verdict is SupportVerdict.INSUFFICIENT
    assert value.shown == ()
    assert value.best is None
    assert all(estimate.withheld for estimate in value.estimates)
    assert "insufficient support" in value.support.sentence()


def test_equal_weights_do_not_hide_what_the_behaviour_policy_never_tries() -> None:
    """Behaviour always observes; the target drafts half of the time. All weights are equal, and half is unseen."""
    data = random_log(0, tasks=40, rollouts=10, horizon=1)
    n = len(data.action)
    behaviour, target = np.zeros((n, 7)), np.zeros((n, 7))
    behaviour[:, Action.OBSERVE] = 1.0
    target[:, [Action.OBSERVE, Action.DRAFT]] = 0.5
    mask = np.ones((n, 7), dtype=bool)
    fixed = type(data)(
        data.features, mask, np.zeros(n, dtype=int), data.base_action, behaviour, data.t, data.episode, data.returns,
        data.task,
    )  # fmt: skip
    log = logged(fixed, target)
    support = measure_support(log, Models(log).abstract)
    assert support.ess == pytest.approx(n)
    assert lost_probability(log) == pytest.approx(0.5)
    assert support.by_weights is SupportVerdict.INSUFFICIENT
    assert support.verdict is SupportVerdict.INSUFFICIENT


def test_weights_whose_mean_falls_short_of_1_are_not_trusted_however_many_they_are() -> None:
    """The target turns right at a fork where the log happens to hold left turns only, all of the same weight."""
    data = random_log(0, tasks=40, rollouts=10, horizon=1)
    n = len(data.action)
    behaviour, target = np.zeros((n, 7)), np.zeros((n, 7))
    behaviour[:, [Action.OBSERVE, Action.DRAFT]] = 0.9, 0.1
    target[:, [Action.OBSERVE, Action.DRAFT]] = 0.45, 0.55
    fixed = type(data)(
        data.features, np.ones((n, 7), dtype=bool), np.zeros(n, dtype=int), data.base_action, behaviour, data.t,
        data.episode, data.returns, data.task,
    )  # fmt: skip
    log = logged(fixed, target)
    support = measure_support(log, Models(log).abstract)
    assert support.ess == pytest.approx(n)
    assert support.lost == 0.0
    assert support.mean_weight == pytest.approx(0.5)
    assert support.by_weights is SupportVerdict.INSUFFICIENT


def test_the_lost_probability_is_that_of_an_episode_and_not_of_a_step() -> None:
    """Two steps; the target leaves with 0.2 at each: 0.2 + 0.8·0.2."""
    m = 30
    behaviour, target = np.zeros((2 * m, 7)), np.zeros((2 * m, 7))
    behaviour[:, Action.DRAFT] = 1.0
    target[:, Action.DRAFT], target[:, Action.CHECK] = 0.8, 0.2
    data = random_log(0, tasks=3, rollouts=10)
    log = logged(
        type(data)(
            features=np.zeros((2 * m, 1), dtype=np.float32),
            mask=np.ones((2 * m, 7), dtype=bool),
            action=np.full(2 * m, 3),
            base_action=np.full(2 * m, 3),
            propensities=behaviour,
            t=np.tile([1, 2], m),
            episode=np.repeat(np.arange(m), 2),
            returns=data.returns,
            task=data.task,
        ),
        target,
    )
    assert lost_probability(log) == pytest.approx(0.36)


def test_a_single_episode_with_most_of_the_weight_is_not_full_support() -> None:
    data = random_log(7, tasks=30, rollouts=10, horizon=1)
    target = data.propensities.copy()
    own = data.propensities[0, data.action[0]]
    # Rare under the behaviour policy, certain under the target, in one episode only.
    behaviour = data.propensities.copy()
    behaviour[0] *= (1 - 1 / 60) / (1 - own)
    behaviour[0, data.action[0]] = 1 / 60
    target[0] = np.eye(7)[data.action[0]]
    fixed = type(data)(
        data.features, data.mask, data.action, data.base_action, behaviour, data.t, data.episode, data.returns,
        data.task,
    )  # fmt: skip
    log = logged(fixed, target)
    support = measure_support(log, Models(log).abstract)
    assert support.largest_share == pytest.approx(60 / (60 + 299))
    assert support.by_weights is not SupportVerdict.SUPPORTED


def test_a_rule_on_well_visited_cells_is_weak_by_cells_where_its_weights_are_too_few() -> None:
    """A deterministic policy in a portfolio: few episodes follow it to the end, but every step of it is well known."""
    support = verdict_of(on_buffer(CHECK_REVISE, PAPER_SIZE), PAPER_SIZE)
    assert support.by_weights is SupportVerdict.INSUFFICIENT
    assert support.by_cells is SupportVerdict.WEAK
    assert support.verdict is SupportVerdict.WEAK
    assert support.ess < 30


def test_numbers_that_rest_on_weights_are_withheld_where_only_cells_carry_the_verdict() -> None:
    log = logged(PAPER_SIZE, on_buffer(CHECK_REVISE, PAPER_SIZE))
    value = estimate_policy(log, draws=500)
    assert {estimate.estimator for estimate in value.shown} == {"fqe", "model"}
    assert value.best is not None
    assert value.best.estimator == "model"


def test_the_action_table_says_where_support_is_lacking() -> None:
    support = verdict_of(on_buffer(MDP.table(policy("tool_first"))))
    rows = {row.action: row for row in support.actions}
    assert rows["retrieve"].visits == 0
    assert rows["retrieve"].on_support is None
    assert sum(row.target for row in support.actions) == pytest.approx(1.0)
    assert sum(row.behaviour for row in support.actions) == pytest.approx(1.0)
    assert rows["call_tool"].target > 2 * rows["call_tool"].behaviour
    assert rows["call_tool"].on_support is not None
