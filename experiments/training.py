"""Train: learn a controller offline from the collected training episodes of one executor, and save it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from analysis.shift import learner_weights, predicted_shifts, shift_records
from buffers import ReplayBuffer, TrainingArrays
from controllers.config import AWConfig, DecisionRule, Method
from controllers.data import Bools
from controllers.guard import GuardConfig, GuardLevel
from controllers.learners import Learned, learn
from controllers.returns import cost_scale, side_by_side, with_returns
from controllers.saved import Manifest, check_target, save_controller
from controllers.slack import Slack, measure_slack
from experiments.collected import collected_arrays
from experiments.config import SettingConfig, TrainConfig
from experiments.members import member
from experiments.method_config import learner_config
from experiments.returns_config import returns_config
from experiments.running import expect_seed
from harness_mdp.errors import ConfigError
from harness_mdp.settings import open_setting

__all__ = ["Training", "train"]


@dataclass(frozen=True)
class Training:
    """A saved controller and what training saw."""

    out: Path
    manifest: Manifest
    arrays: TrainingArrays
    """What the buffer holds; its returns are quality, whatever was maximised."""
    slack: Slack
    """Of what was maximised."""
    remarks: tuple[str, ...]
    """What has to be said aloud about learning from this buffer, one sentence each; also in the manifest."""
    learned: Learned
    returns: str
    """Formula of what was maximised."""
    shifts: pd.DataFrame
    """Predicted shift of quality, maturity and each maturity event, see `analysis.shift`."""


def _expect_name_only(config: SettingConfig) -> None:
    """The buffer says which tasks there are; a filter that would be ignored is refused."""
    if odd := [
        key for key, value in asdict(config).items() if value != getattr(SettingConfig(), key) and key != "name"
    ]:
        raise ConfigError(
            f"train reads all training episodes of the setting in the buffer; setting.{', setting.'.join(odd)} "
            "would change nothing. Leave it out"
        )


def train(config: TrainConfig) -> Training:
    """Learn from phase `collect`, split `train`, one executor; save to `config.out`.

    Raises:
        UnusableBuffer: no such episodes, several executors that were not asked for, or no contrast to learn from.
        SchemaMismatch: episodes of another version of the setting.
        ConfigError, InputError: by name.
    """
    _expect_name_only(config.setting)
    expect_seed(config.seed)
    if config.folds < 0 or config.folds == 1:
        raise ConfigError(f"folds={config.folds}; expected 0 for none, or at least 2")
    out = check_target(config.out)
    learner = learner_config(config.method)
    returns = returns_config(config.returns)
    guard = GuardConfig(member(GuardLevel, "guard", config.guard), config.guard_margin)
    if guard.margin != 0.0 and guard.level is not GuardLevel.ADVANTAGE:
        raise ConfigError(f"guard_margin={guard.margin:g} changes nothing with guard={guard.level}; leave it out")
    setting = open_setting(config.setting.name)
    buffer = ReplayBuffer(config.buffer, version=config.buffer_version)
    arrays = collected_arrays(buffer, setting, config)
    aim = with_returns(arrays, returns)
    slack = measure_slack(aim.returns, aim.task)
    remarks = (*slack.remarks(Method(learner.method)), *_without_choice(arrays))
    learned = learn(aim, learner, seed=config.seed, device=config.device, folds=config.folds, guard=guard)
    shifts = predicted_shifts(buffer, arrays, learner_weights(arrays, learned))
    manifest = Manifest(
        name=learned.controller.name,
        method=learner.method.value,
        seed=config.seed,
        decision=learner.decision if isinstance(learner, AWConfig) else DecisionRule.GREEDY,
        feature_schema_id=setting.schema.id,
        feature_names=setting.schema.names,
        settings={setting.name: setting.version},
        executors=arrays.executors,
        buffer_path=config.buffer,
        buffer_version=arrays.version,
        task_hashes=arrays.task_hashes,
        folds=tuple(_hashes(arrays, fold.held_out) for fold in learned.folds),
        config={**learner.as_json(), "guard": guard.as_json(), "returns": asdict(config.returns)},
        metrics={
            **learned.metrics,
            "slack": asdict(slack),
            "remarks": list(remarks),
            "side_by_side": side_by_side(arrays),
            "predicted_shifts": shift_records(shifts),
        },
    )
    folds = [fold.controller for fold in learned.folds]
    saved = save_controller(out, learned.controller, manifest, folds)
    formula = returns.formula(cost_scale(arrays, returns))
    return Training(out, saved, arrays, slack, remarks, learned, formula, shifts)


def _without_choice(arrays: TrainingArrays) -> tuple[str, ...]:
    """What has to be said of a behaviour that never chose."""
    if float(arrays.propensities.max(axis=1).min()) < 1.0:
        return ()
    return (
        "the behaviour was certain of its action in every step: nothing shows what another one would have come to. "
        "Collect with exploration (policy.epsilon, policy=portfolio)",
    )


def _hashes(arrays: TrainingArrays, episodes: Bools) -> tuple[str, ...]:
    return tuple(arrays.task_hashes[index] for index in sorted(set(arrays.task[episodes].tolist())))
