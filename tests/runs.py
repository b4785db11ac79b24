"""Runs episodes of a setting in a test, without a buffer or a command; hands out the tasks of every setting."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache

from harness_mdp.executors.protocol import Executor
from harness_mdp.executors.simulated import SimulatedExecutor
from harness_mdp.executors.skill import skill_profile
from harness_mdp.hashing import digest
from harness_mdp.mdp import Budgets, Episode, Policy
from harness_mdp.runner import EpisodePlan, Failure, run_episodes
from harness_mdp.scoring.rubric import Scorer
from harness_mdp.settings import SETTINGS, open_setting
from harness_mdp.settings.protocol import Setting
from harness_mdp.settings.tasks import Sealed, Task, TaskStore

SETTING_NAMES = [*sorted(SETTINGS), *os.environ.get("HARNESS_MDP_SETTINGS", "").split()]
"""Ours, and those that docs/adding_a_setting.md says how to add."""


@cache
def opened(name: str) -> tuple[Setting, TaskStore]:
    """A setting and its 100 tasks of seed 0, made once for all tests of a process."""
    setting = open_setting(name)
    return setting, setting.tasks(seed=0, n=100, path=None)


def store_digest(store: TaskStore) -> str:
    """Hash of every byte that a generator made: tasks, sealed parts, answers, in order."""
    sealed = {identity: dict(each.values) for identity, each in store.sealed.items()}
    answers = {identity: asdict(each) for identity, each in store.answers.items()}
    return digest([[asdict(task) for task in store.tasks], sealed, answers])


def simulated(store: TaskStore, profile: str = "medium") -> SimulatedExecutor:
    difficulties = {task.id: task.difficulty for task in store.tasks}
    return SimulatedExecutor(skill_profile(profile), store.answers, difficulties)


def plan(
    setting: Setting,
    task: Task,
    policy: Policy,
    executor: Executor,
    rollout: int = 0,
    horizon: int | None = None,
    budgets: Budgets | None = None,
) -> EpisodePlan:
    return EpisodePlan(
        run="test",
        phase="collect",
        setting=setting,
        task=task,
        policy=policy,
        executor=executor.fingerprint,
        seed=0,
        rollout=rollout,
        horizon=horizon or setting.horizon,
        budgets=budgets or setting.budgets,
    )


def run(
    setting: Setting,
    tasks: Sequence[Task],
    policy: Policy,
    executor: Executor,
    sealed: Mapping[str, Sealed],
    *,
    rollouts: int = 1,
    concurrency: int = 4,
    budgets: Budgets | None = None,
) -> list[Episode]:
    """Episodes in the order of (task, rollout); a failure for infrastructure reasons fails the test."""
    plans = [
        plan(setting, task, policy, executor, rollout, budgets=budgets) for task in tasks for rollout in range(rollouts)
    ]
    done: dict[str, Episode] = {}

    async def keep(episode: Episode) -> None:
        done[episode.episode_id] = episode

    async def fail(failure: Failure) -> None:
        raise AssertionError(f"{failure.plan.task.id}: {failure.kind}: {failure.message}")

    asyncio.run(
        run_episodes(
            plans,
            executor,
            Scorer(setting, sealed),
            concurrency=concurrency,
            on_episode=keep,
            on_failure=fail,
        )
    )
    return [done[p.id] for p in plans]
