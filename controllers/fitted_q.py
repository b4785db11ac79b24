"""One-step improvement and finite-horizon fitted Q iteration with regression forests, within support.

`one_step`: Q^μ(s, a) = E[G | s, a], which under a known behaviour is plain regression on logged returns; acting
greedily on it is one exact step of policy improvement.

`fitted_q` (Ernst et al. 2005): Q_h(s, a) = E[G if the episode ended, else max over supported a' of Q_{h-1}(s', a')],
regressed anew on all steps for h = 1 .. H. With the clock among the features one forest holds all stages. Without
the support rule the maximum prefers actions that nobody tried there, and such a learner learns never to draft.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import ExtraTreesRegressor

from controllers.cells import Cells, fit_cells, visited_pairs
from controllers.config import Method, QConfig
from controllers.data import Bools, Floats, Ints, StepData
from controllers.folds import task_folds
from controllers.forest import Forest
from controllers.forest_q import ForestQ
from controllers.q_function import UNSUPPORTED
from controllers.transitions import Transitions, bootstrap_tasks, one_hot, transitions
from harness_mdp.hashing import generator
from harness_mdp.mdp import N_ACTIONS

__all__ = ["action_values", "crossfitted_q", "fit_forest_q", "regress_actions"]

_CROSS_FOLDS = 5


def fit_forest_q(data: StepData, config: QConfig, seed: int) -> ForestQ:
    """The Q of `one_step` or `fitted_q`.

    Raises:
        UnusableBuffer: see `transitions`.
    """
    log = transitions(data)
    rng = generator("forest q", seed)
    forests: list[Forest] = []
    cells, supported = _support(log, config)
    for _ in range(config.bags):
        rows = bootstrap_tasks(log.task, 0.5, rng) if config.bags > 1 else np.ones(len(log.action), dtype=np.bool_)
        forests.append(_iterate(log, np.flatnonzero(rows), cells, supported, config, int(rng.integers(2**31))))
    return ForestQ(
        forest=Forest.join(forests),
        bags=config.bags,
        cells=cells.forest,
        supported=supported,
        n_features=data.features.shape[1],
        z=config.z,
    )


def crossfitted_q(data: StepData, config: QConfig, seed: int) -> Floats:
    """(n, 7) the behaviour's Q in every logged state, regressed on the tasks of other folds than the step's."""
    fold = task_folds(data.task, min(_CROSS_FOLDS, len(np.unique(data.task))))[data.episode]
    values = np.zeros((len(data.action), N_ACTIONS))
    outcome = data.returns[data.episode]
    for index in range(int(fold.max()) + 1):
        own, others = fold == index, fold != index
        if not others.any():  # a single task: nothing to learn it from
            return values
        forest = regress_actions(data.features[others], data.action[others], outcome[others], config, seed + index)
        values[own] = action_values(forest, data.features[own])
    return values


def _iterate(log: Transitions, at: Ints, cells: Cells, supported: Bools, config: QConfig, seed: int) -> Forest:
    """Q_H on the steps `at`, and for `one_step` the behaviour's Q."""
    features, action, outcome = log.features[at], log.action[at], log.outcome[at]
    forest = regress_actions(features, action, outcome, config, seed)
    if config.method is Method.ONE_STEP:
        return Forest.of(forest.estimators_)
    onward = np.flatnonzero(log.following[at] >= 0)
    following = log.following[at][onward]
    ahead = log.features[following]
    allowed = log.mask[following] & supported[cells.of(ahead)]
    some = allowed.any(axis=1)
    for turn in range(1, log.horizon):
        q = np.where(allowed, action_values(forest, ahead), UNSUPPORTED)
        target = outcome.copy()
        # Where nothing is supported the logged return stands: what the behaviour got from there.
        target[onward[some]] = q[some].max(axis=1)
        forest = regress_actions(features, action, target, config, seed + turn)
    return Forest.of(forest.estimators_)


def regress_actions(
    features: npt.NDArray[np.float32], action: Ints, target: Floats, config: QConfig, seed: int
) -> ExtraTreesRegressor:
    """A forest of `target` (n,) on state and action."""
    forest = ExtraTreesRegressor(
        config.trees, min_samples_leaf=config.leaf_steps, max_features=0.6, random_state=seed % 2**31, n_jobs=1
    )
    return forest.fit(np.hstack([features, one_hot(action)]), target)


def action_values(forest: ExtraTreesRegressor, features: npt.NDArray[np.float32]) -> Floats:
    """(n, 7) what the forest predicts for each action."""
    columns = [forest.predict(np.hstack([features, one_hot(np.full(len(features), a))])) for a in range(N_ACTIONS)]
    return np.stack(columns, axis=1)


def _support(log: Transitions, config: QConfig) -> tuple[Cells, Bools]:
    """Cells of states in which the behaviour acts and ends alike, and which actions have enough visits there."""
    targets = np.column_stack([log.propensities, log.outcome])
    cells = fit_cells(log.features, targets, config.cells, config.min_visits)
    pair = cells.of(log.features) * N_ACTIONS + log.action
    _, supported = visited_pairs(pair, log.task, cells.n, config.min_visits, config.min_tasks)
    return cells, supported.reshape(cells.n, N_ACTIONS)
