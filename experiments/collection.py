"""Collect: log episodes of the frozen executor under a behaviour policy into a buffer."""

from __future__ import annotations

from dataclasses import dataclass

from buffers import ReplayBuffer
from experiments.config import CollectConfig
from experiments.executors import make_executor, price_bound, tokens_bound
from experiments.manifest import record_run, run_name
from experiments.policies import make_policy
from experiments.running import Outcome, Run, expect_runnable, finished, run_plans
from experiments.tasks import TaskSet, load_tasks
from harness_mdp.executors.protocol import Executor
from harness_mdp.mdp import Policy
from harness_mdp.runner import EpisodePlan

__all__ = ["Collection", "DryRun", "collect", "count_work", "dry_run"]


@dataclass(frozen=True)
class DryRun:
    """What a command would run, and the most it could cost."""

    tasks: int
    episodes: int
    """Planned episodes that are not in the buffer yet."""
    done_before: int
    calls: int
    """Upper bound: one call a step."""
    tokens: int | None
    """Upper bound; None where nothing bounds it."""
    usd: float | None
    """Upper bound; None where the price is unknown."""


@dataclass(frozen=True)
class Collection:
    """What a collection came to, and which episodes it is made of."""

    outcome: Outcome
    episode_ids: tuple[str, ...]
    run: str
    executor: str


def _plans(config: CollectConfig, tasks: TaskSet, policy: Policy, executor: Executor) -> list[EpisodePlan]:
    run = run_name("collect", config)
    return [
        EpisodePlan(
            run=run,
            phase="collect",
            setting=tasks.setting,
            task=task,
            policy=policy,
            executor=executor.fingerprint,
            seed=config.seed,
            rollout=rollout,
            horizon=tasks.horizon,
            budgets=tasks.budgets,
        )
        for rollout in range(config.rollouts)  # rollouts outermost: a run stopped early has seen every task
        for task in tasks.select(config.split)
    ]


def _prepare(config: CollectConfig) -> Run:
    expect_runnable(rollouts=config.rollouts, concurrency=config.concurrency, seed=config.seed, limits=config.limits)
    tasks = load_tasks(config.setting, config.split_by)
    policy = make_policy(config.policy, tasks.setting)
    executor = make_executor(config.executor, tasks, config.concurrency)
    return Run(
        plans=_plans(config, tasks, policy, executor),
        tasks=tasks,
        executor=executor,
        executor_config=config.executor,
        buffer=ReplayBuffer(config.buffer),
        concurrency=config.concurrency,
        limits=config.limits,
        label=f"collect {tasks.setting.name}",
    )


def collect(config: CollectConfig, *, quiet: bool = False) -> Collection:
    """Run what is missing of the configured episodes; the same command again goes on where it stopped.

    Raises:
        HarnessError: with what is wrong and what to do; nothing already written is lost.
    """
    run = _prepare(config)
    name = run.plans[0].run
    outcome = run_plans(run, lambda: record_run(run.buffer, name, config), quiet=quiet)
    return Collection(outcome, tuple(plan.id for plan in run.plans), name, run.executor.fingerprint)


def dry_run(config: CollectConfig) -> DryRun:
    """Count what `collect` would run, without running or writing anything."""
    return count_work(_prepare(config), config.split)


def count_work(run: Run, split: str) -> DryRun:
    """Episodes of the plan that are not in the buffer yet, and upper bounds of their calls, tokens and money."""
    ids = {plan.id for plan in run.plans}
    done = len(finished(run.buffer, ids))
    todo = len(ids) - done
    tasks = run.tasks
    per_episode = tokens_bound(run.executor_config, tasks.horizon, tasks.budgets.tokens)
    tokens = None if per_episode is None else todo * per_episode
    if run.limits.tokens is not None:
        tokens = run.limits.tokens if tokens is None else min(tokens, run.limits.tokens)
    return DryRun(
        tasks=len(tasks.select(split)),
        episodes=todo,
        done_before=done,
        calls=todo * tasks.horizon,
        tokens=tokens,
        usd=None if tokens is None else price_bound(run.executor_config, tokens),
    )
