"""The slack of a buffer: how much it can teach, and what has to be said where that is nothing (DESIGN section 8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from controllers.config import Method
from controllers.data import Floats, Ints, StepData
from harness_mdp.errors import UnusableBuffer

__all__ = ["Slack", "expect_contrast", "measure_slack"]

_EQUAL = 1e-12
"""Returns of a task closer than this are the same; a rubric score is a sum of a few floats."""

_MANY = 4
"""Rollouts of a task of which one can be said to stand alone; of three, one always does when returns are 0 or 1."""

_REMEDY = "Collect with a policy that tries other actions (policy=portfolio), or from easier or harder tasks"


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
    n_lone: int
    """Tasks with at least four rollouts, all of the same return but one: contrast that rests on one draw."""
    lowest: float
    """Of all returns."""
    highest: float
    """Of all returns."""

    @property
    def n_contrast(self) -> int:
        """Tasks that a trajectory advantage can learn from."""
        return self.n_tasks - self.n_single - self.n_flat

    @property
    def is_zero(self) -> bool:
        """Every task has several rollouts, and in none did two of them score differently; or no return differs at all:
        whatever was done, it made no difference.
        """
        return self.n_flat == self.n_tasks or self.highest - self.lowest <= _EQUAL

    @property
    def is_unknown(self) -> bool:
        """Not zero, and no two rollouts of a task to see it by."""
        return self.n_contrast == 0 and not self.is_zero

    def remarks(self, method: Method = Method.AW) -> tuple[str, ...]:
        """What has to be said aloud about this buffer to who learns `method` from it, one sentence each; empty when all
        is well.
        """
        said: list[str] = []
        if self.n_single:
            said.append(f"{self.n_single} of {self.n_tasks} tasks have one rollout and {_without_rollouts(method)}")
        if self.is_zero:
            said.append(
                f"{self.no_contrast()}. Zero slack cannot be learned from; the result is behaviour cloning. {_REMEDY}"
            )
        elif self.is_unknown and self.n_single < self.n_tasks:
            result = ", so the result is behaviour cloning" if method in (Method.AW, Method.BC) else ""
            said.append(f"slack is unknown: in none of {self.n_tasks} tasks did two rollouts score differently{result}")
        elif self.n_flat:
            said.append(
                f"{self.n_flat} of {self.n_tasks} tasks scored the same in every rollout and teach nothing; "
                f"slack {self.slack:.3f} comes from the other {self.n_contrast}"
            )
        if self.n_lone and 2 * self.n_lone >= self.n_contrast:
            said.append(
                f"in {self.n_lone} of {self.n_contrast} tasks whose rollouts scored differently, one rollout stands "
                "alone against all others, which scored the same: slack rests on one draw a task, and may be luck. "
                "Collect more rollouts"
            )
        return tuple(said)

    def no_contrast(self) -> str:
        """That slack is zero, with numbers."""
        if self.highest - self.lowest <= _EQUAL:
            return (
                f"slack is 0: all {self.n_episodes} episodes scored {self.lowest:.3f}, in each of {self.n_tasks} tasks"
            )
        return (
            f"slack is 0: all rollouts of a task scored the same, in each of {self.n_tasks} tasks "
            f"({self.n_episodes} episodes, returns {self.lowest:.3f} to {self.highest:.3f})"
        )


def _without_rollouts(method: Method) -> str:
    """What one rollout of a task means for `method`."""
    if method is Method.BC:
        return "no slack can be seen there; behaviour cloning needs none"
    if method is Method.AW:
        return "no trajectory advantage; their steps keep weight 1. Collect with more rollouts"
    return (
        f"no slack can be seen there: {method.value} tells what an action is worth from what the task is worth by "
        "features alone. Collect with more rollouts"
    )


def expect_contrast(data: StepData, who: str, instead: str = "imitate with method=bc") -> None:
    """Refuses a buffer of zero slack to a learner or guard that goes by the value of actions: it would pick by noise.

    Args:
        data: what it would learn from.
        who: its name in the message.
        instead: what may be done without other data.

    Raises:
        UnusableBuffer: all rollouts of a task scored the same, in every task.
    """
    slack = measure_slack(data.returns, data.task)
    if slack.is_zero:
        raise UnusableBuffer(
            f"{slack.no_contrast()}: no action is worth more than another, and {who} would choose by noise. "
            f"{_REMEDY}; or {instead}"
        )


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
    contrast = best - worst > _EQUAL
    last = first + size - 1
    second, second_last = ordered[np.minimum(first + 1, last)], ordered[np.maximum(last - 1, first)]
    lone = contrast & (size >= _MANY) & ((best - second <= _EQUAL) | (second_last - worst <= _EQUAL))
    return Slack(
        slack=float(np.mean(np.maximum(best - mean, 0.0))),
        n_tasks=len(first),
        n_episodes=len(returns),
        n_single=int((size == 1).sum()),
        n_flat=int(((size > 1) & ~contrast).sum()),
        n_lone=int(lone.sum()),
        lowest=float(returns.min()),
        highest=float(returns.max()),
    )
