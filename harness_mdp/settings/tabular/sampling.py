"""Buffers by the thousand: episodes drawn from the known transitions, all at once, without an executor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness_mdp.hashing import generator
from harness_mdp.mdp import Policy, Probs
from harness_mdp.settings.tabular.graph import TabularMDP
from harness_mdp.settings.tabular.world import LEVELS
from harness_mdp.settings.tasks import difficulties

__all__ = ["TabularSample", "sample_buffer"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TabularSample:
    """n steps of m episodes, ordered by (task, rollout, t): the arrays of a buffer, and where they come from."""

    features: npt.NDArray[np.float32]
    """(n, d)"""
    mask: npt.NDArray[np.bool_]
    """(n, 7)"""
    base_action: Ints
    """(n,)"""
    action: Ints
    """(n,)"""
    propensities: Floats
    """(n, 7) the behaviour policy's distribution."""
    t: Ints
    """(n,) 1..H"""
    episode: Ints
    """(n,) index into the episodes, non-decreasing."""
    lengths: Ints
    """(m,) steps of each episode."""
    returns: Floats
    """(m,) Q in [0, 1]."""
    task: Ints
    """(m,) 0..n_tasks-1: a fifth easy, a fifth hard, in the order easy, standard, hard."""
    seed: Ints
    """(m,)"""
    rollout: Ints
    """(m,)"""
    horizon: Ints
    """(m,)"""
    state: Ints
    """(n,) index into the MDP's states."""
    level: Ints
    """(m,) difficulty of the episode's task, as index into `LEVELS`."""
    final: Ints
    """(m,) index into the MDP's final states."""

    @property
    def n_steps(self) -> int:
        """N"""
        return len(self.action)

    @property
    def n_episodes(self) -> int:
        """M"""
        return len(self.returns)

    @property
    def horizons(self) -> tuple[int, ...]:
        """Distinct horizons: one."""
        return tuple(np.unique(self.horizon).tolist())

    @property
    def propensity(self) -> Floats:
        """(n,) μ(action | state)."""
        return self.propensities[np.arange(self.n_steps), self.action]


def sample_buffer(
    mdp: TabularMDP, policy: Policy | Probs, *, n_tasks: int = 20, rollouts: int = 10, seed: int = 0
) -> TabularSample:
    """A buffer of `n_tasks` x `rollouts` episodes of `policy`; the same law as collecting with the simulated executor.

    Args:
        mdp: the MDP.
        policy: the behaviour, or its table: with `mdp.table(policy)` made once, a buffer takes a few milliseconds.
        n_tasks: tasks, a fifth of them easy and a fifth hard.
        rollouts: episodes of each.
        seed: of the draws; buffers of different seeds are independent.

    Raises:
        ValueError: no task or no rollout; or see `TabularMDP.table`.
    """
    if n_tasks < 1 or rollouts < 1:
        raise ValueError(f"{n_tasks} tasks and {rollouts} rollouts; expected at least 1 of each")
    table = mdp.table(policy)
    task = np.repeat(np.arange(n_tasks), rollouts)
    level = np.array([LEVELS.index(each) for each in difficulties(n_tasks)])[task]
    states, actions, final = _walk(mdp, table, level, generator("tabular sample", seed))
    taken = actions >= 0
    episode, step = np.nonzero(taken)
    at, action, told = states[taken], actions[taken], level[episode]
    m = len(task)
    return TabularSample(
        features=mdp.features[told, at],
        mask=mdp.mask[at],
        base_action=mdp.base_action[at],
        action=action,
        propensities=table[told, at],
        t=step.astype(np.int64) + 1,
        episode=episode.astype(np.int64),
        lengths=taken.sum(axis=1),
        returns=mdp.quality[final],
        task=task,
        seed=np.full(m, seed, dtype=np.int64),
        rollout=np.tile(np.arange(rollouts), n_tasks),
        horizon=np.full(m, mdp.horizon, dtype=np.int64),
        state=at,
        level=level,
        final=final,
    )


def _walk(mdp: TabularMDP, table: Probs, level: Ints, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """States (m, H) and actions (m, H), -1 after the end, and final states (m,)."""
    m, n = len(level), mdp.n_states
    states, actions = np.full((m, mdp.horizon), -1, dtype=np.int64), np.full((m, mdp.horizon), -1, dtype=np.int64)
    at = np.zeros(m, dtype=np.int64)
    for step in range(mdp.horizon):
        draws = rng.random((m, 2))  # drawn for ended episodes too, so that no draw depends on another episode
        going = np.flatnonzero(at < n)
        here, of = at[going], level[going]
        action = _draw(table[of, here], draws[going, 0])
        outcome = _draw(mdp.chance[of, here, action], draws[going, 1])
        states[going, step], actions[going, step] = here, action
        at[going] = mdp.successor[here, action, outcome]
    return states, actions, at - n


def _draw(probs: Floats, marks: Floats) -> Ints:
    """(k,) columns drawn from the rows of `probs` (k, c) by the inverse CDF; never one of probability 0."""
    edges = probs.cumsum(axis=1)
    drawn = (marks[:, None] * edges[:, -1:] >= edges).sum(axis=1)
    last = probs.shape[1] - 1 - (probs[:, ::-1] > 0.0).argmax(axis=1)
    return np.minimum(drawn, last)
