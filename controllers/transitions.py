"""What planning needs of logged steps: what came after each, and how many steps were left (DESIGN section 8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controllers.data import Bools, Floats, Ints, StepArrays, StepData
from controllers.planned_q import remaining_steps
from harness_mdp.errors import UnusableBuffer
from harness_mdp.features import STEPS_LEFT
from harness_mdp.mdp import N_ACTIONS

__all__ = ["Transitions", "bootstrap_tasks", "half_of_tasks", "horizon_of", "one_hot", "only_episodes", "transitions"]


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """n logged steps with their outcomes."""

    features: npt.NDArray[np.float32]
    """(n, d)"""
    mask: Bools
    """(n, 7)"""
    base_action: Ints
    """(n,)"""
    action: Ints
    """(n,)"""
    propensities: Floats
    """(n, 7)"""
    task: Ints
    """(n,) index of the step's task."""
    outcome: Floats
    """(n,) return of the step's episode."""
    following: Ints
    """(n,) row of the next step of the episode; -1 after the last one."""
    left: Ints
    """(n,) steps left, this one included, 1..H."""
    horizon: int
    """H"""

    @property
    def last(self) -> Bools:
        """(n,) nothing followed: submit, or the harness submitted."""
        return self.following < 0


def horizon_of(data: StepData) -> int:
    """H, read off the clock of the features: `steps_left` is (H - t + 1)/H.

    Raises:
        UnusableBuffer: episodes of different horizons, or features without a clock.
    """
    later = data.t > 1
    if not later.any():
        return 1
    used = 1.0 - data.features[later, STEPS_LEFT].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        horizons = (data.t[later] - 1) / used
    if not np.isfinite(horizons).all() or np.ptp(np.rint(horizons)) > 0 or horizons[0] < data.t.max() - 0.5:
        raise UnusableBuffer(
            f"the feature at place {STEPS_LEFT} is no share of the steps left of one common horizon. "
            "Plan on episodes of one horizon, with the features of this version"
        )
    return int(np.rint(horizons[0]))


def transitions(data: StepData) -> Transitions:
    """The transitions of `data`, whatever the order of its steps.

    Raises:
        UnusableBuffer: see `horizon_of`.
    """
    horizon = horizon_of(data)
    order = np.lexsort((data.t, data.episode))
    episode = data.episode[order]
    follows = np.append(episode[1:] == episode[:-1], False)
    following = np.full(len(order), -1, dtype=np.int64)
    following[order[:-1]] = np.where(follows[:-1], order[1:], -1)
    return Transitions(
        features=data.features,
        mask=data.mask,
        base_action=data.base_action,
        action=data.action,
        propensities=data.propensities,
        task=data.task[data.episode],
        outcome=data.returns[data.episode],
        following=following,
        left=remaining_steps(data.features, horizon),
        horizon=horizon,
    )


def only_episodes(data: StepData, keep: Bools) -> tuple[StepArrays, Ints]:
    """The steps of some of the m episodes, and their rows (n',) in `data`; `keep` is (m,)."""
    rows = np.flatnonzero(keep[data.episode])
    new = np.cumsum(keep) - 1
    kept = StepArrays(
        features=data.features[rows],
        mask=data.mask[rows],
        action=data.action[rows],
        base_action=data.base_action[rows],
        propensities=data.propensities[rows],
        t=data.t[rows],
        episode=new[data.episode[rows]],
        returns=data.returns[keep],
        task=data.task[keep],
    )
    return kept, rows


def bootstrap_tasks(task: Ints, share: float, rng: np.random.Generator) -> Bools:
    """(n,) the steps of a random `share` of the tasks, at least one, drawn without replacement."""
    tasks = np.unique(task)
    chosen = rng.choice(tasks, size=max(1, round(share * len(tasks))), replace=False)
    return np.isin(task, chosen)


def half_of_tasks(data: StepData, rng: np.random.Generator) -> StepArrays:
    """The steps of a random half of the tasks, at least one."""
    return only_episodes(data, bootstrap_tasks(data.task, 0.5, rng))[0]


def one_hot(action: Ints) -> npt.NDArray[np.float32]:
    """(n, 7) float32"""
    return np.eye(N_ACTIONS, dtype=np.float32)[action]
