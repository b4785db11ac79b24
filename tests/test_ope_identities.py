"""What must hold of every off-policy estimator before its numbers mean anything (DESIGN section 11)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.ope import ESTIMATORS, Models, Terms, logged
from analysis.ope.weighting import (
    doubly_robust,
    doubly_robust_values,
    effective_episodes,
    importance_sampling,
    largest_share,
    per_decision,
    weighted_doubly_robust,
    weighted_importance_sampling,
    weighted_per_decision,
)
from analysis.statistics import resample_counts
from harness_mdp.errors import UnusableBuffer
from harness_mdp.hashing import generator
from tests.ope_logs import other_target, random_log, shuffled

SEEDS = st.integers(0, 10_000)
WEIGHTED = (importance_sampling, weighted_importance_sampling, per_decision, weighted_per_decision)


def step_costs(log, seed: int) -> np.ndarray:
    """A cost a step, and the returns that make them up."""
    return -generator("costs", seed).random(len(log.action))


def with_returns(log, rewards: np.ndarray):
    return replace(log, returns=np.bincount(log.episode, rewards, len(log.returns)))


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_of_the_behaviour_policy_every_weighted_estimate_is_the_mean_return_and_every_episode_counts(seed: int) -> None:
    data = random_log(seed)
    log = logged(data, data.propensities)
    for estimator in WEIGHTED:
        assert estimator(log).value == pytest.approx(data.returns.mean(), abs=1e-12)
    assert effective_episodes(log) == pytest.approx(len(data.returns))
    assert largest_share(log) == pytest.approx(1 / len(data.returns))


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_importance_sampling_is_the_formula(seed: int) -> None:
    data = random_log(seed)
    target = other_target(data, seed)
    weights = np.ones(len(data.returns))
    for i, a in enumerate(data.action):
        weights[data.episode[i]] *= target[i, a] / data.propensities[i, a]
    log = logged(data, target)
    assert importance_sampling(log).value == pytest.approx(np.mean(weights * data.returns))
    assert weighted_importance_sampling(log).value == pytest.approx(np.average(data.returns, weights=weights))
    assert effective_episodes(log) == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_with_a_terminal_reward_alone_per_decision_is_importance_sampling(seed: int) -> None:
    data = random_log(seed)
    log = logged(data, other_target(data, seed))
    assert per_decision(log).value == pytest.approx(importance_sampling(log).value)


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_per_decision_weighs_a_cost_by_the_decisions_up_to_it(seed: int) -> None:
    data = random_log(seed)
    rewards, target = step_costs(data, seed), other_target(data, seed)
    total, weighted = 0.0, np.zeros((2, 6))
    for episode in range(len(data.returns)):
        ratio = 1.0
        own = np.flatnonzero(data.episode == episode)
        for t in range(1, 6):
            if t <= len(own):
                row = own[t - 1]
                ratio *= target[row, data.action[row]] / data.propensities[row, data.action[row]]
                total += ratio * rewards[row]
                weighted[0, t] += ratio * rewards[row]
            weighted[1, t] += ratio  # an ended episode keeps its ratio
    log = logged(with_returns(data, rewards), target, rewards=rewards)
    assert per_decision(log).value == pytest.approx(total / len(data.returns))
    horizon = log.horizon + 1
    assert weighted_per_decision(log).value == pytest.approx((weighted[0, 1:horizon] / weighted[1, 1:horizon]).sum())


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_doubly_robust_with_a_zero_model_is_per_decision(seed: int) -> None:
    data = random_log(seed)
    rewards = step_costs(data, seed)
    log = logged(with_returns(data, rewards), other_target(data, seed), rewards=rewards)
    zero = np.zeros(log.target.shape)
    assert doubly_robust(log, zero).value == pytest.approx(per_decision(log).value)
    assert weighted_doubly_robust(log, zero).value == pytest.approx(weighted_per_decision(log).value)


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_doubly_robust_with_the_exact_model_of_a_deterministic_mdp_is_the_value_of_the_start(seed: int) -> None:
    """States are the histories of actions; rewards are a function of the history; episodes have 2 or 4 steps."""
    rng = generator("deterministic", seed)
    reward = rng.random((5, 7, 7))  # by t, action, action before
    behaviour = rng.dirichlet(np.ones(7), size=(5, 7))
    target = rng.dirichlet(np.ones(7), size=(5, 7))
    # A draft (3) at step 2 ends the episode. Q[t, before, action]
    q = np.zeros((6, 7, 7))
    for t in (4, 3, 2, 1):
        following = (target[t + 1] * q[t + 1]).sum(axis=1) if t < 4 else np.zeros(7)
        ends = np.arange(7) == 3 if t == 2 else np.zeros(7, dtype=bool)
        q[t] = reward[t].T + np.where(ends, 0.0, following)
    rows: list[tuple[int, int, int, int]] = []  # episode, t, before, action
    for episode in range(12):
        before = 0
        for t in range(1, 5):
            action = int(rng.choice(7, p=behaviour[t, before]))
            rows.append((episode, t, before, action))
            if t == 2 and action == 3:
                break
            before = action
    episode, t, before, action = np.array(rows).T
    rewards = reward[t, action, before]
    data = replace(
        random_log(0, horizon=1),
        features=np.column_stack([t, before]).astype(np.float32),
        mask=np.ones((len(t), 7), dtype=bool),
        action=action,
        base_action=action,
        propensities=behaviour[t, before],
        t=t,
        episode=episode,
    )
    log = logged(with_returns(data, rewards), target[t, before], rewards=rewards)
    exact = float(target[1, 0] @ q[1, 0])
    np.testing.assert_allclose(doubly_robust_values(log, q[t, before]), exact, rtol=1e-12)
    assert weighted_doubly_robust(log, q[t, before]).value == pytest.approx(exact)


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_weighted_importance_sampling_stays_within_the_returns(seed: int) -> None:
    data = random_log(seed)
    value = weighted_importance_sampling(logged(data, other_target(data, seed))).value
    assert data.returns.min() - 1e-12 <= value <= data.returns.max() + 1e-12


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_the_order_of_episodes_and_steps_does_not_matter(seed: int) -> None:
    data = random_log(seed, tasks=6, rollouts=5)
    target = other_target(data, seed)
    other, rows = shuffled(data, seed)
    counts = resample_counts(6, 20, seed)
    first, second = Models(logged(data, target)), Models(logged(other, target[rows]))
    for name in ("is", "wis", "per_decision", "weighted_per_decision"):
        a, b = (ESTIMATORS[name](models, counts) for models in (first, second))
        assert isinstance(a, Terms)
        assert b.value == pytest.approx(a.value)
        np.testing.assert_allclose(b.numerator, a.numerator, atol=1e-12)


def test_an_episode_without_steps_is_worth_its_return_under_any_policy() -> None:
    data = random_log(3, tasks=3, rollouts=2)
    keep = data.episode != 1
    for target in (data.propensities, other_target(data, 1)):
        cut = replace(
            data,
            **{name: getattr(data, name)[keep] for name in ("features", "mask", "action", "base_action", "t")},
            propensities=data.propensities[keep],
            episode=data.episode[keep],
        )
        log = logged(cut, target[keep])
        assert doubly_robust_values(log, np.zeros(log.target.shape))[1] == data.returns[1]
        assert Models(log).fitted_q.initial_values()[1] == data.returns[1]


def test_a_target_with_probability_on_an_illegal_action_is_refused() -> None:
    data = random_log(0)
    target = data.propensities.copy()
    illegal = np.argwhere(~data.mask)[0]
    target[illegal[0], illegal[1]] = 1e-12
    with pytest.raises(ValueError, match="exactly 0 on illegal"):
        logged(data, target)


def test_a_target_that_does_not_sum_to_one_is_refused() -> None:
    data = random_log(0)
    with pytest.raises(ValueError, match="expected a distribution"):
        logged(data, data.propensities * 0.9)


def test_a_taken_action_of_behaviour_propensity_0_raises_and_says_where() -> None:
    data = random_log(0)
    propensities = data.propensities.copy()
    taken = (4, data.action[4])
    other = next(a for a in range(7) if propensities[4, a] > 0 and a != data.action[4])
    propensities[4, other] += propensities[taken]
    propensities[taken] = 0.0
    with pytest.raises(UnusableBuffer, match="probability 0"):
        logged(replace(data, propensities=propensities), data.propensities)


def test_a_missing_step_is_refused() -> None:
    data = random_log(0)
    t = data.t.copy()
    t[-1] += 1
    with pytest.raises(ValueError, match="expected"):
        logged(replace(data, t=t), data.propensities)
