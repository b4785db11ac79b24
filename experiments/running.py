"""Run planned episodes into a buffer: skip what is there, score both ways, log what failed, stop at limits."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from buffers import Attempt, ReplayBuffer
from experiments.config import ExecutorConfig, LimitsConfig
from experiments.executors import make_executor
from experiments.progress import EpisodeProgress
from experiments.tasks import TaskSet
from harness_mdp.executors.limits import LimitedExecutor, SpendingLimit, SpendingLimitReached
from harness_mdp.executors.protocol import Executor
from harness_mdp.mdp import Episode
from harness_mdp.runner import EpisodePlan, Failure, run_episodes
from harness_mdp.scoring.maturity import MaturityConfig, score_episode
from harness_mdp.scoring.rubric import Scorer

__all__ = ["Outcome", "finished", "run_plans", "with_executor"]


@dataclass(frozen=True)
class Outcome:
    """What one run of planned episodes came to."""

    planned: int
    done_before: int
    """Episodes that the buffer held already."""
    run: int
    """Episodes finished now."""
    infra_missing: int
    """Planned episodes that have only attempts which failed for reasons outside the agent."""
    stopped: str | None
    """Why the run stopped early at a spending limit; None when it went through."""


def with_executor(config: ExecutorConfig, tasks: TaskSet, buffer: ReplayBuffer, concurrency: int) -> Executor:
    """The configured executor, its completion cache beside the buffer."""
    return make_executor(config, tasks, buffer.harness.completions, concurrency)


def finished(buffer: ReplayBuffer, ids: Collection[str]) -> dict[str, tuple[int, float | None]]:
    """Tokens and cost in USD of those episodes of `ids` that the buffer holds, by id."""
    if not buffer.exists:
        return {}
    rows = buffer.scan().select("episode_id", "tokens", "cost_usd").filter(pl.col("episode_id").is_in(list(ids)))
    return {identity: (tokens, cost) for identity, tokens, cost in rows.collect().iter_rows()}


def run_plans(
    plans: Sequence[EpisodePlan],
    *,
    executor: Executor,
    tasks: TaskSet,
    buffer: ReplayBuffer,
    concurrency: int,
    limits: LimitsConfig,
    label: str,
    quiet: bool = False,
) -> Outcome:
    """Run the plans whose episode is not in the buffer yet, and append them.

    Episodes are committed in batches, each whole or not at all; on any error what is finished is committed
    before the error goes on.

    Raises:
        ExecutorStopped: authentication refused, unknown model, or a price that is needed is unknown.
    """
    return asyncio.run(
        _run_plans(plans, executor, tasks, buffer, concurrency, limits, EpisodeProgress(label, quiet=quiet))
    )


async def _run_plans(
    plans: Sequence[EpisodePlan],
    executor: Executor,
    tasks: TaskSet,
    buffer: ReplayBuffer,
    concurrency: int,
    limits: LimitsConfig,
    progress: EpisodeProgress,
) -> Outcome:
    by_id = {plan.id: plan for plan in plans}
    spent = finished(buffer, by_id)
    todo = [plan for identity, plan in by_id.items() if identity not in spent]
    progress.total = len(todo)
    unknown = any(cost is None for _, cost in spent.values())
    limited = LimitedExecutor(
        executor,
        SpendingLimit(limits.tokens, limits.usd),
        tokens=sum(tokens for tokens, _ in spent.values()),
        usd=None if unknown else sum(cost or 0.0 for _, cost in spent.values()),
    )
    scorer = Scorer(tasks.setting, tasks.store.sealed)
    presets = (MaturityConfig.paper(), MaturityConfig.strict())
    stopped: str | None = None
    try:
        with progress, buffer.writer(compact=True) as writer:

            async def keep(episode: Episode) -> None:
                writer.add(score_episode(episode, tasks.setting, presets))
                progress.episode(episode)

            async def note(failure: Failure) -> None:
                buffer.harness.add_attempts([_attempt(failure)])
                progress.failure()

            try:
                await run_episodes(todo, limited, scorer, concurrency=concurrency, on_episode=keep, on_failure=note)
            except SpendingLimitReached as limit:
                stopped = str(limit)
    finally:
        await executor.close()
    _write_card(buffer, tasks, executor)
    tally = progress.tally
    return Outcome(len(by_id), len(spent), tally.episodes, tally.missing, stopped)


def _write_card(buffer: ReplayBuffer, tasks: TaskSet, executor: Executor) -> None:
    """Bring the dataset card up to date; what earlier runs said of other settings stays."""
    if not buffer.exists:
        return
    before = buffer.harness.card() or {}
    licences = {**before.get("licences", {}), tasks.setting.name: tasks.store.licence}
    buffer.write_card(licences=licences, simulated=executor.simulated or bool(before.get("simulated")))


def _attempt(failure: Failure) -> Attempt:
    plan = failure.plan
    return Attempt(
        episode_id=plan.id,
        run=plan.run,
        setting=plan.setting.name,
        task_id=plan.task.id,
        rollout=plan.rollout,
        policy=plan.policy.name,
        kind=failure.kind,
        message=failure.message,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )
