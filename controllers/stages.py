"""Logged steps made ready for regressions that go backwards over the stages, over what the behaviour proposed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import Ridge

from controllers.config import LinearQConfig
from controllers.data import Bools, Floats, Ints, StepData
from controllers.linear_q import proposed_actions, regressors
from controllers.transitions import Transitions, transitions
from harness_mdp.features import HAS_ARTIFACT
from harness_mdp.mdp import Action

__all__ = ["OUTCOME_RIDGE", "Stages"]

OUTCOME_RIDGE = 20.0
"""Of regressions of an outcome on the state, in steps: there are thousands of rows, and little to shrink."""


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """n logged steps and the k of them that another step followed."""

    log: Transitions
    mean: Floats
    """(d,) of the features."""
    scale: Floats
    """(d,) their standard deviations; 1 for a constant."""
    x: Floats
    """(n, 2d) see `regressors`."""
    onward: Ints
    """(k,) rows of steps that were followed ..."""
    ahead: Ints
    """(k,) ... and the rows of what followed."""
    proposed: Bools
    """(k, 7) what may be chosen in the states `ahead`."""
    bounds: tuple[float, float]
    """Of values: [0, 1], or the range of the returns where that is wider."""

    @classmethod
    def of(cls, data: StepData, config: LinearQConfig) -> Stages:
        """The stages of `data`.

        Raises:
            UnusableBuffer: see `transitions`.
        """
        log = transitions(data)
        deviation = log.features.std(axis=0, dtype=np.float64)
        mean, scale = log.features.mean(axis=0, dtype=np.float64), np.where(deviation > 1e-6, deviation, 1.0)
        onward = np.flatnonzero(log.following >= 0)
        ahead = log.following[onward]
        return cls(
            log=log,
            mean=mean,
            scale=scale,
            x=regressors(log.features, mean, scale),
            onward=onward,
            ahead=ahead,
            proposed=log.mask[ahead] & proposed_actions(log.propensities[ahead], config.excess, config.relative),
            bounds=(min(0.0, float(log.outcome.min())), max(1.0, float(log.outcome.max()))),
        )

    def targets(self, value: Floats) -> Floats:
        """(n,) G where the episode ended, else `value` (k,) of the state that followed."""
        target = self.log.outcome.copy()
        target[self.onward] = value
        return target

    def best(self, q: Floats) -> Floats:
        """(k,) value of the best proposed action of `q` (k, 7); the logged outcome where none is known."""
        best = np.where(self.proposed & ~np.isnan(q), q, -np.inf).max(axis=1)
        return np.where(np.isfinite(best), np.clip(best, *self.bounds), self.log.outcome[self.onward])

    def submitted(self, min_visits: int, ridge: float) -> Floats:
        """(k,) V_0: what the harness gets for submitting in the states `ahead`; nothing without an artifact."""
        rows = np.flatnonzero(self.log.action == Action.SUBMIT)
        if len(rows) < min_visits or len(self.ahead) == 0:
            return self.log.outcome[self.ahead]
        fitted = Ridge(alpha=ridge).fit(self.x[rows], self.log.outcome[rows])
        value = np.clip(fitted.predict(self.x[self.ahead]), *self.bounds)
        return np.where(self.log.features[self.ahead, HAS_ARTIFACT] > 0, value, 0.0)
