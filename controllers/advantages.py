"""Advantages of logged steps (DESIGN section 8).

An estimator maps n logged steps to n advantages. `trajectory` spreads an episode's advantage over its steps;
estimators that look at single steps have the same face, so the learner does not change with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from controllers.config import AdvantageKind, AWConfig, Baseline, LinearQConfig, Method, PlanConfig, QConfig
from controllers.data import Floats, Ints, StepData
from controllers.q_function import UNSUPPORTED
from controllers.slack import measure_slack
from harness_mdp.errors import UnusableBuffer

__all__ = [
    "AdvantageEstimator",
    "LinearAdvantage",
    "PlannedAdvantage",
    "StepAdvantage",
    "TrajectoryAdvantage",
    "advantage_estimator",
    "centred",
    "trajectory_advantages",
]

NOT_PROPOSED = -1.0
"""Advantage of an action that no script proposed, in units of the return: its weight is the least there is."""


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
    """A(s, a) = Q(s, a) - Σ_a' μ(a'|s) Q(s, a'), Q the behaviour's, regressed on other tasks than the step's.

    0 everywhere at zero slack, where a difference between two Q is noise of the regression.
    """

    seed: int = 0

    def __call__(self, data: StepData) -> Floats:
        """(n,), see `centred`."""
        if measure_slack(data.returns, data.task).is_zero:
            return np.zeros(len(data.action))
        from controllers.fitted_q import crossfitted_q  # scikit-learn loads when it is used

        return centred(crossfitted_q(data, QConfig(method=Method.ONE_STEP), self.seed), data)


@dataclass(frozen=True, slots=True)
class PlannedAdvantage:
    """A(s, a) = Q(s, a) - Σ_a' μ(a'|s) Q(s, a') with the plan's Q; 0 where the plan has too little data.

    The plan is not cross-fitted: a cell pools at least `min_tasks` tasks, each a small part of it. 0 everywhere at zero
    slack: there the plan prefers what was seen more often, for its smaller standard error alone.
    """

    plan: PlanConfig
    seed: int = 0

    def __call__(self, data: StepData) -> Floats:
        """(n,), see `centred`."""
        if measure_slack(data.returns, data.task).is_zero:
            return np.zeros(len(data.action))
        from controllers.planning import fit_planned_q

        return centred(fit_planned_q(data, self.plan, self.seed).values(data.features), data)


@dataclass(frozen=True, slots=True)
class LinearAdvantage:
    """A(s, a) = Q(s, a) - max_a' Q(s, a') with a linear Q, over proposed actions; the worst where a was not proposed.

    Measured from the best action, so that the clip of the weights does not make the good ones alike.
    """

    config: LinearQConfig

    def __call__(self, data: StepData) -> Floats:
        """(n,) at most 0."""
        if measure_slack(data.returns, data.task).is_zero:
            return np.zeros(len(data.action))
        from controllers.fitted_linear import fit_linear

        values = np.where(data.mask, fit_linear(data, self.config).values(data.features), UNSUPPORTED)
        own = values[np.arange(len(data.action)), data.action]
        return np.subtract(own, values.max(axis=1), out=np.full(len(own), NOT_PROPOSED), where=np.isfinite(own))


def advantage_estimator(config: AWConfig, seed: int = 0) -> AdvantageEstimator:
    """The estimator that `config.advantage` names; `seed` is that of its own fits, if it has any."""
    match config.advantage:
        case AdvantageKind.TRAJECTORY:
            return TrajectoryAdvantage(config.baseline)
        case AdvantageKind.STEP:
            return StepAdvantage(seed)
        case AdvantageKind.PLANNED:
            return PlannedAdvantage(config.plan, seed)
        case AdvantageKind.LINEAR:
            return LinearAdvantage(config.linear)


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
