"""Off-policy estimates against the truth: what a buffer says of policies, and what they come to on the same tasks.

The estimand is the value on the training tasks, so the truth is the mean return of many fresh episodes on those very
tasks, with another seed. A learner is judged alike on both sides: on each task the fold controller answers, and runs,
that did not learn from it. Every policy is kept as it is finished; simulated (docs/ope.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from analysis.ope import PolicyValue, SupportVerdict, estimate_policy, logged
from buffers import ReplayBuffer, TrainingArrays
from controllers.config import Method
from controllers.learners import learn
from controllers.presets import preset
from experiments.collected import logged_states
from experiments.collection import collect
from experiments.config import CollectConfig, SettingConfig, SimulatedConfig
from experiments.experts import expert
from experiments.markdown import replace_between
from experiments.ope import QUALITY_RANGE
from experiments.ope_truth_config import OpeTruthConfig
from experiments.ope_truth_tables import Estimated, TruthCell, truth_tables
from experiments.paper_table import behaviour
from experiments.policies import is_controller, named_policy
from experiments.running import expect_seed
from experiments.value import SimulatedWorld
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json, canonical_json
from harness_mdp.mdp import DecisionBatch, Policy
from harness_mdp.settings import open_setting
from harness_mdp.settings.protocol import Setting

__all__ = ["Answering", "answering", "main", "ope_truth", "truth_cells"]

EXPERT = "expert"


@dataclass(frozen=True, slots=True)
class Answering:
    """A policy and the tasks on which it answers."""

    policy: Policy
    task_ids: tuple[str, ...]


def ope_truth(config: OpeTruthConfig) -> str:
    """Run what is missing and write the tables as Markdown.

    Raises:
        ConfigError: numbers that cannot be, or a policy that is none of `random`, a script, `expert` and a method.
        HarnessError: an episode failed; what is finished is kept.
    """
    _check(config)
    return truth_tables({name: truth_cells(config, name) for name in config.settings})


def truth_cells(config: OpeTruthConfig, setting_name: str) -> list[TruthCell]:
    """The estimates and the truth of every policy in one setting, in the order of `config`."""
    setting = open_setting(setting_name)
    root = Path(config.root) / setting_name
    asked = {name: canonical_json(_of(config, name, setting)) for name in config.policies}
    cells = {name: cell for name, of in asked.items() if (cell := _known(root / f"{name}.json", of)) is not None}
    if missing := [name for name in asked if name not in cells]:
        measured = _Measured(config, setting, root)
        for name in missing:
            cells[name] = measured.cell(name)
            _keep(root / f"{name}.json", asked[name], cells[name])
            _say(setting_name, cells[name])
    return [cells[name] for name in asked]


class _Measured:
    """A collected buffer and the world it comes from, ready to judge policies."""

    def __init__(self, config: OpeTruthConfig, setting: Setting, root: Path) -> None:
        self._config = config
        self._setting = setting
        where = root / "buffer"
        collection = collect(
            CollectConfig(
                setting=SettingConfig(name=setting.name, tasks=config.tasks),
                executor=SimulatedConfig(profile=config.profile),
                policy=behaviour("portfolio"),
                buffer=str(where),
                rollouts=config.rollouts,
                seed=config.seed,
            ),
            quiet=True,
        )
        buffer = ReplayBuffer(where)
        # The folder may hold more than was asked for now, from an earlier call with other numbers.
        self._arrays = buffer.tensors(setting.name, episode_id=list(collection.episode_ids))
        arrays = self._arrays
        states = logged_states(buffer, arrays)
        self._batch = DecisionBatch(arrays.features, arrays.mask, arrays.base_action, states)
        self._world = SimulatedWorld(setting.name, config.profile, tasks=config.tasks)

    def cell(self, name: str) -> TruthCell:
        """Estimate from the buffer, and run."""
        parts = answering(name, self._setting, self._arrays, seed=self._config.seed, folds=self._config.folds)
        returns = self._fresh_returns(parts)
        n_tasks, rollouts = returns.shape
        value = self._estimates(parts)
        best = value.best
        return TruthCell(
            policy=name,
            verdict=value.support.verdict,
            by_weights=value.support.by_weights,
            ess=value.support.ess,
            best=None if best is None else best.estimator,
            estimates=_estimated(value),
            truth=float(returns.mean()),
            truth_se=float(np.sqrt(returns.var(axis=1, ddof=1).mean() / (n_tasks * rollouts))),
            truth_episodes=returns.size,
            buffer_mean=value.behaviour.mean,
        )

    def _fresh_returns(self, parts: Sequence[Answering]) -> np.ndarray:
        found = [
            self._world.returns(
                part.policy,
                split="train",
                rollouts=self._config.truth_rollouts,
                seed=self._config.truth_seed,
                task_ids=part.task_ids,
            )
            for part in parts
        ]
        return np.concatenate([each.returns for each in found])

    def _estimates(self, parts: Sequence[Answering]) -> PolicyValue:
        arrays, batch = self._arrays, self._batch
        task = np.array(arrays.task_ids)[arrays.task[arrays.episode]]
        probs = np.zeros(arrays.propensities.shape)
        for part in parts:
            rows = np.flatnonzero(np.isin(task, part.task_ids))
            states = tuple(batch.states[row] for row in rows.tolist())
            own = DecisionBatch(batch.features[rows], batch.mask[rows], batch.base_action[rows], states)
            probs[rows] = part.policy.probs_batch(own)
        return estimate_policy(
            logged(arrays, probs), draws=self._config.draws, seed=self._config.seed, value_range=QUALITY_RANGE
        )


def answering(name: str, setting: Setting, arrays: TrainingArrays, *, seed: int, folds: int) -> tuple[Answering, ...]:
    """Who answers for `name` on which tasks of `arrays`: each task once.

    Args:
        name: `random`, a script, `expert`, or a method, which learns from `arrays`.
        setting: of the arrays.
        arrays: n steps.
        seed: of learning.
        folds: of the tasks, for a method.
    """
    if (policy := _unlearned(name, setting)) is not None:
        return (Answering(policy, arrays.task_ids),)
    learned = learn(arrays, preset(Method(name)), seed=seed, folds=folds)
    return tuple(
        Answering(fold.controller, tuple(arrays.task_ids[task] for task in np.unique(arrays.task[fold.held_out])))
        for fold in learned.folds
    )


def _unlearned(name: str, setting: Setting) -> Policy | None:
    if name == EXPERT:
        return expert(setting)
    return None if is_controller(name, setting) else named_policy(name, setting)


def _estimated(value: PolicyValue) -> tuple[Estimated, ...]:
    def number(of: float) -> float | None:
        return float(of) if math.isfinite(of) else None

    return tuple(
        Estimated(
            each.estimator, number(each.value.mean), number(each.value.low), number(each.value.high), not each.withheld
        )
        for each in value.estimates
    )


def _of(config: OpeTruthConfig, name: str, setting: Setting) -> dict[str, Json]:
    """What a kept cell is a result of."""
    numbers = asdict(config)
    policy = _unlearned(name, setting)
    keys = ["profile", "tasks", "rollouts", "truth_rollouts", "seed", "truth_seed", "draws"]
    return {
        **{key: numbers[key] for key in (keys if policy else [*keys, "folds"])},
        "version": setting.version,
        "policy": policy.fingerprint if policy else asdict(preset(Method(name))),
    }


def _known(file: Path, of: str) -> TruthCell | None:
    if not file.exists():
        return None
    found: dict[str, Json] = json.loads(file.read_text())
    if found.pop("of") != of:
        return None
    found["verdict"], found["by_weights"] = SupportVerdict(found["verdict"]), SupportVerdict(found["by_weights"])
    found["estimates"] = tuple(Estimated(**each) for each in found["estimates"])
    return TruthCell(**found)


def _keep(file: Path, of: str, cell: TruthCell) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"of": of, **asdict(cell)}))
    part.replace(file)


def _say(setting: str, cell: TruthCell) -> None:
    quoted = cell.quoted
    value = "refused" if quoted is None or quoted.value is None else f"{quoted.value:.3f} by {quoted.estimator}"
    print(  # noqa: T201
        f"{setting} {cell.policy}: {cell.verdict.value}, {value}; truth {cell.truth:.3f} (simulated)", flush=True
    )


def _check(config: OpeTruthConfig) -> None:
    for name, least in (("tasks", 5), ("rollouts", 1), ("truth_rollouts", 2), ("folds", 2), ("draws", 100)):
        if getattr(config, name) < least:
            raise ConfigError(f"{name}={getattr(config, name)}; expected at least {least}")
    for name in ("settings", "policies"):
        given: list[str] = getattr(config, name)
        if not given or len(set(given)) != len(given):
            raise ConfigError(f"{name}={given}; expected at least one, each once")
    expect_seed(config.seed)
    expect_seed(config.truth_seed)
    if config.seed == config.truth_seed:
        raise ConfigError(
            f"truth_seed={config.truth_seed} is the seed of collection: the truth would share its draws. Give another"
        )
    for setting in map(open_setting, config.settings):
        others = {name for name in config.policies if name != EXPERT and is_controller(name, setting)}
        if unknown := sorted(others - set(Method)):
            raise ConfigError(
                f"policies holds {', '.join(unknown)}; expected random, a script of {setting.name} "
                f"({', '.join(setting.scripts)}), {EXPERT} or a method ({', '.join(Method)})"
            )


def _write(config: OpeTruthConfig) -> int:
    text = ope_truth(config)
    print(text)  # noqa: T201
    if config.out is not None:
        replace_between(Path(config.out), "ope_truth", text)
    return 0


def main() -> None:
    """Run the command."""
    from experiments.hydra_app import run_command

    run_command("ope_truth", _write)


if __name__ == "__main__":
    main()
