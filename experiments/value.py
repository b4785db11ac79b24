"""The value of policies by fresh simulated episodes, kept in memory: the truth that estimates are held against.

Evaluation logs every episode to a buffer; where a figure needs thousands of episodes a policy and nothing but
their returns, this spares the rows. Draws are shared between policies as in evaluation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from experiments.config import SettingConfig, SimulatedConfig
from experiments.executors import make_executor
from experiments.paths import Outcome, PathMemory, Recorder
from experiments.tasks import TaskSet, load_tasks
from harness_mdp.errors import HarnessError
from harness_mdp.executors.protocol import Executor
from harness_mdp.mdp import Episode, Policy
from harness_mdp.runner import EpisodePlan, Failure, run_episodes
from harness_mdp.scoring.rubric import Scorer
from harness_mdp.settings.tasks import Task

__all__ = ["SimulatedReturns", "SimulatedWorld"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedReturns:
    """Returns of one policy on every (task, rollout); every figure from it is simulated."""

    returns: Floats
    """(n_tasks, rollouts) Q in [0, 1]."""
    steps: Floats
    """(n_tasks, rollouts)"""

    @property
    def value(self) -> float:
        """Mean return, tasks weighing equally."""
        return float(self.returns.mean())


class SimulatedWorld:
    """The tasks of a setting and the simulated executor, ready to run policies.

    Args:
        name: the setting.
        profile: skill of the simulated executor.
        concurrency: episodes at once; some tools run in processes of their own.
        tasks: how many to generate.
    """

    def __init__(self, name: str, profile: str = "medium", concurrency: int = 16, tasks: int = 100) -> None:
        self.tasks: TaskSet = load_tasks(SettingConfig(name=name, tasks=tasks))
        self._scorer = Scorer(self.tasks.setting, self.tasks.store.sealed)
        self._concurrency = concurrency
        self._profile = profile
        self._paths: dict[int, PathMemory] = {}
        self._known: dict[tuple[str, tuple[str, ...], int, int], SimulatedReturns] = {}

    def returns(
        self, policy: Policy, *, split: str, rollouts: int, seed: int, task_ids: Collection[str] | None = None
    ) -> SimulatedReturns:
        """Run `policy` on rollouts 0 .. `rollouts` - 1 of every task of `split`, or of those of them in `task_ids`.

        Raises:
            HarnessError: an episode failed for reasons outside the agent.
        """
        tasks = [task for task in self.tasks.select(split) if task_ids is None or task.id in task_ids]
        ids = tuple(task.id for task in tasks)
        key = (policy.fingerprint, ids, rollouts, seed)
        if key not in self._known:
            self._known[key] = self._run(policy, tasks, rollouts, seed)
        return self._known[key]

    def _run(self, policy: Policy, chosen: Sequence[Task], rollouts: int, seed: int) -> SimulatedReturns:
        """Only paths that no policy took before are run."""
        tasks = self.tasks
        memory = self._paths.setdefault(seed, PathMemory())
        executor = make_executor(SimulatedConfig(profile=self._profile), tasks, self._concurrency)
        plans = [
            EpisodePlan(
                run="value",
                phase="eval",
                setting=tasks.setting,
                task=task,
                policy=policy,
                executor=executor.fingerprint,
                seed=seed,
                rollout=rollout,
                horizon=tasks.horizon,
                budgets=tasks.budgets,
            )
            for task in chosen
            for rollout in range(rollouts)
        ]
        known = memory.follow(plans)
        new = [replace(plan, policy=Recorder(policy)) for index, plan in enumerate(plans) if index not in known]
        fresh = asyncio.run(self._episodes(new, executor))
        for plan in new:
            assert isinstance(plan.policy, Recorder)
            memory.keep(plan.policy.points, fresh[plan.task.id, plan.rollout])
        outcomes = [known.get(index) or _outcome(fresh[plan.task.id, plan.rollout]) for index, plan in enumerate(plans)]
        shape = len(chosen), rollouts
        return SimulatedReturns(
            np.array([outcome.return_ for outcome in outcomes]).reshape(shape),
            np.array([outcome.steps for outcome in outcomes], dtype=np.float64).reshape(shape),
        )

    async def _episodes(self, plans: Sequence[EpisodePlan], executor: Executor) -> dict[tuple[str, int], Episode]:
        name = self.tasks.setting.name
        episodes: dict[tuple[str, int], Episode] = {}

        async def keep(episode: Episode) -> None:
            episodes[episode.task_id, episode.rollout] = episode

        async def fail(failure: Failure) -> None:
            raise HarnessError(f"{name}: an episode failed ({failure.kind}: {failure.message})")

        await run_episodes(
            plans, executor, self._scorer, concurrency=self._concurrency, on_episode=keep, on_failure=fail
        )
        await executor.close()
        return episodes


def _outcome(episode: Episode) -> Outcome:
    return Outcome(episode.return_, len(episode.steps))
