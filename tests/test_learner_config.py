"""Learners by name and changes: what the command line, the table of learners and a study hand to the trainers."""

from __future__ import annotations

import numpy as np
import pytest

from controllers.advantages import NOT_PROPOSED, LinearAdvantage
from controllers.config import AWConfig, LinearQConfig, Method, Prior
from controllers.exploration import portfolio_policy
from controllers.presets import preset
from controllers.training import step_weights
from experiments.learners_table import variant
from experiments.method_config import learner_config, method_config
from harness_mdp.errors import ConfigError
from harness_mdp.settings import open_setting
from harness_mdp.settings.tabular import sample_buffer, tabular_mdp


@pytest.mark.parametrize("method", Method)
def test_a_learner_without_changes_is_its_preset(method):
    assert learner_config(method_config(method.value)) == preset(method)
    assert variant(method.value) == preset(method)


def test_changes_reach_the_learner_and_what_is_inside_it():
    found = variant("aw_linear prior=behaviour linear.relative=0 epochs=3")
    assert isinstance(found, AWConfig)
    assert (found.prior, found.linear.relative, found.epochs) == (Prior.BEHAVIOUR, 0.0, 3)
    assert found.linear.ridge == LinearQConfig().ridge


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "method is 'nope'; expected one of aw, bc"),
        ("aw_linear priors=behaviour", "Key 'priors' not in 'MethodConfig'"),
        ("linear_q relative=much", "could not be converted to Float"),
        ("aw_linear linear.ridge=-1", r"method\.linear\.ridge is -1\.0; expected a finite number"),
        ("aw epochs=0", r"method\.epochs is 0; expected a whole number"),
        ("aw_linear linear.method=plan", r"method\.linear\.method is 'plan'; expected linear_q or a_learning"),
        ("aw_planned plan.method=one_step", r"method\.plan\.method is 'one_step'; expected plan"),
        ("a_learning backup=never", r"method\.backup is 'never'; expected one of best, behaviour"),
        (
            "aw linear.ridge=3",
            r"method\.linear was given and changes nothing for aw, with method\.advantage=trajectory",
        ),
        ("aw_linear plan.z=1", r"method\.plan was given and changes nothing for aw_linear"),
        ("aw_step baseline=leave_one_out", r"method\.baseline was given and changes nothing for aw_step"),
        ("bc plan.z=1", r"method\.plan was given and changes nothing for bc, whose weights are all 1; leave it out"),
        ("bc beta=0.1", r"method\.beta was given and changes nothing for bc"),
        ("a_learning relative=2", r"method\.relative is 2\.0; expected a share from 0 to 1"),
        ("aw_linear linear.excess=1.5", r"method\.linear\.excess is 1\.5; expected a share from 0 to 1"),
        ("bcq alpha=2", r"method\.alpha was given and changes nothing for bcq, which has none"),
        ("nfq threshold=0.1", r"method\.threshold was given and changes nothing for nfq"),
        ("aw prior=flat", r"method\.prior is 'flat'; expected one of behaviour, uniform"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(text, message):
    with pytest.raises(ConfigError, match=message):
        variant(text)


@pytest.mark.parametrize(
    "text",
    ["aw linear.ridge=3 advantage=linear", "aw_linear plan.z=1 advantage=planned", "cql alpha=2", "bcq threshold=0.1"],
)
def test_what_changes_the_learner_is_taken(text):
    assert variant(text) != preset(variant(text).method)


@pytest.fixture(scope="module")
def log():
    world = tabular_mdp()
    return sample_buffer(world, world.table(portfolio_policy(open_setting("tabular"))), n_tasks=40, rollouts=10, seed=3)


def test_a_uniform_prior_divides_the_weights_by_the_known_propensity(log):
    rows = np.arange(len(log.action))
    near, _ = step_weights(log, variant("aw_linear prior=behaviour"))
    free, _ = step_weights(log, variant("aw_linear"))
    ratio = near / log.propensities[rows, log.action]
    np.testing.assert_allclose(free, ratio / ratio.mean())
    assert free.mean() == pytest.approx(1.0)


def test_what_no_script_proposed_has_the_least_weight(log):
    advantages = LinearAdvantage(LinearQConfig())(log)
    rare = log.propensities[np.arange(len(log.action)), log.action] < 0.06
    assert (advantages[rare] == NOT_PROPOSED).mean() > 0.9
    likely = log.propensities[np.arange(len(log.action)), log.action] == log.propensities.max(axis=1)
    assert (advantages[likely] > NOT_PROPOSED).mean() > 0.99
    near, _ = step_weights(log, variant("aw_linear prior=behaviour"))
    assert (near[advantages == NOT_PROPOSED] == variant("aw_linear").weight_min).all()
