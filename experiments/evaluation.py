"""Evaluate: policies side by side on identical (task, rollout) pairs with shared executor draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from analysis.comparison import Comparison, compare
from analysis.verdict import Verdict, verdicts
from buffers import ReplayBuffer
from controllers.saved import Manifest, read_manifest
from experiments.collection import DryRun, count_work
from experiments.config import EvaluateConfig
from experiments.manifest import record_run, run_name
from experiments.policies import is_controller, named_policy
from experiments.running import Outcome, run_plans, with_executor
from experiments.tasks import TaskSet, load_tasks
from harness_mdp.errors import ConfigError
from harness_mdp.executors.protocol import Executor
from harness_mdp.hashing import digest
from harness_mdp.mdp import Policy
from harness_mdp.runner import EpisodePlan

__all__ = [
    "Arm",
    "Evaluation",
    "comparison_of",
    "dry_run",
    "evaluate",
    "evaluation_arms",
    "verdicts_of",
    "write_table",
]


TABLE_ENDINGS = (".parquet", ".json")


@dataclass(frozen=True)
class Arm:
    """One line of the comparison: a script, or a learner with one controller per training seed."""

    name: str
    members: tuple[Policy, ...]
    learned: bool


@dataclass(frozen=True)
class Evaluation:
    """Finished evaluation: which episode belongs to which arm, and how they came out."""

    outcome: Outcome
    run: str
    executor: str
    simulated: bool
    arms: tuple[str, ...]
    learners: tuple[str, ...]
    """Arms that are learned controllers."""
    episodes: pl.DataFrame
    """One row per planned episode: arm, member, task_id, task_hash, rollout, seed, episode_id, executor,
    eval_status (`scored`, `invalid`, `infra_missing`), return (null if missing), maturity_paper,
    maturity_strict, tokens, cost_usd, steps."""


def evaluation_arms(names: Sequence[str], setting_tasks: TaskSet) -> tuple[Arm, ...]:
    """Arms in the order given. Controllers that differ in their training seed only form one arm.

    Raises:
        ConfigError: no policy, a policy named twice, or a name that means nothing.
    """
    if not names:
        raise ConfigError("policies is empty; name at least one, e.g. policies=[base,check_revise,DIR]")
    if len(set(names)) != len(names):
        raise ConfigError(f"policies={list(names)} names one policy twice")
    setting = setting_tasks.setting
    arms: dict[str, Arm] = {}
    keys: dict[str, str] = {}
    for name in names:
        policy = named_policy(name, setting)
        key, label = name, policy.name
        if is_controller(name, setting):
            manifest = read_manifest(Path(name))
            key = _apart_from_seed(manifest)
            if key in keys:
                label = keys[key]
            elif label in arms:
                label = f"{label} ({Path(name).name})"
        if key in keys:
            arms[label] = replace(arms[label], members=(*arms[label].members, policy))
        else:
            arms[label] = Arm(label, (policy,), learned=is_controller(name, setting))
            keys[key] = label
    return tuple(arms.values())


def _apart_from_seed(manifest: Manifest) -> str:
    config = {key: value for key, value in manifest.config.items() if key != "seed"}
    return digest([manifest.method, manifest.decision.value, manifest.feature_schema_id, manifest.buffer_path, config])


def _plans(
    config: EvaluateConfig, tasks: TaskSet, arms: Sequence[Arm], executor: Executor
) -> tuple[list[EpisodePlan], list[tuple[str, int]]]:
    """Plans, and for each its arm and training-seed index.

    With S training seeds, the s-th controller of an arm uses rollouts s·r .. s·r + r - 1 (r = `rollouts`), and an
    arm with one member runs all S·r: so each is matched with the reference on the same rollouts.
    """
    most = max(len(arm.members) for arm in arms)
    odd = [arm.name for arm in arms if len(arm.members) not in (1, most)]
    if odd:
        raise ConfigError(f"arms {odd} have another number of training seeds than {most}; give each learner as many")
    run = run_name("eval", config)
    plans: list[EpisodePlan] = []
    owners: list[tuple[str, int]] = []
    for rollout in range(most * config.rollouts):
        for arm in arms:
            member = rollout // config.rollouts if len(arm.members) > 1 else 0
            for task in tasks.select(config.split):
                plans.append(
                    EpisodePlan(
                        run=run,
                        phase="eval",
                        setting=tasks.setting,
                        task=task,
                        policy=arm.members[member],
                        executor=executor.fingerprint,
                        seed=config.seed,
                        rollout=rollout,
                        horizon=tasks.horizon,
                        budgets=tasks.budgets,
                    )
                )
                owners.append((arm.name, member))
    return plans, owners


@dataclass(frozen=True)
class _Prepared:
    tasks: TaskSet
    buffer: ReplayBuffer
    executor: Executor
    arms: tuple[Arm, ...]
    plans: list[EpisodePlan]
    owners: list[tuple[str, int]]


def _prepare(config: EvaluateConfig) -> _Prepared:
    if config.rollouts < 1 or config.concurrency < 1:
        raise ConfigError(f"rollouts={config.rollouts}, concurrency={config.concurrency}; expected at least 1")
    if config.out is not None and Path(config.out).suffix not in TABLE_ENDINGS:
        raise ConfigError(f"out={config.out}; expected a file that ends in {' or '.join(TABLE_ENDINGS)}")
    tasks = load_tasks(config.setting, config.split_by)
    arms = evaluation_arms(config.policies, tasks)
    buffer = ReplayBuffer(config.buffer)
    executor = with_executor(config.executor, tasks, buffer, config.concurrency)
    plans, owners = _plans(config, tasks, arms, executor)
    _refuse_learned_draws(buffer, plans)
    return _Prepared(tasks, buffer, executor, arms, plans, owners)


def _refuse_learned_draws(buffer: ReplayBuffer, plans: Sequence[EpisodePlan]) -> None:
    """Evaluation on tasks and draws that were learned from would flatter the learner."""
    if not buffer.exists:
        return
    first = plans[0]
    seen = (
        buffer.scan()
        .filter(
            (pl.col("phase") == "collect")
            & (pl.col("seed") == first.seed)
            & (pl.col("executor") == first.executor)
            & pl.col("task_hash").is_in(sorted({plan.task.hash for plan in plans}))
        )
        .select(pl.len())
        .collect()
        .item()
    )
    if seen:
        raise ConfigError(
            f"seed={first.seed}: the buffer holds {seen} collected episodes of these tasks with the same executor "
            "draws, so evaluation would see again what was learned from. Choose another seed, or split=eval"
        )


def dry_run(config: EvaluateConfig) -> DryRun:
    """Count what `evaluate` would run, without running or writing anything."""
    ready = _prepare(config)
    return count_work(config, ready.tasks, ready.buffer, ready.plans)


def evaluate(config: EvaluateConfig, *, quiet: bool = False) -> Evaluation:
    """Run what is missing of the evaluation and gather its episodes; the same command again goes on.

    Raises:
        HarnessError: with what is wrong and what to do; nothing already written is lost.
    """
    ready = _prepare(config)
    record_run(ready.buffer, ready.plans[0].run, config)
    outcome = run_plans(
        ready.plans,
        executor=ready.executor,
        tasks=ready.tasks,
        buffer=ready.buffer,
        concurrency=config.concurrency,
        limits=config.limits,
        label=f"evaluate {ready.tasks.setting.name}",
        quiet=quiet,
    )
    return Evaluation(
        outcome=outcome,
        run=ready.plans[0].run,
        executor=ready.executor.fingerprint,
        simulated=ready.executor.simulated,
        arms=tuple(arm.name for arm in ready.arms),
        learners=tuple(arm.name for arm in ready.arms if arm.learned),
        episodes=_episodes(ready),
    )


RULE = "check_revise"
"""The rule of thumb that a learned controller has to beat."""


def verdicts_of(evaluations: Sequence[Evaluation]) -> tuple[Verdict, ...]:
    """Every learner against the rule of thumb; empty where there is no learner, or the rule was not run."""
    return tuple(
        verdict
        for evaluation in evaluations
        if evaluation.learners and RULE in evaluation.arms
        for verdict in verdicts(evaluation.episodes, evaluation.learners, RULE)
    )


def comparison_of(evaluations: Sequence[Evaluation], preset: str = "paper") -> Comparison:
    """Arms against the first one, per setting; Holm over settings.

    Raises:
        ConfigError: evaluations of different arms.
    """
    arms = evaluations[0].arms
    if any(evaluation.arms != arms for evaluation in evaluations):
        raise ConfigError(f"evaluations of different arms cannot share a table: {[e.arms for e in evaluations]}")
    frame = pl.concat([evaluation.episodes for evaluation in evaluations], how="diagonal_relaxed")
    return compare(frame, reference=arms[0], arms=arms, preset=preset)


def write_table(comparison: Comparison, out: str) -> None:
    """The rows of the comparison as Parquet or JSON, by the ending of `out`.

    Raises:
        ConfigError: another ending.
    """
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = pl.from_pandas(comparison.rows)
    if path.suffix == ".parquet":
        rows.write_parquet(path)
    else:
        rows.write_json(path)


def _episodes(ready: _Prepared) -> pl.DataFrame:
    planned = pl.DataFrame(
        {
            "arm": [name for name, _ in ready.owners],
            "member": [member for _, member in ready.owners],
            "setting": [plan.setting.name for plan in ready.plans],
            "task_id": [plan.task.id for plan in ready.plans],
            "task_hash": [plan.task.hash for plan in ready.plans],
            "rollout": [plan.rollout for plan in ready.plans],
            "seed": [plan.seed for plan in ready.plans],
            "executor": [plan.executor for plan in ready.plans],
            "policy": [plan.policy.name for plan in ready.plans],
            "episode_id": [plan.id for plan in ready.plans],
        }
    )
    found = ready.buffer.episodes_df(episode_id=planned["episode_id"].unique().to_list())
    keep = [c for c in found.columns if c not in planned.columns or c == "episode_id"]
    joined = planned.join(found.select(keep), on="episode_id", how="left")
    return joined.with_columns(pl.col("eval_status").fill_null("infra_missing"))
