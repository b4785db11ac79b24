"""Buffers that teach nothing, or next to nothing: no NaN, no inflated weight, and a sentence that says what is wrong.

The stored ones are made with the simulated executor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from buffers import ReplayBuffer
from controllers.advantages import advantage_estimator
from controllers.config import (
    D3_METHODS,
    AWConfig,
    Baseline,
    D3Config,
    LearnerConfig,
    LinearQConfig,
    Method,
    PlanConfig,
    QConfig,
)
from controllers.exploration import portfolio_policy
from controllers.guard import GuardConfig, GuardLevel
from controllers.learners import learn
from controllers.presets import preset
from controllers.slack import measure_slack
from controllers.training import step_weights
from experiments.collection import collect
from experiments.config import CollectConfig, PortfolioPolicyConfig, SettingConfig, SimulatedConfig, TrainConfig
from experiments.method_config import (
    AnyMethodConfig,
    D3MethodConfig,
    LinearQMethodConfig,
    MethodConfig,
    PlanMethodConfig,
    QMethodConfig,
    method_config,
)
from experiments.printing import print_training
from experiments.training import train
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.mdp import DecisionBatch
from harness_mdp.settings.tabular import Tabular, TabularSample, sample_buffer, tabular_mdp
from tests.commands import command

TASKS, ROLLOUTS = 40, 8
AW_LIKE = (Method.AW, Method.BC, Method.AW_STEP, Method.AW_PLANNED, Method.AW_LINEAR)
BY_VALUE = (Method.PLAN, Method.A_LEARNING, Method.LINEAR_Q, Method.ONE_STEP, Method.FITTED_Q, *D3_METHODS)
PLAN = PlanConfig(members=2, rounds=1)


def small(method: Method) -> LearnerConfig:
    """The preset, at a size that trains in a moment."""
    match preset(method):
        case AWConfig() as config:
            return replace(config, epochs=1, plan=PLAN)
        case PlanConfig():
            return PLAN
        case QConfig() as config:
            return replace(config, bags=2, trees=5)
        case LinearQConfig() as config:
            return config
        case D3Config() as config:
            return replace(config, steps=20)


def buffer(returns: Callable[[np.ndarray, np.ndarray], np.ndarray], rollouts: int = ROLLOUTS) -> TabularSample:
    """A portfolio's steps with the returns that `returns` makes of task and rollout."""
    log = sample_buffer(tabular_mdp(4), portfolio_policy(Tabular()), n_tasks=TASKS, rollouts=rollouts, seed=1)
    return replace(log, returns=returns(log.task, log.rollout).astype(np.float64))


@pytest.fixture(scope="module")
def logs() -> dict[str, TabularSample]:
    return {
        "zero_slack": buffer(lambda task, rollout: (task % 5) / 4),
        "all_equal": buffer(lambda task, rollout: np.full(len(task), 0.1 + 0.2)),
        "single": buffer(lambda task, rollout: (task % 3) / 2, rollouts=1),
        "one_good": buffer(lambda task, rollout: rollout == task % ROLLOUTS),
        "one_bad": buffer(lambda task, rollout: rollout != task % ROLLOUTS),
    }


def assert_decides(log: TabularSample, config: LearnerConfig, guard: GuardConfig | None = None) -> None:
    made = learn(log, config, seed=0, guard=guard, folds=2)
    for array in made.controller.tensors().values():
        assert not np.issubdtype(array.dtype, np.floating) or not np.isinf(array).any()
    for controller in (made.controller, *(fold.controller for fold in made.folds)):
        probs = controller.probs_batch(DecisionBatch(log.features, log.mask, log.base_action))
        np.testing.assert_allclose(probs.sum(axis=1), 1.0, atol=1e-9)
        assert (probs >= 0.0).all()
        assert (probs[~log.mask] == 0.0).all()
    for name, value in made.metrics.items():
        assert np.isfinite(np.array(value, dtype=np.float64)).all(), name


@pytest.mark.parametrize("method", [*AW_LIKE, *BY_VALUE])
def test_every_learner_learns_from_a_split_of_seven_to_one(logs, method):
    assert_decides(logs["one_good"], small(method))


@pytest.mark.parametrize("method", [Method.AW, Method.PLAN, Method.FITTED_Q])
def test_and_from_one_of_one_to_seven(logs, method):
    assert_decides(logs["one_bad"], small(method))


@pytest.mark.parametrize("method", [Method.BC, Method.AW_STEP, Method.AW_PLANNED, *BY_VALUE])
def test_who_needs_no_task_baseline_learns_from_one_rollout_a_task(logs, method):
    assert_decides(logs["single"], small(method))


