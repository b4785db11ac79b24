"""Evaluate: policies side by side on identical (task, rollout) pairs with shared executor draws."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import polars as pl

from analysis.comparison import Comparison, compare
from analysis.frame import planned_episodes
from analysis.verdict import Verdict, verdicts
from buffers import ReplayBuffer
from controllers.manifest import learner_key
from controllers.saved import Manifest, read_manifest
from experiments.collection import DryRun, count_work
from experiments.config import EvaluateConfig
from experiments.executors import make_executor
from experiments.manifest import record_run, run_name
from experiments.policies import is_controller, named_policy
from experiments.refusals import Refusals, count_refusals
from experiments.running import Outcome, Run, expect_runnable, run_plans
from experiments.shifts import evaluation_shifts
from experiments.tasks import TaskSet, load_tasks
from harness_mdp.errors import ConfigError
from harness_mdp.executors.protocol import Executor
from harness_mdp.hashing import Json
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
    manifests: tuple[tuple[str, Manifest], ...] = ()
    """(folder, manifest) of each member that is a saved controller."""

    @property
    def learned(self) -> bool:
        """Its members are saved controllers."""
        return bool(self.manifests)


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
    refusals: Mapping[str, Refusals] = field(default_factory=dict[str, Refusals])
    """By arm, what its guard refused; arms without a guard are left out."""
    shifts: pd.DataFrame | None = None
    """Realised shifts of the learned arms, see `analysis.realised_shift`; None without one."""
    shift_remark: str = ""
    """What has to be said about the reference of the shifts."""


def evaluation_arms(names: Sequence[str], setting_tasks: TaskSet) -> tuple[Arm, ...]:
    """Arms in the order given. Controllers that differ in their training seed only form one arm.

    Raises:
        ConfigError: no policy, a policy named twice, two copies of one controller, or a name that means nothing.
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
        if not is_controller(name, setting):
            arms[policy.name] = Arm(policy.name, (policy,))
            continue
        manifest = read_manifest(Path(name))
        key = learner_key(manifest)
        if key in keys:
            arm = arms[keys[key]]
            if any(other.seed == manifest.seed for _, other in arm.manifests):
                raise ConfigError(f"{name} and {arm.manifests[0][0]} are the same learner with the same training seed")
        else:
            # The shortest label that is still free: method, method and folder, method and path.
            labels = (policy.name, f"{policy.name} ({Path(name).name})", f"{policy.name} ({name})")
            label = next(label for label in labels if label not in arms)
            arm = Arm(label, ())
            keys[key] = label
        arms[arm.name] = replace(arm, members=(*arm.members, policy), manifests=(*arm.manifests, (name, manifest)))
    return tuple(arms.values())


def _plans(
    config: EvaluateConfig, tasks: TaskSet, arms: Sequence[Arm], executor: Executor
) -> tuple[list[EpisodePlan], list[tuple[str, int]]]:
    """Plans, and for each its arm and training-seed index.

    With S training seeds, the s-th controller of an arm uses rollouts s·r .. s·r + r - 1 (r = `rollouts`), and an
    arm with one member runs all S·r: so each is matched with the reference on the same rollouts. All of them start at
    `first_rollout`.
    """
    most = max(len(arm.members) for arm in arms)
    odd = [arm.name for arm in arms if len(arm.members) not in (1, most)]
    if odd:
        raise ConfigError(f"arms {odd} have another number of training seeds than {most}; give each learner as many")
    run = run_name("eval", config)
    plans: list[EpisodePlan] = []
    owners: list[tuple[str, int]] = []
    for index in range(most * config.rollouts):
        for arm in arms:
            member = index // config.rollouts if len(arm.members) > 1 else 0
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
                        rollout=config.first_rollout + index,
                        horizon=tasks.horizon,
                        budgets=tasks.budgets,
                    )
                )
                owners.append((arm.name, member))
    return plans, owners


@dataclass(frozen=True)
class _Prepared:
    run: Run
    arms: tuple[Arm, ...]
    owners: list[tuple[str, int]]
    """(arm, training-seed index) of each plan."""


def _prepare(config: EvaluateConfig) -> _Prepared:
    expect_runnable(rollouts=config.rollouts, concurrency=config.concurrency, seed=config.seed, limits=config.limits)
    if config.first_rollout < 0:
        raise ConfigError(f"first_rollout={config.first_rollout}; expected at least 0")
    if config.out is not None:
        _expect_writable(Path(config.out))
    tasks = load_tasks(config.setting, config.split_by)
    if len(tasks.select(config.split)) < 2:
        raise ConfigError(
            f"split={config.split} has one task; intervals resample tasks and need two (20 or more to mean something)"
        )
    arms = evaluation_arms(config.policies, tasks)
    buffer = ReplayBuffer(config.buffer)
    executor = make_executor(config.executor, tasks, config.concurrency)
    plans, owners = _plans(config, tasks, arms, executor)
    _refuse_learned_draws(buffer, plans)
    if not config.on_learned_tasks:
        _refuse_learned_tasks(arms, plans)
    run = Run(
        plans=plans,
        tasks=tasks,
        executor=executor,
        executor_config=config.executor,
        buffer=buffer,
        concurrency=config.concurrency,
        limits=config.limits,
        label=f"evaluate {tasks.setting.name}",
    )
    return _Prepared(run, arms, owners)


