"""Advantages of logged steps, and the slack of a buffer: how much it can teach (DESIGN section 8).

An estimator maps n logged steps to n advantages. `trajectory` spreads an episode's advantage over its steps;
estimators that look at single steps have the same face, so the learner does not change with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from controllers.config import AdvantageKind, AWConfig, Baseline, Method, PlanConfig, QConfig
from controllers.data import Floats, Ints, StepData
from harness_mdp.errors import UnusableBuffer

__all__ = [
    "AdvantageEstimator",
    "PlannedAdvantage",
    "Slack",
    "StepAdvantage",
    "TrajectoryAdvantage",
    "advantage_estimator",
    "centred",
    "measure_slack",
    "trajectory_advantages",
]

_EQUAL = 1e-12
"""Returns of a task closer than this are the same; a rubric score is a sum of a few floats."""


class AdvantageEstimator(Protocol):
    """How much better than usual each logged step was."""

    def __call__(self, data: StepData) -> Floats:
        """(n,) advantages of the n steps, in units of the return.

        Raises:
            UnusableBuffer: the data have no contrast to estimate from.
        """
        ...


@dataclass(frozen=True, slots=True)
class TrajectoryAdvantage:
    """A(s_t, a_t) = G_i - b(k): every step inherits the advantage of its episode i of task k."""

    baseline: Baseline = Baseline.TASK_MEAN

    def __call__(self, data: StepData) -> Floats:
        """(n,), see `trajectory_advantages`."""
        return trajectory_advantages(data.returns, data.task, self.baseline)[data.episode]


@dataclass(frozen=True, slots=True)
class StepAdvantage:
    """A(s, a) = Q(s, a) - Σ_a' μ(a'|s) Q(s, a'), Q the behaviour's, regressed on other tasks than the step's."""

    seed: int = 0

    def __call__(self, data: StepData) -> Floats:
        """(n,), see `centred`."""
        from controllers.fitted_q import crossfitted_q  # scikit-learn loads when it is used

        return centred(crossfitted_q(data, QConfig(method=Method.ONE_STEP), self.seed), data)


@dataclass(frozen=True, slots=True)
class PlannedAdvantage:
    """A(s, a) = Q(s, a) - Σ_a' μ(a'|s) Q(s, a') with the plan's Q; 0 where the plan has too little data.

    The plan is not cross-fitted: a cell pools at least `min_tasks` tasks, each a small part of it.
    """

    plan: PlanConfig
    seed: int = 0

    def __call__(self, data: StepData) -> Floats:
        """(n,), see `centred`."""
        from controllers.planning import fit_planned_q

        return centred(fit_planned_q(data, self.plan, self.seed).values(data.features), data)


def advantage_estimator(config: AWConfig, seed: int = 0) -> AdvantageEstimator:
    """The estimator that `config.advantage` names; `seed` is that of its own fits, if it has any."""
    match config.advantage:
        case AdvantageKind.TRAJECTORY:
            return TrajectoryAdvantage(config.baseline)
        case AdvantageKind.STEP:
            return StepAdvantage(seed)
        case AdvantageKind.PLANNED:
            return PlannedAdvantage(config.plan, seed)


def centred(values: Floats, data: StepData) -> Floats:
    """(n,) value of the action taken above the behaviour's mean in its state.

    Unsupported actions (-inf) are left out of the mean, the others' propensities scaled up; a step whose own action
    is unsupported has advantage 0, so it is neither imitated nor avoided more than the behaviour does.

    Args:
        values: (n, 7) Q of every action.
        data: n steps.
    """
    known = np.isfinite(values) & data.mask
    weight = np.where(known, data.propensities, 0.0)
    total = weight.sum(axis=1)
    mean = (weight * np.where(known, values, 0.0)).sum(axis=1) / np.where(total > 0, total, 1.0)
    rows = np.arange(len(data.action))
    own = np.where(known[rows, data.action], values[rows, data.action], mean)
    advantages: Floats = np.where(total > 0, own - mean, 0.0)
    return advantages


def trajectory_advantages(returns: Floats, task: Ints, baseline: Baseline) -> Floats:
    """Advantage of each episode over its task's baseline.

    With n_k episodes of task k and their mean return: `task_mean` is G_i - mean_k, `leave_one_out` is
    G_i minus the mean of the others, which is the task-mean advantage times n_k/(n_k - 1). An episode that is
    alone in its task has advantage 0.

    Args:
        returns: (m,)
        task: (m,) index of each episode's task.
        baseline: b(k).

    Returns:
        (m,) float64

    Raises:
        UnusableBuffer: no episode, or no task has two.
    """
    slack = measure_slack(returns, task)
    if slack.n_single == slack.n_tasks:
        raise UnusableBuffer(
            f"{slack.n_tasks} tasks with one rollout each ({slack.n_episodes} episodes): a {baseline.value} baseline "
            "needs at least two rollouts of a task, since it compares them. Collect into the same buffer with "
            "rollouts=2 or more (20 is usual), or train with method=bc"
        )
    size = np.bincount(task)
    mean = np.bincount(task, weights=returns) / np.maximum(size, 1)
    advantages: Floats = returns - mean[task]
    if baseline is Baseline.LEAVE_ONE_OUT:
        advantages = advantages * (size / np.maximum(size - 1, 1))[task]
    return advantages


@dataclass(frozen=True, slots=True)
class Slack:
    """How far the best return of a task is above its mean: an upper bound of what the buffer can teach."""

    slack: float
    """Mean over tasks of (best - mean) return; tasks with one rollout count as 0."""
    n_tasks: int
    n_episodes: int
    n_single: int
    """Tasks with one rollout: no trajectory advantage."""
    n_flat: int
    """Tasks with at least two rollouts, all of the same return: nothing to tell good from bad."""

    @property
    def n_contrast(self) -> int:
        """Tasks that a trajectory advantage can learn from."""
        return self.n_tasks - self.n_single - self.n_flat

    def remarks(self) -> tuple[str, ...]:
        """What has to be said aloud about this buffer, one sentence each; empty when all is well."""
        said: list[str] = []
        if self.n_single:
            said.append(
                f"{self.n_single} of {self.n_tasks} tasks have one rollout and no trajectory advantage; "
                "their steps keep weight 1. Collect with more rollouts"
            )
        if self.n_contrast == 0:
            said.append(
                f"slack is 0: all rollouts of a task scored the same, in each of {self.n_tasks} tasks. Zero slack "
                "cannot be learned from; the result is behaviour cloning"
            )
        elif self.n_flat:
            said.append(
                f"{self.n_flat} of {self.n_tasks} tasks scored the same in every rollout and teach nothing; "
                f"slack {self.slack:.3f} comes from the other {self.n_contrast}"
            )
        return tuple(said)


def measure_slack(returns: Floats, task: Ints) -> Slack:
    """Slack of m episodes.

    Args:
        returns: (m,)
        task: (m,) index of each episode's task; indices that do not occur are no tasks.

    Raises:
        UnusableBuffer: no episodes.
    """
    if len(returns) == 0:
        raise UnusableBuffer("no episodes: nothing to learn from. Collect episodes first")
    order = np.lexsort((returns, task))
    first = np.flatnonzero(np.diff(task[order], prepend=-1))
    size = np.diff(first, append=len(task))
    ordered = returns[order]
    worst, best = ordered[first], ordered[first + size - 1]
    mean = np.add.reduceat(ordered, first) / size
    return Slack(
        slack=float(np.mean(np.maximum(best - mean, 0.0))),
        n_tasks=len(first),
        n_episodes=len(returns),
        n_single=int((size == 1).sum()),
        n_flat=int(((size > 1) & (best - worst <= _EQUAL)).sum()),
    )
