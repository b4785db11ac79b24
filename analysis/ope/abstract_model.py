r"""A model of the Harness MDP on abstract states: what the target would visit, and what it would come to.

States are clustered by a regression tree that is asked for the return and for what the target would do, so that a
cluster holds states of like prospects where the target acts alike. With clusters c, actions a, steps t < H and
empirical means over the log (tasks weigh equally),

.. math::

    Q_t(c, a) = \bar r(c, a) + \sum_{c'} \hat P(c'|c, a) \sum_{a'} \bar\pi(a'|c')\, Q_{t+1}(c', a')

and at t = H, where every episode ends, the mean reward of the steps of that step. The stage is the step, as episodes
are finite; transitions are shared between stages before the last, since the clusters know t where it matters.
"""

# scikit-learn and scipy.sparse ship no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.ope.intervals import Refitted
from analysis.ope.logged import Logged
from controllers.data import Bools, Floats, Ints
from harness_mdp.mdp import N_ACTIONS

__all__ = ["AbstractConfig", "AbstractModel", "Occupancy", "abstract_model", "cluster_states"]

_PRIOR = 1e-9
"""Weight of a cluster's mean in a cell: what a cell without a step falls back on."""


@dataclass(frozen=True, slots=True)
class AbstractConfig:
    """How states are clustered."""

    max_clusters: int = 32
    min_steps: int = 100
    """Logged steps of a cluster; a 64th of the log where that is less, or a small log would be one cluster."""
    fewest_steps: int = 40
    """But never fewer than these: in a smaller cluster no cell could ever have visits enough to count."""


@dataclass(frozen=True, slots=True, eq=False)
class Occupancy:
    """Where the target's decisions fall, by the model, C clusters."""

    decisions: Floats
    """(C, 7) expected decisions of an episode in each cell (cluster, action)."""
    beyond: Floats
    """(C, 7) steps that were left when the target entered a cell that the log never did."""


