r"""Fitted Q evaluation by backward recursion over the steps of an episode, cross-fitted over tasks.

With one regression per step t = H, ..., 1 (t is part of the state, gamma is 1),

.. math::

    \hat Q_t = \arg\min_f \sum_{i:\, t_i = t} m_i \big( r_i + \hat V_{t+1}(s'_i) - f(s_i, a_i) \big)^2, \qquad
    \hat V_t(s) = \sum_{a \in m(s)} \pi(a|s)\, \hat Q_t(s, a)

and V = 0 after the last step (Le, Voloshin and Yue 2019). The expectation runs over the target policy and its legal
actions; no maximum is taken anywhere. f is a regression tree on the features and the action, so a fitted value is a
mean over logged steps and stays within the range of what was seen.

Each task is valued by models that have not seen it. A resample of tasks fits the leaf values again, in trees whose
splits stay as they are: that is linear algebra, for all resamples at once.
"""

# scikit-learn and scipy.sparse ship no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.ope.intervals import Refitted
from analysis.ope.logged import Logged
from analysis.ope.weighting import expected_value
from controllers.data import Bools, Floats, Ints
from harness_mdp.hashing import generator
from harness_mdp.mdp import N_ACTIONS

__all__ = ["CrossFit", "FittedQConfig", "cross_fit", "task_folds"]

_PRIOR = 1e-9
"""Weight of the first fit in a refitted leaf: what a resample without any step of the leaf falls back on."""


@dataclass(frozen=True, slots=True)
class FittedQConfig:
    """How the trees are grown."""

    folds: int = 5
    """Of tasks; fewer where there are fewer tasks."""
    min_leaf: int = 2
    """Logged steps of a leaf."""
    seed: int = 0
    """Of the folds."""


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """Q̂ of every logged step, each from the models that have not seen its task."""

    log: Logged
    q: Floats
    """(n, 7) 0 on illegal actions."""
    folds: Sequence[_Fold]

    def initial_values(self) -> Floats:
        """(m,) V̂(s_1) of each episode; the return of one without steps."""
        log = self.log
        first = np.flatnonzero(log.t == 1)
        initial = log.unearned.copy()
        initial[log.episode[first]] += expected_value(log.target[first], self.q[first])
        return initial

    def estimate(self, counts: Floats) -> Refitted:
        """FQE: the mean of V̂(s_1) over tasks, and the same in each resample of tasks.

        Args:
            counts: (B, K) how often each task is drawn.
        """
        log = self.log
        initial = np.repeat(log.unearned[:, None], len(counts), axis=1)
        for fold in self.folds:
            rows, refitted = fold.refit(log, counts)
            initial[log.episode[rows]] += refitted
        by_task = log.per_task(initial)
        draws = (counts.T * by_task).sum(axis=0) / counts.sum(axis=1)
        return Refitted(float(log.per_task(self.initial_values()).mean()), draws)


def cross_fit(log: Logged, config: FittedQConfig | None = None) -> CrossFit:
    """Fits the models of all folds.

    Args:
        log: n steps of at least two tasks.
        config: how.
    """
    chosen = config or FittedQConfig()
    fold_of = task_folds(log.n_tasks, chosen.folds, chosen.seed)[log.task[log.episode]]
    q = np.zeros(log.target.shape)
    folds: list[_Fold] = []
    for fold in range(int(fold_of.max()) + 1):
        own = _fit(log, fold_of != fold, chosen.min_leaf)
        q[fold_of == fold] = own.q[fold_of == fold]
        folds.append(own)
    return CrossFit(log, q, folds)


