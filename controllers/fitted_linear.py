"""Finite-horizon fitted Q with a ridge regression an action and stage, over what the behaviour proposed.

With h steps left, on the regressors x of `linear_q`,

    Q_h(s, a) = ridge regression on the visits of a of [ G if the episode ended there, else V_{h-1}(s') ]
    V_h(s)    = max over proposed a of Q_h(s, a), clipped to [0, 1] where returns are

Two things make so plain a regression hold. The stage is the clock: V_0 is what the harness gets for submitting what
there is, so nothing is put off beyond the deadline. And support is not guessed from visits but read off the known
propensities: only what some script proposed in a state like this is considered.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from controllers.config import LinearQConfig
from controllers.data import Bools, Floats, Ints, StepData
from controllers.forest import Forest
from controllers.linear_q import LinearQ, proposed_actions, regressors
from controllers.transitions import Transitions, transitions
from harness_mdp.features import HAS_ARTIFACT
from harness_mdp.mdp import N_ACTIONS, Action

__all__ = ["fit_linear_q"]

_BEHAVIOUR_LEAF = 3
"""Steps in a leaf of the tree that predicts the behaviour: it is deterministic given the state."""


def fit_linear_q(data: StepData, config: LinearQConfig) -> LinearQ:
    """The Q of `linear_q`; nothing in it is drawn.

    Raises:
        UnusableBuffer: see `transitions`.
    """
    log = transitions(data)
    mean = log.features.mean(axis=0, dtype=np.float64)
    deviation = log.features.std(axis=0, dtype=np.float64)
    scale = np.where(deviation > 1e-6, deviation, 1.0)
    x = regressors(log.features, mean, scale)
    weights, intercept = _iterate(log, x, config)
    tree = DecisionTreeRegressor(min_samples_leaf=min(_BEHAVIOUR_LEAF, len(x)), random_state=0)
    return LinearQ(
        mean=mean,
        scale=scale,
        weights=weights,
        intercept=intercept,
        behaviour=Forest.of([tree.fit(log.features, log.propensities)]),
        excess=config.excess,
        relative=config.relative,
    )


def _iterate(log: Transitions, x: Floats, config: LinearQConfig) -> tuple[Floats, Floats]:
    """Weights (H, 2d, 7) and intercepts (H, 7), backwards from the last step."""
    rows = [np.flatnonzero(log.action == action) for action in range(N_ACTIONS)]
    onward = np.flatnonzero(log.following >= 0)
    ahead = log.following[onward]
    bounds = min(0.0, float(log.outcome.min())), max(1.0, float(log.outcome.max()))
    proposed = log.mask[ahead] & proposed_actions(log.propensities[ahead], config.excess, config.relative)
    weights = np.zeros((log.horizon, x.shape[1], N_ACTIONS))
    intercept = np.full((log.horizon, N_ACTIONS), np.nan)
    value = _submitted(log, x, ahead, rows[Action.SUBMIT], config, bounds)
    for h in range(log.horizon):
        target = log.outcome.copy()
        target[onward] = value
        for action, own in enumerate(rows):
            if len(own) >= config.min_visits:
                fitted = Ridge(alpha=config.ridge).fit(x[own], target[own])
                weights[h, :, action], intercept[h, action] = fitted.coef_, fitted.intercept_
        value = _best(intercept[h] + x[ahead] @ weights[h], proposed, log.outcome[onward], bounds)
    return weights, intercept


def _best(q: Floats, proposed: Bools, outcome: Floats, bounds: tuple[float, float]) -> Floats:
    """(n,) value of the best proposed action; the logged outcome where none was tried often enough."""
    best = np.where(proposed & ~np.isnan(q), q, -np.inf).max(axis=1)
    return np.where(np.isfinite(best), np.clip(best, *bounds), outcome)


def _submitted(
    log: Transitions, x: Floats, at: Ints, rows: Ints, config: LinearQConfig, bounds: tuple[float, float]
) -> Floats:
    """(k,) what submitting in the states `at` would bring; nothing where there is no artifact."""
    if len(rows) < config.min_visits:
        return log.outcome[at]
    fitted = Ridge(alpha=config.ridge).fit(x[rows], log.outcome[rows])
    value = np.clip(fitted.predict(x[at]), *bounds)
    return np.where(log.features[at, HAS_ARTIFACT] > 0, value, 0.0)
