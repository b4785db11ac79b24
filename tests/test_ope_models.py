"""Fitted Q evaluation and the abstract model: what they converge to, what they never read, how they are resampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.ope import Models, logged
from analysis.ope.abstract_model import AbstractConfig, AbstractModel, abstract_model
from analysis.ope.fitted_q import FittedQConfig, cross_fit, task_folds
from analysis.statistics import resample_counts
from harness_mdp.settings.tabular import exact_q, exact_value, optimal_q, sample_buffer, tabular_mdp
from tests.ope_logs import other_target, random_log
from tests.tabular import policy

MDP = tabular_mdp()
BEHAVIOUR = MDP.table(policy("portfolio"))
TARGET = 0.5 * BEHAVIOUR + 0.5 * MDP.table(policy("check_revise"))


def tabular_log(n_tasks: int = 20, rollouts: int = 20, seed: int = 0, target: np.ndarray = TARGET):
    buffer = sample_buffer(MDP, BEHAVIOUR, n_tasks=n_tasks, rollouts=rollouts, seed=seed)
    return buffer, logged(buffer, target[buffer.level[buffer.episode], buffer.state])


def test_with_much_data_both_models_come_to_the_exact_value() -> None:
    _, log = tabular_log(n_tasks=50, rollouts=200)
    exact, every_task = exact_value(MDP, TARGET), np.ones((1, 50))
    models = Models(log, FittedQConfig(folds=2), AbstractConfig(max_clusters=200, min_steps=20))
    assert models.fitted_q.initial_values().mean() == pytest.approx(exact, abs=0.01)
    assert models.abstract.estimate(every_task).value == pytest.approx(exact, abs=0.01)


def test_fitted_q_takes_expectations_over_the_target_and_not_its_best_action() -> None:
    buffer, log = tabular_log(n_tasks=50, rollouts=100)
    first = log.t == 1
    found = cross_fit(log, FittedQConfig(folds=2)).q[first].mean(axis=0)
    start = buffer.state[first][0]
    exact, best = exact_q(MDP, TARGET)[1, start], optimal_q(MDP)[1, start]
    often = np.bincount(log.action[first], minlength=7) > 100
    assert often.sum() >= 2
    np.testing.assert_allclose(found[often], exact[often], atol=0.05)
    assert (best[often] > exact[often] + 0.15).all()


def test_a_task_is_valued_by_models_that_have_not_seen_it() -> None:
    data = random_log(1, tasks=6, rollouts=8)
    target = other_target(data, 1)
    fold_of = task_folds(6, 3, 0)
    changed = np.where(fold_of[data.task] == 1, 1.0 - data.returns, data.returns)
    config = FittedQConfig(folds=3)
    before = cross_fit(logged(data, target), config).q
    after = cross_fit(logged(replace(data, returns=changed), target), config).q
    own = fold_of[data.task[data.episode]] == 1
    np.testing.assert_array_equal(before[own], after[own])
    assert (before[~own] != after[~own]).any()


def test_resamples_that_draw_every_task_once_give_the_estimate_itself() -> None:
    _, log = tabular_log()
    ones = np.ones((3, 20))
    models = Models(log)
    for made in (models.fitted_q.estimate(ones), models.abstract.estimate(ones)):
        np.testing.assert_allclose(made.draws, made.value, rtol=1e-6)


def test_a_resample_of_the_abstract_model_is_the_model_of_the_resampled_log() -> None:
    data = random_log(5, tasks=5, rollouts=12)
    target = other_target(data, 5)
    log = logged(data, target)
    model = abstract_model(log, AbstractConfig(max_clusters=4, min_steps=5))
    counts = resample_counts(5, 3, 0)
    draws = model.estimate(counts).draws
    for drawn, found in zip(counts, draws, strict=True):
        tasks = np.repeat(np.arange(5), drawn.astype(int))
        rows = np.concatenate([np.flatnonzero(data.task[data.episode] == task) for task in tasks])
        episodes = np.concatenate([np.flatnonzero(data.task == task) for task in tasks])
        again = replace(
            data,
            **{name: getattr(data, name)[rows] for name in ("features", "mask", "action", "base_action", "t")},
            propensities=data.propensities[rows],
            episode=np.repeat(np.arange(len(episodes)), np.bincount(data.episode)[episodes]),
            returns=data.returns[episodes],
            task=np.repeat(np.arange(5), 12),
        )
        repeated = AbstractModel(logged(again, target[rows]), model.cluster[rows], model.n_clusters)
        assert found == pytest.approx(repeated.estimate(np.ones((1, 5))).value, abs=1e-6)


def test_the_forward_pass_of_the_behaviour_policy_is_where_the_log_is() -> None:
    _, log = tabular_log(target=BEHAVIOUR)
    occupancy = abstract_model(log, AbstractConfig()).occupancy()
    steps = len(log.action) / log.n_episodes
    assert occupancy.decisions.sum() == pytest.approx(steps, rel=0.02)
    mass = log.mass[log.episode]
    np.testing.assert_allclose(occupancy.decisions.sum(axis=0), mass @ log.behaviour, rtol=0.1)


def test_models_are_the_same_every_time() -> None:
    _, log = tabular_log(n_tasks=10)
    counts = resample_counts(10, 50, 0)
    first, second = Models(log), Models(log)
    np.testing.assert_array_equal(first.fitted_q.q, second.fitted_q.q)
    np.testing.assert_array_equal(first.fitted_q.estimate(counts).draws, second.fitted_q.estimate(counts).draws)
    np.testing.assert_array_equal(first.abstract.estimate(counts).draws, second.abstract.estimate(counts).draws)
