"""Every learner behind one interface, held against exact values in the tabular world."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controllers.config import AdvantageKind, AWConfig, DecisionRule, LinearQConfig, Method, PlanConfig, QConfig
from controllers.exploration import portfolio_policy
from controllers.guard import GuardConfig, GuardLevel, Refusal
from controllers.learners import learn
from controllers.manifest import Manifest
from controllers.presets import preset
from controllers.saved import load_controller, load_folds, save_controller
from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import DecisionBatch
from harness_mdp.settings import open_setting
from harness_mdp.settings.tabular import exact_value, sample_buffer, tabular_mdp

SETTING = open_setting("tabular")
PLAN = PlanConfig(members=2, rounds=1)
LEARNERS = {
    "aw": AWConfig(),
    "aw_step": replace(preset(Method.AW_STEP), epochs=10),
    "aw_planned": AWConfig(
        method=Method.AW_PLANNED,
        advantage=AdvantageKind.PLANNED,
        beta=0.05,
        epochs=10,
        decision=DecisionRule.GREEDY,
        plan=PLAN,
    ),
    "aw_linear": replace(preset(Method.AW_LINEAR), epochs=10),
    "a_learning": LinearQConfig(),
    "linear_q": preset(Method.LINEAR_Q),
    "plan": PLAN,
    "one_step": QConfig(method=Method.ONE_STEP, bags=2, trees=10),
    "fitted_q": QConfig(method=Method.FITTED_Q, bags=2, trees=10),
}


@pytest.fixture(scope="module")
def world():
    return tabular_mdp()


@pytest.fixture(scope="module")
def portfolio(world):
    return world.table(portfolio_policy(SETTING))


@pytest.fixture(scope="module")
def log(world, portfolio):
    return sample_buffer(world, portfolio, n_tasks=80, rollouts=20, seed=3)


@pytest.fixture(scope="module")
def learned(log):
    return {name: learn(log, config, seed=1, folds=2) for name, config in LEARNERS.items()}


def states(log) -> DecisionBatch:
    return DecisionBatch(log.features, log.mask, log.base_action)


@pytest.mark.parametrize("name", LEARNERS)
def test_it_gains_on_what_it_learned_from(name, learned, world, portfolio):
    assert exact_value(world, learned[name].controller) > exact_value(world, portfolio) + 0.03


@pytest.mark.parametrize(
    "name", ["aw_step", "aw_planned", "aw_linear", "a_learning", "linear_q", "plan", "one_step", "fitted_q"]
)
def test_looking_at_single_steps_takes_out_more_than_whole_trajectories(name, learned, world):
    assert exact_value(world, learned[name].controller) > exact_value(world, learned["aw"].controller)


@pytest.mark.parametrize("name", LEARNERS)
def test_its_decisions_are_distributions_over_legal_actions(name, learned, log):
    probs = learned[name].controller.probs_batch(states(log))
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, atol=1e-12)
    assert (probs[~log.mask] == 0.0).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_seed_learns_the_same(name, learned, log):
    again = learn(log, LEARNERS[name], seed=1)
    assert again.controller.fingerprint == learned[name].controller.fingerprint


@pytest.mark.parametrize("name", LEARNERS)
def test_saved_and_loaded_it_decides_the_same_and_so_do_its_folds(name, learned, log, tmp_path):
    made = learned[name]
    held_out = tuple(
        tuple(f"task-{index}" for index in sorted(set(log.task[fold.held_out].tolist()))) for fold in made.folds
    )
    manifest = Manifest(
        name=name,
        method=name,
        seed=1,
        decision=DecisionRule.SAMPLE if name == "aw" else DecisionRule.GREEDY,
        feature_schema_id=SETTING.schema.id,
        feature_names=SETTING.schema.names,
        settings={SETTING.name: SETTING.version},
        executors=("simulated",),
        buffer_path="nowhere",
        buffer_version=None,
        folds=held_out,
    )
    save_controller(tmp_path / "c", made.controller, manifest, [fold.controller for fold in made.folds])
    loaded = load_controller(tmp_path / "c", SETTING)
    assert loaded.fingerprint == made.controller.fingerprint
    batch = states(log)
    np.testing.assert_array_equal(loaded.probs_batch(batch), made.controller.probs_batch(batch))
    folds = load_folds(tmp_path / "c", SETTING)
    assert [tasks for _, tasks in folds] == [frozenset(tasks) for tasks in held_out]
    for (controller, _), fold in zip(folds, made.folds, strict=True):
        assert controller.fingerprint == fold.controller.fingerprint


def test_folds_share_no_task_with_what_they_learned_from_and_cover_all(learned, log):
    for made in learned.values():
        held = np.stack([fold.held_out for fold in made.folds])
        assert (held.sum(axis=0) == 1).all()
        for fold in held:
            assert not set(log.task[fold]) & set(log.task[~fold])


def test_a_fold_controller_is_what_the_learner_makes_of_the_other_tasks_alone(learned, log):
    from controllers.transitions import only_episodes

    fold = learned["plan"].folds[0]
    alone = learn(only_episodes(log, ~fold.held_out)[0], LEARNERS["plan"], seed=1)
    assert alone.controller.fingerprint == fold.controller.fingerprint


def test_a_plan_without_any_supported_pair_is_refused_with_what_to_do(log):
    with pytest.raises(UnusableBuffer, match=r"no abstract state has 100000 visits.*Collect more rollouts"):
        learn(log, replace(PLAN, min_visits=100_000), seed=1)


@pytest.fixture(scope="module")
def guarded(log):
    q_learning = preset(Method.LINEAR_Q)
    return {
        level: learn(log, LEARNERS["aw"], seed=1, guard=GuardConfig(level, linear=q_learning)) for level in GuardLevel
    }


def test_a_guard_moves_what_it_refuses_to_base_and_counts_it(guarded, log):
    batch = states(log)
    open_ = guarded[GuardLevel.NONE].controller.probs_batch(batch)
    rows = np.arange(len(batch))
    before = open_[rows, log.base_action].mean()
    for level in (GuardLevel.SUPPORT, GuardLevel.ADVANTAGE):
        controller = guarded[level].controller
        after = controller.probs_batch(batch)
        np.testing.assert_allclose(after.sum(axis=1), 1.0, atol=1e-12)
        refused = controller.refusals(batch)
        moved = (after[rows, log.base_action] - open_[rows, log.base_action]).sum()
        assert moved == pytest.approx(sum(refused.values()))
        assert guarded[level].metrics["refused_support"] == pytest.approx(refused[Refusal.SUPPORT] / len(batch))
        assert after[rows, log.base_action].mean() >= before
    assert guarded[GuardLevel.ADVANTAGE].metrics["refused_advantage"] > 0


def test_a_guard_that_asks_for_the_impossible_leaves_base(log, world):
    made = learn(log, LEARNERS["plan"], seed=1, guard=GuardConfig(GuardLevel.ADVANTAGE, margin=2.0))
    assert exact_value(world, made.controller) == pytest.approx(exact_value(world, portfolio_base()))


def portfolio_base():
    from harness_mdp.settings.scripts import script_policy

    return script_policy(SETTING, "base")


def test_a_guarded_plan_is_not_below_base(log, world, learned):
    made = learn(log, LEARNERS["plan"], seed=1, guard=GuardConfig())
    assert exact_value(world, made.controller) > exact_value(world, portfolio_base())
