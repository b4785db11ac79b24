"""Collect: log episodes of the frozen executor under a behaviour policy into a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buffers import ReplayBuffer
from experiments.config import CollectConfig, EvaluateConfig
from experiments.executors import price_bound, tokens_bound
from experiments.manifest import record_run, run_name
from experiments.policies import make_policy
from experiments.running import Outcome, finished, run_plans, with_executor
from experiments.tasks import TaskSet, load_tasks
from harness_mdp.errors import ConfigError
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


def _prepare(config: CollectConfig) -> tuple[TaskSet, ReplayBuffer, Executor, list[EpisodePlan]]:
    if config.rollouts < 1 or config.concurrency < 1:
        raise ConfigError(f"rollouts={config.rollouts}, concurrency={config.concurrency}; expected at least 1")
    tasks = load_tasks(config.setting, config.split_by)
    policy = make_policy(config.policy, tasks.setting)
    buffer = ReplayBuffer(config.buffer)
    executor = with_executor(config.executor, tasks, buffer, config.concurrency)
    return tasks, buffer, executor, _plans(config, tasks, policy, executor)


def collect(config: CollectConfig, *, quiet: bool = False) -> Collection:
    """Run what is missing of the configured episodes; the same command again goes on where it stopped.

    Raises:
        HarnessError: with what is wrong and what to do; nothing already written is lost.
    """
    tasks, buffer, executor, plans = _prepare(config)
    record_run(buffer, plans[0].run, config)
    outcome = run_plans(
        plans,
        executor=executor,
        tasks=tasks,
        buffer=buffer,
        concurrency=config.concurrency,
        limits=config.limits,
        label=f"collect {tasks.setting.name}",
        quiet=quiet,
    )
    return Collection(outcome, tuple(plan.id for plan in plans), plans[0].run, executor.fingerprint)


def dry_run(config: CollectConfig) -> DryRun:
    """Count what `collect` would run, without running or writing anything."""
    tasks, buffer, _, plans = _prepare(config)
    return count_work(config, tasks, buffer, plans)


def count_work(
    config: CollectConfig | EvaluateConfig, tasks: TaskSet, buffer: ReplayBuffer, plans: Sequence[EpisodePlan]
) -> DryRun:
    """Episodes of `plans` that are not in the buffer yet, and upper bounds of their calls, tokens and money."""
    ids = {plan.id for plan in plans}
    done = len(finished(buffer, ids))
    todo = len(ids) - done
    per_episode = tokens_bound(config.executor, tasks.horizon, tasks.budgets.tokens)
    tokens = None if per_episode is None else todo * per_episode
    if config.limits.tokens is not None:
        tokens = config.limits.tokens if tokens is None else min(tokens, config.limits.tokens)
    return DryRun(
        tasks=len(tasks.select(config.split)),
        episodes=todo,
        done_before=done,
        calls=todo * tasks.horizon,
        tokens=tokens,
        usd=None if tokens is None else price_bound(config.executor, tokens),
    )
