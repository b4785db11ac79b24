"""Linear fitted Q over proposed actions: what counts as proposed, the deadline, and what a saved one must hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controllers.config import LinearQConfig, Method
from controllers.exploration import portfolio_policy
from controllers.fitted_linear import fit_linear
from controllers.linear_q import LinearQ, proposed_actions
from controllers.presets import preset
from harness_mdp.errors import ConfigError
from harness_mdp.features import HAS_ARTIFACT, STEPS_LEFT
from harness_mdp.mdp import Action
from harness_mdp.settings import open_setting
from harness_mdp.settings.tabular import sample_buffer, tabular_mdp

SETTING = open_setting("tabular")
LINEAR_Q = preset(Method.LINEAR_Q)


@pytest.fixture(scope="module")
def log():
    world = tabular_mdp()
    return sample_buffer(world, world.table(portfolio_policy(SETTING)), n_tasks=80, rollouts=20, seed=3)


@pytest.fixture(scope="module")
def q(log):
    return fit_linear(log, LINEAR_Q)


def test_proposed_is_what_some_script_does_and_not_what_is_merely_explored():
    portfolio = [0.0, 0.02, 0.02, 0.12, 0.27, 0.02, 0.55]
    assert proposed_actions(np.array([portfolio]), 0.05, 0.0)[0].tolist() == [0, 0, 0, 1, 1, 0, 1]
    assert proposed_actions(np.array([portfolio]), 0.05, 0.3)[0].tolist() == [0, 0, 0, 0, 1, 0, 1]


def test_the_only_or_most_probable_action_is_always_proposed():
    certain = np.eye(7)[[2]]
    even = np.array([[0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]])
    assert proposed_actions(certain, 0.05, 0.2)[0].tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert proposed_actions(even, 0.05, 0.2)[0].tolist() == [0, 1, 1, 0, 0, 0, 0]


def test_with_one_step_left_and_no_artifact_only_drafting_is_worth_something(q, log):
    last = log.features[log.features[:, HAS_ARTIFACT] == 0].copy()
    last[:, STEPS_LEFT] = 1 / len(q.weights)
    values = replace(q, excess=0.0, relative=0.0).values(last)
    assert np.abs(values[:, Action.OBSERVE]).max() < 0.05
    assert values[:, Action.DRAFT].mean() > 0.2


def test_an_action_that_no_script_proposes_is_unsupported(q, log):
    values = q.values(log.features)
    proposed = proposed_actions(log.propensities, q.excess, q.relative)
    assert (np.isfinite(values) == proposed).mean() > 0.99
    assert np.isfinite(values).any(axis=1).all()


def test_the_order_of_episodes_does_not_matter(log, q):
    order = np.random.default_rng(0).permutation(len(log.action))
    shuffled = replace(
        log,
        **{
            name: getattr(log, name)[order]
            for name in ("features", "mask", "action", "base_action", "propensities", "t", "episode")
        },
    )
    again = fit_linear(shuffled, LINEAR_Q)
    np.testing.assert_allclose(again.weights, q.weights, atol=1e-9)


def test_it_comes_back_from_its_arrays(q, log):
    again = LinearQ.from_tensors(q.tensors())
    np.testing.assert_array_equal(again.values(log.features), q.values(log.features))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"scale": np.zeros(31)}, "scale above 0"),
        ({"weights": np.zeros((6, 5, 7))}, r"weights have shape \(6, 5, 7\)"),
        ({"intercept": np.full((6, 7), np.inf)}, "intercept holds infinite"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(q, broken, message):
    with pytest.raises(ValueError, match=message):
        LinearQ.from_tensors({**q.tensors(), **broken})


@pytest.mark.parametrize("broken", [{"ridge": -1.0}, {"relative": float("nan")}, {"min_visits": 0}])
def test_a_configuration_that_cannot_work_is_refused_by_name(broken):
    with pytest.raises(ConfigError, match=next(iter(broken))):
        LinearQConfig(**broken)
