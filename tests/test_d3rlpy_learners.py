"""d3rlpy's learners: what they trained decides the same in our arrays, never illegally, and again the same."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from controllers.config import D3_METHODS, D3Config, Method
from controllers.d3rlpy_learners import as_dataset, carry_over, fit_d3rlpy, train_d3rlpy
from controllers.data import StepArrays
from controllers.exploration import portfolio_policy
from controllers.gated_q import GatedQ
from controllers.kinds import make_controller
from controllers.learners import learn
from controllers.policy import ControllerPolicy
from controllers.q_function import ValuePolicy
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.mdp import ACTIONS, Action, DecisionBatch, DecisionPoint, Episode, start
from harness_mdp.settings.tabular import TabularMDP, sample_buffer, tabular_mdp
from tests.runs import opened, run, simulated
from tests.tabular import policy

ROOT = Path(__file__).resolve().parents[1]
SMALL = D3Config(hidden=16, batch_size=64, steps=80)
CONFIGS = [replace(SMALL, method=method) for method in D3_METHODS]
METHODS = [config.method.value for config in CONFIGS]


def mdp() -> TabularMDP:
    return tabular_mdp()


@cache
def tabular() -> StepArrays:
    """600 steps or so of the portfolio, in an order that no dataset has."""
    sample = sample_buffer(mdp(), policy("portfolio"), n_tasks=20, rollouts=8, seed=3)
    order = np.random.default_rng(0).permutation(sample.n_steps)
    return StepArrays(
        features=sample.features[order],
        mask=sample.mask[order],
        action=sample.action[order],
        base_action=sample.base_action[order],
        propensities=sample.propensities[order],
        t=sample.t[order],
        episode=sample.episode[order],
        returns=sample.returns,
        task=sample.task,
    )


def steps_of(episodes: list[Episode]) -> StepArrays:
    steps = [(index, step) for index, episode in enumerate(episodes) for step in episode.steps]
    return StepArrays(
        features=np.stack([step.features for _, step in steps]),
        mask=np.stack([step.mask for _, step in steps]),
        action=np.array([int(step.action) for _, step in steps]),
        base_action=np.array([int(step.base_action) for _, step in steps]),
        propensities=np.stack([step.propensities for _, step in steps]),
        t=np.array([step.t for _, step in steps]),
        episode=np.array([index for index, _ in steps]),
        returns=np.array([episode.return_ for episode in episodes], dtype=np.float64),
        task=np.arange(len(episodes)) // 2,
    )


@cache
def planning() -> StepArrays:
    """Two simulated rollouts of twelve tasks of `planning`."""
    setting, store = opened("planning")
    episodes = run(
        setting, store.tasks[:12], portfolio_policy(setting), simulated(store), store.sealed, rollouts=2, concurrency=8
    )
    return steps_of(episodes)


@cache
def trained(method: str):
    """d3rlpy's learner and its carried-over controller, on `tabular`."""
    config = replace(SMALL, method=Method(method))
    learner = train_d3rlpy(tabular(), config, seed=5)
    return learner, carry_over(learner, config)


def batch(data: StepArrays, mask: np.ndarray | None = None) -> DecisionBatch:
    """The states of `data`; under a made-up mask the base script drafts, which is always legal."""
    if mask is None:
        return DecisionBatch(data.features, data.mask, data.base_action)
    return DecisionBatch(data.features, mask, np.full(len(mask), Action.DRAFT))


