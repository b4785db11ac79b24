"""Growing batch: collect with a mixture that follows the last controller, learn from all data so far, and again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from buffers import ReplayBuffer, TrainingArrays
from controllers.config import DecisionRule, Method
from controllers.learners import Learned, learn
from controllers.manifest import Manifest
from controllers.presets import preset
from controllers.saved import save_controller
from experiments.collection import collect
from experiments.config import CollectConfig, PolicyConfig, PortfolioPolicyConfig, SettingConfig, SimulatedConfig
from harness_mdp.settings.protocol import Setting

__all__ = ["ROUND_WEIGHTS", "Round", "collect_simulated", "growing_batch"]

ROUND_WEIGHTS = {"base": 0.15, "check_revise": 0.15, "tool_first": 0.15, "more_evidence": 0.15}
"""α of the scripts in later rounds; the last controller has 0.3, and 0.1 is uniform over legal actions but submit. None
is so rare beside the others that `controllers.a_learning` would not hold for proposed what it alone would do."""
_CONTROLLER = 0.3
_EXPLORE = 0.1


@dataclass(frozen=True, eq=False)
class Round:
    """A round of growing batch."""

    index: int
    """1 for the first."""
    arrays: TrainingArrays
    """All data so far."""
    learned: Learned
    """What was learned from them."""


def collect_simulated(setting: str, profile: str, policy: PolicyConfig, where: Path, rollouts: int, seed: int) -> None:
    """`rollouts` episodes of every training task into the buffer `where`; what is there already is not run again."""
    collect(
        CollectConfig(
            setting=SettingConfig(name=setting),
            executor=SimulatedConfig(profile=profile),
            policy=policy,
            buffer=str(where),
            rollouts=rollouts,
            seed=seed,
        ),
        quiet=True,
    )


def growing_batch(
    setting: Setting,
    profile: str,
    method: Method,
    root: Path,
    rounds: int,
    rollouts: int,
    seed: int,
    *,
    recheck: float = 0.0,
    folds: int = 0,
    first: Path | None = None,
) -> Iterator[Round]:
    """Rounds 1, 2, ...; simulated.

    The first collects with the portfolio, each further one with the scripts and the controller of the round before.

    Args:
        setting: its training tasks are collected from.
        profile: skill of the simulated executor.
        method: the learner, its preset.
        root: folder of the grown buffer and of the controllers in between.
        rounds: how many.
        rollouts: episodes per training task and round.
        seed: of the first collection and of training; later collections have their own.
        recheck: share of submissions that a check replaces in all rounds but the first; buffers are apart by it.
        folds: of the training tasks, for controllers that have not seen the tasks they are run on. What collects has.
        first: a buffer of the first round, or of a part of it; it is copied where there is one, and stays as it is.
    """
    buffer = root / (f"grown-{rollouts}-recheck-{recheck:g}" if recheck else f"grown-{rollouts}")
    if first is not None and first.exists() and not buffer.exists():
        _copy(first, buffer)
    policy = PortfolioPolicyConfig()
    seeds: list[int] = []
    for index in range(1, rounds + 1):
        seeds.append(seed if index == 1 else 1000 * index + seed)
        collect_simulated(setting.name, profile, policy, buffer, rollouts, seeds[-1])
        arrays = ReplayBuffer(buffer).tensors(setting.name, seed=seeds)  # an earlier call may have gone further
        learned = learn(arrays, preset(method), seed=seed, folds=folds)
        yield Round(index, arrays, learned)
        where = buffer.with_name(f"{buffer.name}-{method.value}-round-{index}")
        save_controller(where, learned.controller, _manifest(setting, method, arrays, buffer, seed))
        weights = {str(where): _CONTROLLER, **ROUND_WEIGHTS}
        policy = PortfolioPolicyConfig(weights=weights, epsilon=_EXPLORE, recheck=recheck)


def _copy(first: Path, buffer: Path) -> None:
    """Whole or not at all."""
    draft = buffer.with_name(f".{buffer.name}")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(first, draft)
    draft.rename(buffer)


def _manifest(setting: Setting, method: Method, arrays: TrainingArrays, buffer: Path, seed: int) -> Manifest:
    return Manifest(
        name=method.value,
        method=method.value,
        seed=seed,
        decision=DecisionRule.GREEDY,
        feature_schema_id=setting.schema.id,
        feature_names=setting.schema.names,
        settings={setting.name: setting.version},
        executors=arrays.executors,
        buffer_path=str(buffer),
        buffer_version=arrays.version,
        task_hashes=arrays.task_hashes,
    )
