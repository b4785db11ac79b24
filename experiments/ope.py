"""Off-policy evaluation of policies on a buffer: read, put each target beside the logged steps, estimate.

A controller is never asked about a task it learned from: there its task-fold controllers answer, each for the tasks
that were held out from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

from analysis.ope import PolicyValue, estimate_policy, logged
from buffers import ReplayBuffer, TrainingArrays
from controllers.saved import load_controller, load_folds, read_manifest
from experiments.collected import collected_arrays, collected_setting, logged_states
from experiments.evaluation import TABLE_ENDINGS
from experiments.ope_config import OpeConfig
from experiments.policies import is_controller, named_policy
from experiments.running import expect_seed
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json
from harness_mdp.mdp import DecisionBatch, Policy, Probs
from harness_mdp.settings.protocol import Setting

__all__ = [
    "BEHAVIOUR",
    "Ope",
    "TargetValue",
    "ope",
    "target_probabilities",
    "write_values",
]

BEHAVIOUR = "behaviour"
"""The policy that collected, by its logged propensities."""

QUALITY_RANGE = (0.0, 1.0)


@dataclass(frozen=True)
class TargetValue:
    """What the buffer says of one policy."""

    name: str
    """As it was asked for."""
    asked: str
    """Who answered for it, where that is not the policy itself: the fold controllers."""
    value: PolicyValue


@dataclass(frozen=True)
class Ope:
    """What the buffer says of the policies."""

    setting: str
    arrays: TrainingArrays
    simulated: bool
    """Some episode was made with a simulated executor."""
    targets: tuple[TargetValue, ...]
    remarks: tuple[str, ...]
    """What has to be said about the buffer, one sentence each."""


def ope(config: OpeConfig) -> Ope:
    """Estimate every policy of `config` from the collected episodes; nothing is run.

    Raises:
        ConfigError: a policy that means nothing, a controller that learned from tasks and has no fold controllers
            for them, or a key that cannot be.
        UnusableBuffer: no such episodes, several executors that were not asked for, or one task.
        SchemaMismatch, InputError: by name.
    """
    _check(config)
    buffer = ReplayBuffer(config.buffer)
    setting = collected_setting(buffer, config)
    arrays = collected_arrays(buffer, setting, config, config.split)
    scripts = [name for name in config.policies if name in setting.scripts]
    states = logged_states(buffer, arrays) if scripts else ()
    batch = DecisionBatch(arrays.features, arrays.mask, arrays.base_action, states)
    targets: list[TargetValue] = []
    for name in config.policies:
        probs, asked = target_probabilities(name, setting, arrays, batch)
        value = estimate_policy(
            logged(arrays, probs),
            level=config.level,
            draws=config.draws,
            seed=config.seed,
            value_range=QUALITY_RANGE,
        )
        targets.append(TargetValue(name, asked, value))
    return Ope(
        setting=setting.name,
        arrays=arrays,
        simulated=any(executor.startswith("simulated-") for executor in arrays.executors),
        targets=tuple(targets),
        remarks=tuple(_remarks(buffer, arrays)),
    )


def target_probabilities(
    name: str, setting: Setting, arrays: TrainingArrays, batch: DecisionBatch
) -> tuple[Probs, str]:
    """(n, 7) what the policy `name` does at every logged step, and who was asked if not the policy itself.

    Args:
        name: `behaviour`, a script, `random`, or the folder of a saved controller.
        setting: of the buffer.
        arrays: n steps.
        batch: the same steps; with states where `name` is a script.

    Raises:
        ConfigError: see `ope`.
        InputError, SchemaMismatch: a damaged controller, or one made for other features.
    """
    if name == BEHAVIOUR:
        return arrays.propensities, ""
    policy = named_policy(name, setting)
    if not is_controller(name, setting):
        return policy.probs_batch(batch), ""
    return _controller(name, setting, arrays, batch)


def _controller(name: str, setting: Setting, arrays: TrainingArrays, batch: DecisionBatch) -> tuple[Probs, str]:
    """Each task is answered for by a controller that has not learned from it."""
    path = Path(name)
    learned = set(read_manifest(path).task_hashes)
    if not learned:
        raise ConfigError(
            f"{name} does not say which tasks it learned from, so nobody knows where it may be scored. Train it again"
        )
    folds = load_folds(path, setting)
    asked: list[Policy] = [load_controller(path, setting), *(policy for policy, _ in folds)]
    who = np.full(len(arrays.task_hashes), -1)
    for task, task_hash in enumerate(arrays.task_hashes):
        if task_hash not in learned:
            who[task] = 0
            continue
        held_out = [place for place, (_, hashes) in enumerate(folds, start=1) if task_hash in hashes]
        who[task] = held_out[0] if held_out else -1
    if missing := int((who < 0).sum()):
        raise ConfigError(
            f"{name} learned from {missing} of the {len(who)} tasks of these episodes, and has no task-fold "
            "controllers for them: it would be scored on what it learned from. Train it again with folds=5, which "
            "saves them, or collect episodes of other tasks"
        )
    step_of = who[arrays.task[arrays.episode]]
    probs = np.zeros(arrays.propensities.shape)
    for place, policy in enumerate(asked):
        rows = step_of == place
        if rows.any():
            probs[rows] = policy.probs_batch(
                DecisionBatch(batch.features[rows], batch.mask[rows], batch.base_action[rows])
            )
    used = len(np.unique(who[who > 0]))
    words = f"{used} fold controllers, each on the tasks held out from it" if used else ""
    return probs, words


def write_values(result: Ope, out: str) -> None:
    """One row a policy, with its estimates and actions nested, as Parquet or JSON by the ending of `out`."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame([_row(result, target) for target in result.targets], infer_schema_length=None)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_json(path)