def task_folds(n_tasks: int, folds: int, seed: int) -> Ints:
    """(K,) fold of each task; sizes differ by at most one.

    Raises:
        ValueError: fewer than two tasks, which leave nothing to fit on.
    """
    if n_tasks < 2:
        raise ValueError(f"{n_tasks} task; cross-fitting over tasks needs two")
    order = generator("ope folds", seed, n_tasks).permutation(n_tasks)
    dealt = np.empty(n_tasks, dtype=np.int64)
    dealt[order] = np.arange(n_tasks) % min(folds, n_tasks)
    return dealt


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """The tree of one step t: which leaf each logged step and each possible action there falls into."""

    rows: Ints
    """(r,) all logged steps of this t."""
    fitted: Bools
    """(r,) whether the tree was grown on it."""
    leaf: Ints
    """(r,) leaf of the action taken."""
    values: Floats
    """(L,) fitted value of each leaf."""
    expectation: Any
    """(r, L) sparse: the probability under the target of each leaf, so that `expectation @ values` is V̂."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """Models of one fold, last step first, and Q̂ (n, 7) that they give to all logged steps."""

    stages: Sequence[_Stage]
    q: Floats
    held_out: Ints
    """First steps of the episodes that no tree was grown on."""

    def refit(self, log: Logged, counts: Floats) -> tuple[Ints, Floats]:
        """`held_out` (f,) and V̂ (f, B) there, the leaf values fitted again in each resample."""
        from scipy import sparse

        mass = log.mass[log.episode]
        task = log.task[log.episode]
        following = np.zeros((0, len(counts)))
        place = np.full(len(log.action) + 1, -1, dtype=np.int64)
        for stage in self.stages:
            rows = stage.rows[stage.fitted]
            goal = np.repeat(log.rewards[rows, None], len(counts), axis=1)
            goes_on = np.flatnonzero(~log.last[rows])
            goal[goes_on] += following[place[rows[goes_on] + 1]]
            weight = mass[rows, None] * counts.T[task[rows]]
            ones, at = np.ones(len(rows)), np.arange(len(rows))
            leaf = stage.leaf[stage.fitted]
            members = sparse.csr_matrix((ones, (leaf, at)), shape=(len(stage.values), len(rows)))
            prior = stage.values[:, None] * _PRIOR
            values = (members @ (weight * goal) + prior) / (members @ weight + _PRIOR)
            following = stage.expectation @ values
            place[:] = -1
            place[stage.rows] = np.arange(len(stage.rows))
        return self.held_out, following[place[self.held_out]]


def _fit(log: Logged, fitted: Bools, min_leaf: int) -> _Fold:
    """The backward recursion on the steps where `fitted`."""
    q = np.zeros(log.target.shape)
    value = np.zeros(len(log.action))
    mass, last = log.mass[log.episode], log.last
    overall = float(np.average(log.returns[log.episode[fitted]], weights=mass[fitted]))
    stages: list[_Stage] = []
    for t in range(log.horizon, 0, -1):
        rows = np.flatnonzero(log.t == t)
        use = fitted[rows]
        following = np.where(last[rows], 0.0, value[np.minimum(rows + 1, len(value) - 1)])
        goal = log.rewards[rows] + following
        stage, own = _grow(log, rows, use, goal, mass[rows], min_leaf, overall)
        q[rows] = own
        value[rows] = expected_value(log.target[rows], own)
        stages.append(stage)
    return _Fold(stages, q, np.flatnonzero((log.t == 1) & ~fitted))


def _grow(
    log: Logged, rows: Ints, use: Bools, goal: Floats, mass: Floats, min_leaf: int, overall: float
) -> tuple[_Stage, Floats]:
    """The tree of one step t, and Q̂ (r, 7) of its logged steps."""
    from scipy import sparse
    from sklearn.tree import DecisionTreeRegressor

    mask, target = log.mask[rows], log.target[rows]
    state, action = np.nonzero(mask)
    if not use.any():  # no episode of the other folds is that long
        values, leaf_of = np.array([overall]), np.zeros(len(state), dtype=np.int64)
    else:
        tree = DecisionTreeRegressor(min_samples_leaf=min_leaf, random_state=0)
        taken = np.flatnonzero(use)
        inputs = _inputs(log.features[rows[taken]], log.action[rows[taken]])
        # Checked when the log was made; for small trees the checks cost more than the growing.
        tree.fit(inputs, goal[taken, None], sample_weight=mass[taken], check_input=False)
        reached = tree.tree_.apply(_inputs(log.features[rows[state]], action))
        nodes, leaf_of = np.unique(reached, return_inverse=True)
        values = tree.tree_.value[nodes, 0, 0]
    q = np.zeros(mask.shape)
    q[state, action] = values[leaf_of]
    leaves = np.zeros(mask.shape, dtype=np.int64)
    leaves[state, action] = leaf_of
    shape = (len(rows), len(values))
    expectation = sparse.csr_matrix((target[state, action], (state, leaf_of)), shape=shape)
    return _Stage(rows, use, leaves[np.arange(len(rows)), log.action[rows]], values, expectation), q


def _inputs(features: npt.NDArray[np.float32], action: Ints) -> npt.NDArray[np.float32]:
    """(r, d + 7) features and the one-hot action."""
    return np.hstack([features, np.eye(N_ACTIONS, dtype=np.float32)[action]])
