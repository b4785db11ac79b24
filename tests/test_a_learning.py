"""A-learning: what it makes of a wrong mean, of rarely tried actions, and of the order of the log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controllers.config import Backup, LinearQConfig, Method
from controllers.data import StepArrays
from controllers.exploration import portfolio_policy
from controllers.fitted_linear import fit_linear
from controllers.presets import preset
from controllers.q_function import ValuePolicy
from harness_mdp.features import HAS_ARTIFACT, STEPS_LEFT
from harness_mdp.mdp import Action
from harness_mdp.settings import open_setting
from harness_mdp.settings.tabular import exact_value, sample_buffer, tabular_mdp

WIDTH = 31
SIGNAL = WIDTH - 1
MU = {Action.DRAFT: 0.6, Action.CHECK: 0.3, Action.SUBMIT: 0.1}
A_LEARNING = LinearQConfig()
LINEAR_Q = LinearQConfig(method=Method.LINEAR_Q, ridge=20.0)


def one_stage(n: int, *, seed: int) -> StepArrays:
    """n episodes of one step. Whatever is done, much depends on the state, and on no line in it; check is better than
    draft by 0.2·sign where the signal is, submit is worse by 0.1 everywhere."""
    rng = np.random.default_rng(seed)
    features = np.zeros((n, WIDTH), dtype=np.float32)
    features[:, STEPS_LEFT] = 1.0
    features[:, HAS_ARTIFACT] = 1.0
    features[:, SIGNAL] = rng.choice([-1.0, 1.0], n)
    features[:, SIGNAL - 1] = rng.normal(size=n)
    common = 0.5 + 0.3 * np.cos(3.0 * features[:, SIGNAL - 1])
    propensities = np.zeros((n, 7))
    for action, probability in MU.items():
        propensities[:, action] = probability
    action = rng.choice(list(MU), size=n, p=list(MU.values())).astype(np.int64)
    gain = np.where(action == Action.CHECK, 0.2 * features[:, SIGNAL], np.where(action == Action.SUBMIT, -0.1, 0.0))
    return StepArrays(
        features=features,
        mask=propensities > 0,
        action=action,
        base_action=np.full(n, int(Action.DRAFT)),
        propensities=propensities,
        t=np.ones(n, dtype=np.int64),
        episode=np.arange(n),
        returns=common + gain,
        task=np.arange(n) // 20,
    )


def differences(log: StepArrays, config: LinearQConfig) -> np.ndarray:
    """(2, 2) of check and submit over draft, where the signal is -1 and 1."""
    q = replace(fit_linear(log, config), excess=0.0, relative=0.0)
    states = log.features[[np.argmin(log.features[:, SIGNAL]), np.argmax(log.features[:, SIGNAL])]].copy()
    states[:, SIGNAL - 1] = 2.0  # where a line through the common part is far off
    values = q.values(states)
    return (values[:, [Action.CHECK, Action.SUBMIT]] - values[:, [Action.DRAFT]]).T


def test_advantages_are_right_although_the_mean_is_not():
    log = one_stage(40_000, seed=0)
    found = differences(log, replace(A_LEARNING, ridge=1.0))
    np.testing.assert_allclose(found, [[-0.2, 0.2], [-0.1, -0.1]], atol=0.02)


def test_a_rarely_tried_action_is_known_better_than_by_regressing_its_value():
    configs = (A_LEARNING, LINEAR_Q)
    logs = [one_stage(600, seed=seed) for seed in range(20)]
    advantages, values = (
        np.mean([np.square(differences(log, config)[1] + 0.1).mean() for log in logs]) for config in configs
    )
    assert advantages < values / 2


def test_a_great_ridge_leaves_one_advantage_an_action():
    log = one_stage(4_000, seed=1)
    found = differences(log, replace(A_LEARNING, ridge=1e9))
    np.testing.assert_allclose(found[:, 0], found[:, 1], atol=1e-4)
    assert found[1, 0] == pytest.approx(-0.1, abs=0.03)


def test_an_action_tried_too_rarely_is_unsupported_and_the_others_are_not():
    log = one_stage(2_000, seed=2)
    rare = int((log.action == Action.SUBMIT).sum())
    q = replace(fit_linear(log, replace(A_LEARNING, min_visits=rare + 1)), excess=0.0, relative=0.0)
    assert np.isnan(q.intercept[:, Action.SUBMIT]).all()
    values = q.values(log.features[:5])
    assert not np.isfinite(values[:, Action.SUBMIT]).any()
    assert np.isfinite(values[:, [Action.DRAFT, Action.CHECK]]).all()


def test_the_order_of_the_log_does_not_matter():
    log = one_stage(1_000, seed=3)
    order = np.random.default_rng(0).permutation(1_000)
    shuffled = replace(
        log,
        **{
            name: getattr(log, name)[order]
            for name in ("features", "mask", "action", "base_action", "propensities", "t", "episode")
        },
    )
    one, other = fit_linear(log, A_LEARNING), fit_linear(shuffled, A_LEARNING)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-9)


def test_going_on_as_the_behaviour_does_is_worth_less_than_going_on_with_the_best():
    world = tabular_mdp()
    behaviour = portfolio_policy(open_setting("tabular"))
    log = sample_buffer(world, world.table(behaviour), n_tasks=200, rollouts=20, seed=5)
    once, planned = (fit_linear(log, replace(LINEAR_Q, backup=backup)) for backup in (Backup.BEHAVIOUR, Backup.BEST))
    first = log.features[log.t == 1]
    known = np.isfinite(planned.values(first))
    assert planned.values(first)[known].mean() - once.values(first)[known].mean() > 0.05
    before = exact_value(world, world.table(behaviour))
    for config in (A_LEARNING, LINEAR_Q):
        better = ValuePolicy(fit_linear(log, replace(config, backup=Backup.BEHAVIOUR)))
        assert exact_value(world, better) > before + 0.02


def test_the_presets_are_what_their_names_say():
    assert A_LEARNING.method is Method.A_LEARNING
    assert preset(Method.A_LEARNING) == A_LEARNING
    assert preset(Method.LINEAR_Q) == LINEAR_Q