def _row(result: Ope, target: TargetValue) -> dict[str, Json]:
    value, support = target.value, asdict(target.value.support)
    actions = support.pop("actions")
    best = value.best
    return {
        "setting": result.setting,
        "policy": target.name,
        "asked": target.asked,
        "simulated": result.simulated,
        "buffer_version": result.arrays.version,
        **{key: str(each) if key in ("verdict", "by_weights", "by_cells") else each for key, each in support.items()},
        "behaviour_mean": value.behaviour.mean,
        "best_estimator": best.estimator if best else None,
        "value": best.value.mean if best else None,
        "low": best.value.low if best else None,
        "high": best.value.high if best else None,
        "level": value.level,
        "estimates": [
            {
                "estimator": each.estimator,
                "value": None if each.withheld else each.value.mean,
                "low": None if each.withheld else each.value.low,
                "high": None if each.withheld else each.value.high,
                "gain": None if each.withheld else each.gain.mean,
                "gain_low": None if each.withheld else each.gain.low,
                "gain_high": None if each.withheld else each.gain.high,
                "ess": each.ess,
                "largest_share": each.largest_share,
                "withheld": each.withheld,
            }
            for each in value.estimates
        ],
        "actions": list(actions),
    }


def _check(config: OpeConfig) -> None:
    if not config.policies:
        raise ConfigError("policies is empty; name at least one, e.g. policy=check_revise")
    if len(set(config.policies)) != len(config.policies):
        raise ConfigError(f"policies={config.policies} names one policy twice")
    if not 0.5 <= config.level < 1:
        raise ConfigError(f"level={config.level}; expected 0.5 to below 1, e.g. 0.95")
    if config.draws < 100:
        raise ConfigError(f"draws={config.draws}; expected at least 100")
    if config.split not in ("train", "eval", "all"):
        raise ConfigError(f"split={config.split}; expected train, eval or all")
    expect_seed(config.seed)
    if config.out is not None and Path(config.out).suffix not in TABLE_ENDINGS:
        raise ConfigError(f"out={config.out}; expected a file that ends in {' or '.join(TABLE_ENDINGS)}")
    if config.out is not None and Path(config.out).is_dir():
        raise ConfigError(f"out={config.out} is a folder; expected a file")


def _remarks(buffer: ReplayBuffer, arrays: TrainingArrays) -> Sequence[str]:
    said: list[str] = []
    if len(arrays.executors) > 1:
        said.append(f"episodes of {len(arrays.executors)} executors are taken together")
    if len(arrays.horizons) > 1:
        said.append(f"episodes of horizons {' and '.join(map(str, arrays.horizons))} are taken together")
    source = buffer.read(["propensity_source"], episode_id=list(arrays.episode_ids))["propensity_source"]
    if estimated := int((source == "estimated").sum()):
        said.append(f"propensities of {estimated} of {arrays.n_episodes} episodes are estimated, not logged")
    sizes = np.bincount(arrays.task)
    if sizes.min() != sizes.max():
        said.append(f"tasks have {sizes.min()} to {sizes.max()} episodes; every task weighs the same")
    return said
