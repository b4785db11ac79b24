"""Q or advantages that are linear in the features, an action and stage, over the actions the behaviour proposed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from controllers.data import Bools, Floats
from controllers.forest import Forest
from controllers.planned_q import remaining_steps
from controllers.q_function import UNSUPPORTED
from harness_mdp.features import CLOCKS, HAS_ARTIFACT, STEPS_LEFT
from harness_mdp.mdp import N_ACTIONS

__all__ = ["LinearQ", "proposed_actions", "regressors"]

_FAR = 4.0
"""Standard deviations beyond which a feature is not followed: a line means nothing there."""
_LEAST = 1e-3
"""A predicted propensity below this is none."""


def regressors(features: npt.NDArray[np.float32], mean: Floats, scale: Floats) -> Floats:
    """(n, 2d) standardised features, and again where there is an artifact; clocks are 0, for the stage is the clock."""
    z = np.clip((features.astype(np.float64) - mean) / scale, -_FAR, _FAR)
    z[:, CLOCKS] = 0.0
    return np.hstack([z, z * (features[:, [HAS_ARTIFACT]] > 0)])


def proposed_actions(propensities: Floats, excess: float, relative: float) -> Bools:
    """(n, 7) the actions that the behaviour did not merely explore.

    Under a mixture of scripts plus a little uniform, an action that no script proposes has the least probability of
    the state; so an action counts as proposed where it has `excess` more than the least of the positive ones and at
    least `relative` of the greatest. The most probable action always does.

    Args:
        propensities: (n, 7) μ(·|s), 0 where illegal.
        excess: in probability.
        relative: share of the greatest.
    """
    floor = np.where(propensities > _LEAST, propensities, np.inf).min(axis=1, keepdims=True)
    top = propensities.max(axis=1, keepdims=True)
    proposed: Bools = ((propensities >= floor + excess) & (propensities >= relative * top)) | (propensities >= top)
    return proposed & (propensities > _LEAST)


@dataclass(frozen=True, eq=False)
class LinearQ:
    """Q_h(s, a) = b_{h,a} + w_{h,a} · x(s) where the behaviour proposed a, unsupported elsewhere.

    By A-learning it is Q less something that depends on the state alone: the actions of a state can be compared.

    At decision time μ(·|s) is predicted by a tree: μ is a function of the state, and known on every logged step.

    Raises:
        ValueError: the arrays do not fit together.
    """

    kind: ClassVar[str] = "linear_q"

    mean: Floats
    """(d,) of the features."""
    scale: Floats
    """(d,) above 0."""
    weights: Floats
    """(H, 2d, 7) with h = 1..H steps left; see `regressors`."""
    intercept: Floats
    """(H, 7); NaN where the action was never tried."""
    behaviour: Forest
    """One tree that predicts the 7 propensities."""
    excess: float
    """See `proposed_actions`."""
    relative: float

    def __post_init__(self) -> None:
        d = len(self.mean)
        h = len(self.weights)
        if self.scale.shape != (d,) or not (self.scale > 0).all() or not np.isfinite(self.mean).all():
            raise ValueError("mean and scale are not finite numbers, one a feature, scale above 0")
        if self.weights.shape != (h, 2 * d, N_ACTIONS) or self.intercept.shape != (h, N_ACTIONS) or h == 0:
            raise ValueError(
                f"weights have shape {self.weights.shape} and intercept {self.intercept.shape}; "
                f"expected (H, {2 * d}, {N_ACTIONS}) and (H, {N_ACTIONS})"
            )
        if not np.isfinite(self.weights).all() or np.isinf(self.intercept).any():
            raise ValueError("weights hold values that are not finite, or intercept holds infinite ones")
        if self.behaviour.value.shape[1] != N_ACTIONS or self.behaviour.n_features > d:
            raise ValueError(f"the tree of the behaviour does not predict {N_ACTIONS} actions from {d} features")

    @property
    def n_features(self) -> int:
        """d, and at least what the clock needs."""
        return max(len(self.mean), STEPS_LEFT + 1)

    def values(self, features: npt.NDArray[np.float32]) -> Floats:
        """(n, 7); `UNSUPPORTED` where the behaviour did not propose the action, or never tried it."""
        own = features[:, : len(self.mean)]
        stage = remaining_steps(own, len(self.weights)) - 1
        x = regressors(own, self.mean, self.scale)
        found = np.empty((len(features), N_ACTIONS))
        for h in np.unique(stage):
            at = stage == h
            found[at] = self.intercept[h] + x[at] @ self.weights[h]
        proposed = proposed_actions(self.behaviour.predict(own), self.excess, self.relative)
        return np.where(proposed & ~np.isnan(found), found, UNSUPPORTED)

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything it is made of, by name."""
        return {
            **{f"behaviour.{name}": array for name, array in self.behaviour.tensors().items()},
            "mean": self.mean,
            "scale": self.scale,
            "weights": self.weights,
            "intercept": self.intercept,
            "proposed": np.array([self.excess, self.relative]),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, npt.NDArray[np.generic]]) -> LinearQ:
        """The inverse of `tensors`.

        Raises:
            ValueError, KeyError: an array is missing, or does not fit.
        """
        prefix = "behaviour."
        tree = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
        excess, relative = (float(number) for number in tensors["proposed"])
        return cls(
            mean=tensors["mean"].astype(np.float64),
            scale=tensors["scale"].astype(np.float64),
            weights=tensors["weights"].astype(np.float64),
            intercept=tensors["intercept"].astype(np.float64),
            behaviour=Forest.from_tensors(tree),
            excess=excess,
            relative=relative,
        )