def test_who_compares_rollouts_refuses_one_rollout_a_task_with_numbers(logs):
    with pytest.raises(UnusableBuffer, match=r"40 tasks with one rollout each \(40 episodes\).*rollouts=2"):
        learn(logs["single"], small(Method.AW))


@pytest.mark.parametrize("method", BY_VALUE)
@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("zero_slack", r"in each of 40 tasks \(320 episodes, returns 0.000 to 1.000\)"),
        ("all_equal", r"all 320 episodes scored 0.300, in each of 40 tasks"),
    ],
)
def test_who_picks_by_value_refuses_zero_slack_with_numbers(logs, method, name, numbers):
    with pytest.raises(UnusableBuffer, match=rf"slack is 0: .*{numbers}.*{method.value} would choose by noise.*=bc"):
        learn(logs[name], small(method))


@pytest.mark.parametrize("method", AW_LIKE)
@pytest.mark.parametrize("name", ["zero_slack", "all_equal"])
def test_at_zero_slack_weights_are_one_and_the_result_is_behaviour_cloning(logs, method, name):
    config = small(method)
    assert isinstance(config, AWConfig)
    weights, slack = step_weights(logs[name], config, seed=0)
    np.testing.assert_allclose(weights, 1.0, atol=1e-12)
    assert slack.is_zero
    made = learn(logs[name], config, seed=0).controller
    cloned = learn(logs[name], small(Method.BC), seed=0).controller
    for key, array in cloned.tensors().items():
        np.testing.assert_allclose(made.tensors()[key], array, atol=1e-6)
    assert_decides(logs[name], config)


def test_a_guard_learns_from_one_rollout_a_task(logs):
    assert_decides(logs["single"], small(Method.BC), GuardConfig())


@pytest.mark.parametrize("name", ["zero_slack", "all_equal"])
def test_a_guard_that_goes_by_advantages_refuses_zero_slack_and_one_that_goes_by_support_does_not(logs, name):
    with pytest.raises(UnusableBuffer, match=r"slack is 0: .*guard=advantage would choose by noise.*guard=none"):
        learn(logs[name], small(Method.BC), guard=GuardConfig(GuardLevel.ADVANTAGE))
    assert_decides(logs[name], small(Method.BC), GuardConfig(GuardLevel.SUPPORT))


@pytest.mark.parametrize("baseline", Baseline)
@pytest.mark.parametrize("name", ["one_good", "one_bad"])
def test_a_split_of_seven_to_one_inflates_no_weight(logs, name, baseline):
    """Advantages are differences of returns and nothing else: dividing by their spread would make 2.6 of 0.875."""
    log = logs[name]
    config = replace(small(Method.AW), baseline=baseline)
    assert isinstance(config, AWConfig)
    lone = (log.returns == (name == "one_good"))[log.episode]
    scale = ROLLOUTS / (ROLLOUTS - 1) if baseline is Baseline.LEAVE_ONE_OUT else 1.0
    sign = 1.0 if name == "one_good" else -1.0
    expected = np.where(lone, sign * 0.875, -sign * 0.125) * scale
    np.testing.assert_allclose(advantage_estimator(config)(log), expected, atol=1e-12)
    weights, _ = step_weights(log, config)
    np.testing.assert_allclose(weights, np.clip(np.exp(expected / config.beta), 0.1, 10.0), rtol=1e-12)


@pytest.mark.parametrize("method", [Method.AW_STEP, Method.AW_PLANNED])
def test_step_advantages_of_a_seven_to_one_split_stay_within_what_returns_can_differ(logs, method):
    config = small(method)
    assert isinstance(config, AWConfig)
    advantages = advantage_estimator(config, seed=0)(logs["one_good"])
    assert np.isfinite(advantages).all()
    assert np.abs(advantages).max() <= 1.0
    weights, _ = step_weights(logs["one_good"], config, seed=0)
    assert config.weight_min <= weights.min() <= weights.max() <= config.weight_max


