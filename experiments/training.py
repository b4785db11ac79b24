"""Train: learn a controller offline from the collected training episodes of one executor, and save it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from buffers import ReplayBuffer, TrainingArrays
from controllers.advantages import Slack
from controllers.config import AdvantageKind, AWConfig, Baseline, DecisionRule, Method
from controllers.saved import Manifest, save_controller
from controllers.training import ModelPlan as Plan
from controllers.training import TrainMetrics, step_weights, train_many
from experiments.config import MethodConfig, TrainConfig
from experiments.members import member
from harness_mdp.errors import SchemaMismatch
from harness_mdp.settings import open_setting

__all__ = ["Training", "awr_config", "train"]


@dataclass(frozen=True)
class Training:
    """A saved controller and what training saw."""

    out: Path
    manifest: Manifest
    arrays: TrainingArrays
    slack: Slack
    metrics: TrainMetrics


def awr_config(config: MethodConfig) -> AWConfig:
    """The learner's own configuration, its values checked.

    Raises:
        ConfigError: a value that cannot work, by name.
    """
    return AWConfig(
        method=member(Method, "method", config.method),
        advantage=member(AdvantageKind, "method.advantage", config.advantage),
        baseline=member(Baseline, "method.baseline", config.baseline),
        hidden=config.hidden,
        learning_rate=config.learning_rate,
        batch_size=config.batch_size,
        epochs=config.epochs,
        beta=config.beta,
        weight_min=config.weight_min,
        weight_max=config.weight_max,
        entropy=config.entropy,
        decision=member(DecisionRule, "method.decision", config.decision),
    )


def train(config: TrainConfig) -> Training:
    """Learn from phase `collect`, split `train`, one executor; save to `config.out`.

    Raises:
        UnusableBuffer: no such episodes, several executors that were not asked for, or no contrast to learn from.
        SchemaMismatch: episodes of another version of the setting.
        ConfigError, InputError: by name.
    """
    learner = awr_config(config.method)
    setting = open_setting(config.setting.name)
    buffer = ReplayBuffer(config.buffer)
    if config.executor is not None:
        arrays = buffer.tensors(setting.name, mixed_executors=config.mix_executors, executor=config.executor)
    else:
        arrays = buffer.tensors(setting.name, mixed_executors=config.mix_executors)
    if arrays.feature_schema_id != setting.schema.id:
        raise SchemaMismatch(
            f"{config.buffer}: episodes have feature schema {arrays.feature_schema_id}, this installation's "
            f"{setting.name} (version {setting.version}) has {setting.schema.id}. Collect again with this version"
        )
    weights, slack = step_weights(arrays, learner)
    result = train_many(arrays, [Plan(config.seed, weights)], learner, config.device)[0]
    manifest = Manifest(
        name=learner.method.value,
        method=learner.method.value,
        seed=config.seed,
        decision=learner.decision,
        feature_schema_id=setting.schema.id,
        feature_names=setting.schema.names,
        settings={setting.name: setting.version},
        executors=arrays.executors,
        buffer_path=config.buffer,
        buffer_version=arrays.version,
        config=learner.as_json(),
        metrics={**result.metrics.as_json(), "slack": asdict(slack)},
    )
    out = Path(config.out)
    return Training(out, save_controller(out, result.weights, manifest), arrays, slack, result.metrics)