def _expect_writable(out: Path) -> None:
    if out.suffix not in TABLE_ENDINGS:
        raise ConfigError(f"out={out}; expected a file that ends in {' or '.join(TABLE_ENDINGS)}")
    if out.is_dir():
        raise ConfigError(f"out={out} is a folder; expected a file")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigError(f"out={out}: its folder cannot be made ({problem})") from problem
    if not os.access(out.parent, os.W_OK):
        raise ConfigError(f"out={out}: no permission to write into {out.parent}")


def _refuse_learned_tasks(arms: Sequence[Arm], plans: Sequence[EpisodePlan]) -> None:
    """A controller that is scored on tasks it learned from looks better than it is."""
    planned = {plan.task.hash for plan in plans}
    for arm in arms:
        for path, manifest in arm.manifests:
            if seen := planned & set(manifest.task_hashes):
                raise ConfigError(
                    f"{path} learned from {len(seen)} of the {len(planned)} tasks that it would be evaluated on (were "
                    "the tasks split otherwise when they were collected?). Use the same setting.* and split_by as in "
                    "the collection, or say on_learned_tasks=true, and the output says so"
                )


def _refuse_learned_draws(buffer: ReplayBuffer, plans: Sequence[EpisodePlan]) -> None:
    """Evaluation on tasks and draws that were learned from would flatter the learner."""
    if not buffer.exists:
        return
    first = plans[0]
    rows = buffer.read(["task_hash", "seed"], phase="collect", executor=first.executor)
    planned = sorted({plan.task.hash for plan in plans})
    seen = len(rows.filter((pl.col("seed") == first.seed) & pl.col("task_hash").is_in(planned)))
    if seen:
        raise ConfigError(
            f"seed={first.seed}: the buffer holds {seen} collected episodes of these tasks with the same executor "
            "draws, so evaluation would see again what was learned from. Choose another seed, or split=eval"
        )


def dry_run(config: EvaluateConfig) -> DryRun:
    """Count what `evaluate` would run, without running or writing anything."""
    return count_work(_prepare(config).run, config.split)


def evaluate(config: EvaluateConfig, *, quiet: bool = False) -> Evaluation:
    """Run what is missing of the evaluation and gather its episodes; the same command again goes on.

    Raises:
        HarnessError: with what is wrong and what to do; nothing already written is lost.
    """
    ready = _prepare(config)
    run = ready.run
    name = run.plans[0].run
    outcome = run_plans(run, lambda: record_run(run.buffer, name, config, _recorded(ready)), quiet=quiet)
    episodes = _episodes(ready)
    manifests = {arm.name: [manifest for _, manifest in arm.manifests] for arm in ready.arms if arm.learned}
    shifts, remark = evaluation_shifts(run.buffer, episodes, manifests, ready.arms[0].name)
    return Evaluation(
        outcome=outcome,
        run=name,
        executor=run.executor.fingerprint,
        simulated=run.executor.simulated,
        arms=tuple(arm.name for arm in ready.arms),
        learners=tuple(arm.name for arm in ready.arms if arm.learned),
        episodes=episodes,
        shifts=shifts,
        shift_remark=remark,
        refusals=_refusals(ready, config.split),
    )


def _refusals(ready: _Prepared, split: str) -> dict[str, Refusals]:
    owned: dict[str, dict[str, tuple[Policy, set[str]]]] = {}
    for (name, _), plan in zip(ready.owners, ready.run.plans, strict=True):
        own = owned.setdefault(name, {}).setdefault(plan.policy.fingerprint, (plan.policy, set()))
        own[1].add(plan.id)
    counted = {
        name: count_refusals(ready.run.buffer, ready.run.tasks.setting.name, split, list(arm.values()))
        for name, arm in owned.items()
    }
    return {name: refusals for name, refusals in counted.items() if refusals is not None}


def _recorded(ready: _Prepared) -> dict[str, Json]:
    """What the manifest says of the plan, so that the comparison can be made again from the buffer alone."""
    first = ready.run.plans[0]
    rollouts: dict[tuple[str, int], set[int]] = {}
    for owner, plan in zip(ready.owners, ready.run.plans, strict=True):
        rollouts.setdefault(owner, set()).add(plan.rollout)
    return {
        "setting": first.setting.name,
        "setting_version": first.setting.version,
        "executor": first.executor,
        "seed": first.seed,
        "horizon": first.horizon,
        "token_budget": first.budgets.tokens,
        "usd_budget": first.budgets.usd,
        "tasks": sorted({(plan.task.id, plan.task.hash) for plan in ready.run.plans}),
        "arms": [
            {
                "name": arm.name,
                "learner": learner_key(arm.manifests[0][1]) if arm.learned else None,
                "members": [
                    {"policy_fingerprint": policy.fingerprint, "rollouts": sorted(rollouts[arm.name, index])}
                    for index, policy in enumerate(arm.members)
                ],
            }
            for arm in ready.arms
        ],
    }


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
            "setting": [plan.setting.name for plan in ready.run.plans],
            "task_id": [plan.task.id for plan in ready.run.plans],
            "task_hash": [plan.task.hash for plan in ready.run.plans],
            "rollout": [plan.rollout for plan in ready.run.plans],
            "seed": [plan.seed for plan in ready.run.plans],
            "executor": [plan.executor for plan in ready.run.plans],
            "policy": [plan.policy.name for plan in ready.run.plans],
            "episode_id": [plan.id for plan in ready.run.plans],
        }
    )
    found = ready.run.buffer.episodes_df(episode_id=planned["episode_id"].unique().to_list())
    return planned_episodes(planned, found)
