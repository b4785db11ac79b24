r"""A-learning over the stages: the advantages are regressed, with the known propensities, and not the values.

With h steps left, y the outcome of a step (G if the episode ended there, else V_{h-1}(s')) and m_h(s) its mean under
the behaviour, by ridge regression on all steps,

.. math::

    y_i - m_h(s_i) = \sum_a \big( 1[a_i = a] - \mu(a|s_i) \big)\, A_h(s_i, a) + noise_i,
    \qquad A_h(s, a) = b_{h,a} + w_{h,a} \cdot x(s)

    Q_h(s, a) = m_h(s) + A_h(s, a) - \sum_{a'} \mu(a'|s)\, A_h(s, a')

    V_h(s) = \max_{a\ proposed} Q_h(s, a), \quad \text{or, for one step of improvement, } \sum_a \mu(a|s) Q_h(s, a)

b and w come from one ridge regression for all actions. The regressors have mean 0 given the state, because μ is known
and not estimated: whatever m gets wrong ends up in the noise and not in A. So m may be as plain as it is, and A may be
shrunk as hard as the rarely tried actions need; a ridge on Q would shrink what is common to all actions along with it.

A-learning is Murphy, "Optimal dynamic treatment regimes" (2003), and Robins's g-estimation (2004); for one stage and a
known propensity it is the regression of Robinson (1988) that Nie and Wager call R-learner (2021).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Ridge

from controllers.config import LinearQConfig
from controllers.data import Bools, Floats
from controllers.stages import OUTCOME_RIDGE, Stages
from harness_mdp.mdp import N_ACTIONS

__all__ = ["a_learning"]

_INTERCEPT_RIDGE = 5.0
"""Weight of b squared, in steps: an action seen a hundred times keeps its mean advantage."""


def a_learning(stages: Stages, config: LinearQConfig) -> tuple[Floats, Floats]:
    """Coefficients w (H, 2d, 7) and b (H, 7) of A_h; b is NaN where an action was tried too rarely, and A then 0."""
    log = stages.log
    visits = np.bincount(log.action, minlength=N_ACTIONS)
    regression = _Contrasts(stages, visits >= config.min_visits, config.ridge)
    x, mu = regression.x[stages.ahead], log.propensities[stages.ahead]
    coefficients = np.zeros((log.horizon, N_ACTIONS, x.shape[1]))
    value = stages.submitted(config.min_visits, OUTCOME_RIDGE)
    for h in range(log.horizon):
        target = stages.targets(value)
        mean = Ridge(alpha=OUTCOME_RIDGE).fit(stages.x, target).predict(stages.x)
        coefficients[h] = regression.fit(target - mean)
        advantage = x @ coefficients[h].T
        q = mean[stages.ahead][:, None] + advantage - (mu * advantage).sum(axis=1, keepdims=True)
        value = stages.values(np.where(regression.tried, q, np.nan))
    intercept = np.where(regression.tried, coefficients[:, :, 0], np.nan)
    return coefficients[:, :, 1:].transpose(0, 2, 1).copy(), intercept


class _Contrasts:
    """The ridge regression of any target on the centred actions times (1, x): one factorisation for all stages.

    Args:
        stages: n steps.
        tried: (7,) actions that have coefficients.
        ridge: weight of w squared, in steps.
    """

    def __init__(self, stages: Stages, tried: Bools, ridge: float) -> None:
        log = stages.log
        self.tried = tried
        self.x: Floats = np.hstack([np.ones((len(stages.x), 1)), stages.x])
        centred = -log.propensities
        centred[np.arange(len(centred)), log.action] += 1.0
        self._centred: Floats = np.where(tried, centred, 0.0)
        p = self.x.shape[1]
        gram: npt.NDArray[np.float64] = np.empty((N_ACTIONS, p, N_ACTIONS, p))
        for a in range(N_ACTIONS):
            for b in range(a, N_ACTIONS):
                block = self.x.T @ (self.x * (self._centred[:, a] * self._centred[:, b])[:, None])
                gram[a, :, b], gram[b, :, a] = block, block.T
        penalty = np.tile(np.append(_INTERCEPT_RIDGE, np.full(p - 1, max(ridge, 1e-9))), N_ACTIONS)
        self._factor = cho_factor(gram.reshape(N_ACTIONS * p, N_ACTIONS * p) + np.diag(penalty))

    def fit(self, target: Floats) -> Floats:
        """(7, 1 + 2d) coefficients for a target (n,)."""
        right = (self._centred.T @ (self.x * target[:, None])).ravel()
        return cho_solve(self._factor, right).reshape(N_ACTIONS, -1)
