"""Logged steps made ready for regressions that go backwards over the stages, over what the behaviour proposed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import Ridge

from controllers.config import Backup, LinearQConfig
from controllers.data import Floats, Ints, StepData
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
    weights: Floats
    """(k, 7) of the actions in the states `ahead`: 1 for those that may be chosen, or μ where the behaviour goes on."""
    backup: Backup
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
            weights=_weights(log, ahead, config),
            backup=config.backup,
            bounds=(min(0.0, float(log.outcome.min())), max(1.0, float(log.outcome.max()))),
        )

    def targets(self, value: Floats) -> Floats:
        """(n,) G where the episode ended, else `value` (k,) of the state that followed."""
        target = self.log.outcome.copy()
        target[self.onward] = value
        return target

    def values(self, q: Floats) -> Floats:
        """(k,) of the states `ahead`, from `q` (k, 7), NaN where unknown; the logged outcome where all are."""
        weight = np.where(np.isnan(q), 0.0, self.weights)
        total = weight.sum(axis=1)
        if self.backup is Backup.BEST:
            value = np.where(weight > 0, q, -np.inf).max(axis=1)
        else:
            value = (weight * np.nan_to_num(q)).sum(axis=1) / np.where(total > 0, total, 1.0)
        return np.where(total > 0, np.clip(value, *self.bounds), self.log.outcome[self.onward])

    def submitted(self, min_visits: int, ridge: float) -> Floats:
        """(k,) V_0: what the harness gets for submitting in the states `ahead`; nothing without an artifact."""
        rows = np.flatnonzero(self.log.action == Action.SUBMIT)
        if len(rows) < min_visits or len(self.ahead) == 0:
            return self.log.outcome[self.ahead]
        fitted = Ridge(alpha=ridge).fit(self.x[rows], self.log.outcome[rows])
        value = np.clip(fitted.predict(self.x[self.ahead]), *self.bounds)
        return np.where(self.log.features[self.ahead, HAS_ARTIFACT] > 0, value, 0.0)


def _weights(log: Transitions, at: Ints, config: LinearQConfig) -> Floats:
    if config.backup is Backup.BEHAVIOUR:
        return log.propensities[at]
    return (log.mask[at] & proposed_actions(log.propensities[at], config.excess, config.relative)).astype(np.float64)
