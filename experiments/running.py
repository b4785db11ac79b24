"""Run planned episodes into a buffer: skip what is there, score both ways, log what failed, stop at limits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from buffers import Attempt, ReplayBuffer
from experiments.config import ExecutorConfig, LimitsConfig
from experiments.executors import with_cache
from experiments.progress import EpisodeProgress
from experiments.tasks import TaskSet
from harness_mdp.errors import ConfigError, InputError
from harness_mdp.executors.limits import LimitedExecutor, SpendingLimit, SpendingLimitReached
from harness_mdp.executors.protocol import Executor
from harness_mdp.mdp import Episode
from harness_mdp.runner import EpisodePlan, Failure, run_episodes
from harness_mdp.scoring.maturity import MaturityConfig, score_episode
from harness_mdp.scoring.rubric import Scorer

__all__ = ["Outcome", "Run", "expect_runnable", "expect_seed", "finished", "run_plans"]


SHOWN_REASONS = 3


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
    elsewhere: int = 0
    """Of those run now, episodes that another process had stored by the time this one committed."""
    reasons: tuple[str, ...] = ()
    """The most frequent reasons of infra_missing, most frequent first, each with its count."""


def expect_seed(seed: int) -> None:
    """A seed that a column of the buffer can hold.

    Raises:
        ConfigError: it cannot.
    """
    if not 0 <= seed < 2**63:
        raise ConfigError(f"seed={seed}; expected 0 to 2^63 - 1")


def expect_runnable(*, rollouts: int, concurrency: int, seed: int, limits: LimitsConfig) -> None:
    """Numbers that every run of episodes shares.

    Raises:
        ConfigError: one that cannot be, by name.
    """
    for name, value in (("rollouts", rollouts), ("concurrency", concurrency)):
        if value < 1:
            raise ConfigError(f"{name}={value}; expected at least 1")
    expect_seed(seed)
    for name, limit in (("tokens", limits.tokens), ("usd", limits.usd)):
        if limit is not None and limit <= 0:
            raise ConfigError(f"limits.{name}={limit}; expected more than 0, or null for no limit")


def finished(buffer: ReplayBuffer, ids: Collection[str]) -> dict[str, tuple[int, float | None]]:
    """Tokens and cost in USD of those episodes of `ids` that the buffer holds, by id."""
    if not buffer.exists:
        return {}
    rows = buffer.read(["episode_id", "tokens", "cost_usd"], episode_id=list(ids))
    return {identity: (tokens, cost) for identity, tokens, cost in rows.iter_rows()}


@dataclass(frozen=True)
class Run:
    """Planned episodes, and all that running them needs."""

    plans: Sequence[EpisodePlan]
    tasks: TaskSet
    executor: Executor
    """Without a cache."""
    executor_config: ExecutorConfig
    buffer: ReplayBuffer
    concurrency: int
    limits: LimitsConfig
    label: str
    """For the progress line."""


def run_plans(run: Run, record: Callable[[], None], *, quiet: bool = False) -> Outcome:
    """Run the plans whose episode is not in the buffer yet, and append them.

    The buffer is made, or found fit to be added to, before the first call is paid, and `record` is called then.
    Episodes are committed in batches, each whole or not at all; on any error what is finished is committed
    before the error goes on. With nothing to run, nothing is written but a dataset card that a kill left behind.

    Raises:
        InputError, UnusableBuffer: a place where no buffer can be, before anything is run.
        ExecutorStopped: authentication refused, unknown model, or a price that is needed is unknown.
    """
    by_id = {plan.id: plan for plan in run.plans}
    spent = finished(run.buffer, by_id)
    todo = [plan for identity, plan in by_id.items() if identity not in spent]
    if not todo:
        with suppress(InputError):  # a finished buffer on read-only storage keeps the card it has
            _write_card(run.buffer, run.tasks, run.executor)
        return Outcome(len(by_id), len(spent), 0, 0, None)
    run.buffer.prepare()
    record()
    return _wait(_run_missing(run, len(by_id), todo, spent, EpisodeProgress(run.label, quiet=quiet)))


def _wait(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """`asyncio.run`, in a thread of its own where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _run_missing(
    run: Run,
    planned: int,
    todo: Sequence[EpisodePlan],
    spent: Mapping[str, tuple[int, float | None]],
    progress: EpisodeProgress,
) -> Outcome:
    executor = with_cache(run.executor, run.executor_config, run.buffer.harness.completions)
    tasks, buffer = run.tasks, run.buffer
    progress.total = len(todo)
    unknown = any(cost is None for _, cost in spent.values())
    limited = LimitedExecutor(
        executor,
        SpendingLimit(run.limits.tokens, run.limits.usd),
        tokens=sum(tokens for tokens, _ in spent.values()),
        usd=None if unknown else sum(cost or 0.0 for _, cost in spent.values()),
    )
    scorer = Scorer(tasks.setting, tasks.store.sealed)
    presets = (MaturityConfig.paper(), MaturityConfig.strict())
    stopped: str | None = None
    reasons: Counter[str] = Counter()
    try:
        with progress, buffer.writer(compact=True) as writer:

            async def keep(episode: Episode) -> None:
                writer.add(score_episode(episode, tasks.setting, presets))
                progress.episode(episode)

            async def note(failure: Failure) -> None:
                buffer.harness.add_attempts([_attempt(failure)])
                reasons[f"{failure.kind}: {failure.message}"] += 1
                progress.failure()

            try:
                await run_episodes(todo, limited, scorer, concurrency=run.concurrency, on_episode=keep, on_failure=note)
            except SpendingLimitReached as limit:
                stopped = str(limit)
        elsewhere = writer.added - writer.stored
    finally:
        await executor.close()
    _write_card(buffer, tasks, executor)
    tally = progress.tally
    shown = tuple(f"{n} x {reason}" for reason, n in reasons.most_common(SHOWN_REASONS))
    return Outcome(planned, len(spent), tally.episodes, tally.missing, stopped, elsewhere, shown)


def _write_card(buffer: ReplayBuffer, tasks: TaskSet, executor: Executor) -> None:
    """Bring the dataset card up to date; what earlier runs said of licences stays."""
    if buffer.exists:
        buffer.write_card(licences={tasks.setting.name: tasks.store.licence}, simulated=executor.simulated)


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