@pytest.mark.parametrize("method", METHODS)
def test_unmasked_the_controller_is_what_d3rlpy_predicts(method):
    learner, controller = trained(method)
    states = tabular().features
    decided = controller.probs_batch(batch(tabular(), np.ones_like(tabular().mask))).argmax(axis=1)
    if isinstance(controller, ControllerPolicy):
        worth = np.log(controller.probs_batch(batch(tabular(), np.ones_like(tabular().mask))))
        with torch.no_grad():
            own = learner.impl.policy(torch.from_numpy(states)).probs.numpy()
        np.testing.assert_allclose(np.exp(worth), own, rtol=0, atol=1e-5)
    else:
        assert isinstance(controller, ValuePolicy)
        assert isinstance(controller.q, GatedQ)
        worth = GatedQ(controller.q.networks).values(states)
        own = [learner.predict_value(states, np.full(len(states), action)) for action in range(len(ACTIONS))]
        np.testing.assert_allclose(worth, np.stack(own, axis=1), rtol=1e-5, atol=1e-5)
        worth = controller.q.values(states)
    best = np.sort(worth, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-4  # float32 and float64 may break a tie differently
    assert clear.mean() > 0.9
    assert decided[clear].tolist() == learner.predict(states)[clear].tolist()


@pytest.mark.parametrize("method", METHODS)
def test_no_illegal_action_has_any_probability(method):
    _, controller = trained(method)
    masks = np.random.default_rng(1).random(tabular().mask.shape) < 0.3
    masks[:, Action.DRAFT] = True
    for mask in (tabular().mask, masks):
        probs = controller.probs_batch(batch(tabular(), mask))
        assert (probs[~mask] == 0.0).all()
        np.testing.assert_allclose(probs.sum(axis=1), 1.0, atol=1e-12)
    row = tabular()
    point = DecisionPoint(start(10), row.features[0], masks[0], Action.DRAFT)
    np.testing.assert_allclose(controller.probs(point), probs[0], atol=1e-12)


@pytest.mark.parametrize("method", ["cql", "sac"])
def test_on_episodes_of_a_real_setting_every_step_counts_and_every_decision_is_legal(method):
    data = planning()
    assert as_dataset(data).transition_count == len(data.action)
    learned = learn(data, replace(SMALL, method=Method(method), steps=40), seed=0)
    probs = learned.controller.probs_batch(batch(data))
    assert (probs[~data.mask] == 0.0).all()
    assert learned.metrics["n_steps"] == len(data.action)
    assert learned.controller.name == method


@pytest.mark.parametrize("method", METHODS)
def test_a_controller_comes_back_from_its_arrays(method):
    _, controller = trained(method)
    again = make_controller(controller.kind, controller.tensors(), getattr(controller, "decision", None), method)
    assert again.fingerprint == controller.fingerprint
    states = batch(tabular())
    assert np.array_equal(again.probs_batch(states), controller.probs_batch(states))


def test_bcq_keeps_to_what_the_behaviour_does():
    config = replace(SMALL, method=Method.BCQ)
    learner, _ = trained("bcq")
    states = batch(tabular())
    free = carry_over(learner, replace(config, threshold=0.0)).probs_batch(states)
    strict = carry_over(learner, replace(config, threshold=1.0))
    imitator = strict.q.imitator.outputs(tabular().features)
    assert np.array_equal(strict.q.values(tabular().features).argmax(axis=1), imitator.argmax(axis=1))
    ungated = ValuePolicy(GatedQ(strict.q.networks)).probs_batch(states)
    assert np.array_equal(free, ungated)
    assert not np.array_equal(free, strict.probs_batch(states))


def test_a_threshold_of_zero_trains():
    assert fit_d3rlpy(tabular(), replace(SMALL, method=Method.BCQ, threshold=0.0, steps=5), seed=0).kind == "gated_q"


def test_a_return_travels_back_to_the_first_step():
    """Three forced steps and a return of 1: without a renewed target network the first one would be worth anything."""
    m = 40
    t, episode = np.tile([1, 2, 3], m), np.repeat(np.arange(m), 3)
    data = StepArrays(
        features=np.eye(3, dtype=np.float32)[t - 1],
        mask=np.eye(7, dtype=bool)[np.full(3 * m, Action.DRAFT)],
        action=np.full(3 * m, Action.DRAFT),
        base_action=np.full(3 * m, Action.DRAFT),
        propensities=np.eye(7)[np.full(3 * m, Action.DRAFT)],
        t=t,
        episode=episode,
        returns=np.ones(m),
        task=np.arange(m) // 2,
    )
    config = D3Config(Method.CQL, hidden=16, batch_size=64, steps=700, learning_rate=5e-3)
    controller = fit_d3rlpy(data, config, seed=0)
    values = controller.q.values(np.eye(3, dtype=np.float32))[:, Action.DRAFT]
    np.testing.assert_allclose(values, 1.0, atol=0.25)


def test_the_same_seed_gives_the_same_controller_and_another_seed_another():
    config = replace(SMALL, steps=20)
    first, again, other = (fit_d3rlpy(tabular(), config, seed) for seed in (1, 1, 2))
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_the_global_generators_and_threads_are_as_before():
    before = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    threads = torch.get_num_threads()
    fit_d3rlpy(tabular(), replace(SMALL, steps=3), seed=1)
    after = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    assert before == after
    assert torch.get_num_threads() == threads


CHILD = """
import sys
from pathlib import Path
import controllers.learners
from controllers.config import D3Config
from controllers.d3rlpy_learners import fit_d3rlpy
from harness_mdp.settings.tabular import sample_buffer, tabular_mdp
from tests.tabular import policy
assert "d3rlpy" not in sys.modules, "loaded before it is used"
data = sample_buffer(tabular_mdp(), policy("portfolio"), n_tasks=5, rollouts=4, seed=3)
controller = fit_d3rlpy(data, D3Config(hidden=8, batch_size=32, steps=10), seed=7)
Path(sys.argv[1]).write_text(controller.fingerprint)
"""


def test_another_process_learns_the_same_prints_nothing_and_leaves_no_folder(tmp_path):
    data = sample_buffer(mdp(), policy("portfolio"), n_tasks=5, rollouts=4, seed=3)
    here = fit_d3rlpy(data, D3Config(hidden=8, batch_size=32, steps=10), seed=7)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, "found"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "123"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert [p.name for p in tmp_path.iterdir()] == ["found"]
    assert (tmp_path / "found").read_text() == here.fingerprint


def test_divergence_is_said_and_not_saved():
    wild = replace(SMALL, method=Method.NFQ, learning_rate=1e30, steps=30)
    with pytest.raises(ConfigError, match=r"training nfq diverged with seed 4.*Lower learning_rate"):
        fit_d3rlpy(tabular(), wild, seed=4)


def test_steps_that_cannot_be_learned_from_are_refused():
    illegal = replace(tabular(), mask=~tabular().mask)
    with pytest.raises(UnusableBuffer, match="legal mask forbids"):
        fit_d3rlpy(illegal, SMALL, seed=0)
    with pytest.raises(ConfigError, match="device is 'tpu'"):
        fit_d3rlpy(tabular(), SMALL, seed=0, device="tpu")
