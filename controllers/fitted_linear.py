"""Finite-horizon fitted Q with linear regressions, over what the behaviour proposed: Q-learning and A-learning.

`linear_q` is Q-learning, a ridge regression an action and stage: with h steps left, on the regressors x of `linear_q`,

    Q_h(s, a) = ridge regression on the visits of a of [ G if the episode ended there, else V_{h-1}(s') ]
    V_h(s)    = max over proposed a of Q_h(s, a), clipped to [0, 1] where returns are; or the mean under μ

`a_learning` regresses the differences between actions instead, see there. Two things make so plain regressions hold.
The stage is the clock: V_0 is what the harness gets for submitting what there is, so nothing is put off beyond the
deadline. And support is not guessed from visits but read off the known propensities: only what some script proposed in
a state like this is considered.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from controllers.a_learning import a_learning
from controllers.config import LinearQConfig, Method
from controllers.data import Floats, StepData
from controllers.forest import Forest
from controllers.linear_q import LinearQ
from controllers.stages import Stages
from harness_mdp.mdp import N_ACTIONS

__all__ = ["fit_linear"]

_BEHAVIOUR_LEAF = 3
"""Steps in a leaf of the tree that predicts the behaviour: it is deterministic given the state."""


def fit_linear(data: StepData, config: LinearQConfig) -> LinearQ:
    """The Q of `linear_q` or `a_learning`; nothing in it is drawn.

    Raises:
        UnusableBuffer: see `transitions`.
    """
    stages = Stages.of(data, config)
    learned = a_learning if config.method is Method.A_LEARNING else _q_learning
    weights, intercept = learned(stages, config)
    log = stages.log
    tree = DecisionTreeRegressor(min_samples_leaf=min(_BEHAVIOUR_LEAF, len(log.action)), random_state=0)
    return LinearQ(
        mean=stages.mean,
        scale=stages.scale,
        weights=weights,
        intercept=intercept,
        behaviour=Forest.of([tree.fit(log.features, log.propensities)]),
        excess=config.excess,
        relative=config.relative,
    )


def _q_learning(stages: Stages, config: LinearQConfig) -> tuple[Floats, Floats]:
    """Weights (H, 2d, 7) and intercepts (H, 7), backwards from the last step."""
    rows = [np.flatnonzero(stages.log.action == action) for action in range(N_ACTIONS)]
    x = stages.x
    weights = np.zeros((stages.log.horizon, x.shape[1], N_ACTIONS))
    intercept = np.full((stages.log.horizon, N_ACTIONS), np.nan)
    value = stages.submitted(config.min_visits, config.ridge)
    for h in range(stages.log.horizon):
        target = stages.targets(value)
        for action, own in enumerate(rows):
            if len(own) >= config.min_visits:
                fitted = Ridge(alpha=config.ridge).fit(x[own], target[own])
                weights[h, :, action], intercept[h, action] = fitted.coef_, fitted.intercept_
        value = stages.values(intercept[h] + x[stages.ahead] @ weights[h])
    return weights, intercept