@pytest.mark.parametrize(
    ("name", "method", "said"),
    [
        ("zero_slack", Method.AW, "in each of 40 tasks (320 episodes, returns 0.000 to 1.000). Zero slack cannot be"),
        ("all_equal", Method.AW_PLANNED, "all 320 episodes scored 0.300, in each of 40 tasks. Zero slack cannot be"),
        ("single", Method.PLAN, "40 of 40 tasks have one rollout and no slack can be seen there: plan tells"),
        ("single", Method.BC, "behaviour cloning needs none"),
        ("one_good", Method.AW, "in 40 of 40 tasks whose rollouts scored differently, one rollout stands alone"),
        ("one_bad", Method.FITTED_Q, "in 40 of 40 tasks whose rollouts scored differently, one rollout stands alone"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(logs, name, method, said):
    remarks = measure_slack(logs[name].returns, logs[name].task).remarks(method)
    assert any(said in remark for remark in remarks), remarks


def test_a_buffer_with_more_than_one_rollout_on_each_side_is_no_matter_of_one_draw():
    slack = measure_slack(np.array([0.0, 0.0, 1.0, 1.0] * 3), np.repeat(np.arange(3), 4))
    assert slack.n_lone == 0
    assert slack.remarks() == ()


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> dict[str, Path]:
    """Real buffers of the simulated executor, their returns replaced."""
    root = tmp_path_factory.mktemp("degenerate")
    collect(
        CollectConfig(
            setting=SettingConfig(name="tabular", tasks=20, limit=10),
            executor=SimulatedConfig(),
            policy=PortfolioPolicyConfig(),
            buffer=str(root / "collected"),
            rollouts=ROLLOUTS,
        ),
        quiet=True,
    )
    episodes = list(ReplayBuffer(root / "collected").episodes())
    rank = {identity: index for index, identity in enumerate(sorted({each.task_id for each in episodes}))}
    made = {
        "zero_slack": [replace(each, return_=(rank[each.task_id] % 3) / 2) for each in episodes],
        "all_equal": [replace(each, return_=0.5) for each in episodes],
        "single": [each for each in episodes if each.rollout == 0],
        "one_good": [replace(each, return_=float(each.rollout == 0)) for each in episodes],
    }
    for name, rows in made.items():
        ReplayBuffer(root / name).append(rows)
    return {name: root / name for name in made}


def quick(method: Method) -> AnyMethodConfig:
    """The keys of `small`."""
    match made := method_config(method.value):
        case MethodConfig():
            made.epochs = 2
        case PlanMethodConfig():
            made.members, made.rounds = 2, 1
        case QMethodConfig():
            made.bags, made.trees = 2, 5
        case LinearQMethodConfig():
            pass
        case D3MethodConfig():
            made.steps = 20
        case _:
            raise ValueError(method)
    return made


def configured(path: Path, out: Path, method: Method) -> TrainConfig:
    return TrainConfig(
        setting=SettingConfig(name="tabular"),
        method=quick(method),
        buffer=str(path),
        out=str(out),
        folds=0,
        device="cpu",
    )


@pytest.mark.parametrize(
    ("name", "method", "said"),
    [
        ("zero_slack", Method.AW, "slack is 0: all rollouts of a task scored the same, in each of"),
        ("all_equal", Method.AW_STEP, "episodes scored 0.500, in each of"),
        ("single", Method.ONE_STEP, "tasks have one rollout and no slack can be seen there: one_step tells"),
        ("one_good", Method.AW, "one rollout stands alone against all others"),
        ("one_good", Method.PLAN, "one rollout stands alone against all others"),
    ],
)
def test_training_prints_the_sentence_and_keeps_it_in_the_manifest(stored, tmp_path, capsys, name, method, said):
    config = configured(stored[name], tmp_path / "out", method)
    training = train(config)
    print_training(config, training)
    printed = " ".join(capsys.readouterr().out.split())
    assert said in printed
    assert ("slack unknown" in printed) == (name == "single")
    assert "nan" not in printed.lower()
    assert any(said in remark for remark in training.manifest.metrics["remarks"])


@pytest.mark.parametrize("method", BY_VALUE)
def test_training_by_value_on_zero_slack_saves_nothing(stored, tmp_path, method):
    with pytest.raises(UnusableBuffer, match=f"slack is 0.*{method.value} would choose by noise"):
        train(configured(stored["zero_slack"], tmp_path / "out", method))
    assert not (tmp_path / "out").exists()


def test_a_margin_without_the_guard_that_asks_for_it_is_refused(stored, tmp_path):
    config = replace(configured(stored["one_good"], tmp_path / "out", Method.BC), guard_margin=0.3)
    with pytest.raises(ConfigError, match=r"guard_margin=0\.3 changes nothing with guard=none; leave it out"):
        train(config)
    assert not (tmp_path / "out").exists()


def test_the_command_refuses_zero_slack_with_exit_code_2_and_one_message(stored, tmp_path):
    arguments = ("setting=tabular", "method=plan", f"buffer={stored['zero_slack']}", f"out={tmp_path}/out")
    _, err = command("harness_mdp.train", *arguments, expect=2)
    assert err.count("\n") == 1
    assert "slack is 0" in err
    assert "plan would choose by noise" in err
    assert "method=bc" in err