@dataclass(frozen=True, slots=True, eq=False)
class AbstractModel:
    """Clusters of the logged steps, and their empirical transitions. A cell is `cluster * 7 + action`."""

    log: Logged
    cluster: Ints
    """(n,)"""
    n_clusters: int

    @property
    def cell(self) -> Ints:
        """(n,) cell of each logged step."""
        return self.cluster * N_ACTIONS + self.log.action

    def visits(self) -> tuple[Ints, Ints]:
        """Logged steps in each cell (C, 7), and tasks they come from (C, 7)."""
        size, task = self.n_clusters * N_ACTIONS, self.log.task[self.log.episode]
        steps = np.bincount(self.cell, minlength=size)
        pairs = np.unique(np.stack([self.cell, task]), axis=1)[0]
        tasks = np.bincount(pairs, minlength=size)
        return steps.reshape(-1, N_ACTIONS), tasks.reshape(-1, N_ACTIONS)

    def occupancy(self) -> Occupancy:
        """The forward pass: the start of the log, the target's decisions, the empirical transitions."""
        log, horizon = self.log, self.log.horizon
        mass = log.mass[log.episode]
        first = log.t == 1
        state = np.bincount(self.cluster[first], mass[first], self.n_clusters)
        policy = self._policy(np.ones((log.n_tasks, 1)))[..., 0]
        decisions, beyond = np.zeros((self.n_clusters, N_ACTIONS)), np.zeros((self.n_clusters, N_ACTIONS))
        inner = np.flatnonzero(log.t < horizon)
        seen = np.bincount(self.cell[inner], mass[inner], self.n_clusters * N_ACTIONS).reshape(decisions.shape)
        goes_on = inner[~log.last[inner]]
        share = mass[goes_on] / seen.reshape(-1)[self.cell[goes_on]]
        final = np.bincount(self.cell[log.t == horizon], minlength=decisions.size).reshape(decisions.shape)
        for t in range(1, horizon + 1):
            chosen = state[:, None] * policy
            decisions += chosen
            known = (seen if t < horizon else seen + final) > 0
            beyond += np.where(known, 0.0, chosen * (horizon - t))
            if t < horizon:
                flow = chosen.reshape(-1)[self.cell[goes_on]] * share
                state = np.bincount(self.cluster[goes_on + 1], flow, self.n_clusters)
        return Occupancy(decisions, beyond)

    def estimate(self, counts: Floats) -> Refitted:
        """The value of the target in the model, and in the model of each resample of tasks.

        Args:
            counts: (B, K) how often each task is drawn.
        """
        value = float(self._values(np.ones((1, self.log.n_tasks)))[0])
        return Refitted(value, self._values(counts))

    def _values(self, counts: Floats) -> Floats:
        """(B,) the backward recursion in all resamples at once."""
        log, n_cells, draws = self.log, self.n_clusters * N_ACTIONS, counts.T
        inner, final = log.t < log.horizon, log.t == log.horizon
        policy = self._policy(draws)
        triples, source, following = self._transitions(inner & ~log.last, draws)
        weight = self._sums(self.cell, inner, np.ones(len(log.action)), n_cells, draws)
        reward = self._sums(self.cell, inner, log.rewards, n_cells, draws)
        ending = self._sums(self.cell, final, log.rewards, n_cells, draws)
        q = self._means(ending, self._sums(self.cell, final, np.ones(len(log.action)), n_cells, draws))
        for _ in range(log.horizon - 1):
            value = (policy * q).sum(axis=1)
            q = self._means(reward + source @ (triples * value[following]), weight)
        first = log.t == 1
        ones = np.ones(len(log.action))
        start = self._sums(self.cluster, first, ones, self.n_clusters, draws)
        total = (start * (policy * q).sum(axis=1)).sum(axis=0)
        # An episode without steps is worth what it is, under any policy.
        empty = np.setdiff1d(np.arange(log.n_episodes), log.episode)
        share = log.mass[empty, None] * draws[log.task[empty]]
        values: Floats = (total + (share * log.returns[empty, None]).sum(axis=0)) / (
            start.sum(axis=0) + share.sum(axis=0)
        )
        return values

    def _policy(self, draws: Floats) -> Floats:
        """(C, 7, B) the target's mean probabilities in each cluster."""
        everywhere = np.ones(len(self.cluster), dtype=np.bool_)
        sums = [
            self._sums(self.cluster, everywhere, self.log.target[:, action], self.n_clusters, draws)
            for action in range(N_ACTIONS)
        ]
        chances = np.stack(sums, axis=1) + _PRIOR * self._logged_policy()[..., None]
        means: Floats = chances / chances.sum(axis=1, keepdims=True)
        return means

    def _logged_policy(self) -> Floats:
        """(C, 7) the same over the whole log: what a cluster falls back on that a resample does not hold."""
        sums = np.zeros((self.n_clusters, N_ACTIONS))
        np.add.at(sums, self.cluster, self.log.target)
        return sums / sums.sum(axis=1, keepdims=True)

    def _means(self, sums: Floats, weight: Floats) -> Floats:
        """(C, 7, B) means of cells; of its cluster where a cell is empty, and of all where that is."""
        sums, weight = (x.reshape(self.n_clusters, N_ACTIONS, -1) for x in (sums, weight))
        typical = float(self.log.mass @ self.log.returns)
        overall = (sums.sum(axis=(0, 1)) + _PRIOR**2 * typical) / (weight.sum(axis=(0, 1)) + _PRIOR**2)
        mean = (sums.sum(axis=1) + _PRIOR**2 * overall) / (weight.sum(axis=1) + _PRIOR**2)
        means: Floats = (sums + _PRIOR * mean[:, None]) / (weight + _PRIOR)
        return means

    def _sums(self, key: Ints, rows: Bools, values: Floats, size: int, draws: Floats) -> Floats:
        """(size, B) mass-weighted sums of `values` (n,) by `key` (n,) over `rows` (n,) in each resample."""
        from scipy import sparse

        log, at = self.log, np.flatnonzero(rows)
        weighed = log.mass[log.episode[at]] * values[at]
        by_task = sparse.csr_matrix((weighed, (key[at], log.task[log.episode[at]])), shape=(size, log.n_tasks))
        return by_task @ draws

    def _transitions(self, rows: Bools, draws: Floats) -> tuple[Floats, Any, Ints]:
        """Weights (u, B) of distinct (cell, next cluster), their sums by cell (C·7, u), next clusters (u,)."""
        from scipy import sparse

        following = np.append(self.cluster[1:], 0)
        pairs, index = np.unique(np.stack([self.cell, following])[:, rows], axis=1, return_inverse=True)
        kind = np.zeros(len(self.cluster), dtype=np.int64)
        kind[rows] = index.reshape(-1)
        n = pairs.shape[1]
        weights = self._sums(kind, rows, np.ones(len(kind)), n, draws)
        shape = (self.n_clusters * N_ACTIONS, n)
        source = sparse.csr_matrix((np.ones(n), (pairs[0], np.arange(n))), shape=shape)
        return weights, source, pairs[1]


def abstract_model(log: Logged, config: AbstractConfig | None = None) -> AbstractModel:
    """The model of `log`."""
    cluster = cluster_states(log, config or AbstractConfig())
    return AbstractModel(log, cluster, int(cluster.max()) + 1)


def cluster_states(log: Logged, config: AbstractConfig) -> Ints:
    """(n,) cluster 0 .. C-1 of each logged step: leaves of a tree on features and t.

    The tree is grown on the episode's return (in standard deviations) and the target's probabilities.
    """
    from sklearn.tree import DecisionTreeRegressor

    returns = log.returns[log.episode]
    spread = float(returns.std())
    scaled = (returns - returns.mean()) / (spread if spread > 0 else 1.0)
    least = min(config.min_steps, max(config.fewest_steps, len(log.t) // 64))
    inputs = np.column_stack([log.features, log.t / log.horizon])
    tree = DecisionTreeRegressor(max_leaf_nodes=config.max_clusters, min_samples_leaf=least, random_state=0)
    tree.fit(inputs, np.column_stack([scaled, log.target]), sample_weight=log.mass[log.episode])
    return np.unique(tree.apply(inputs), return_inverse=True)[1].astype(np.int64)
