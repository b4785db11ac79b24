"""A learned controller as a policy: masked decisions from loaded weights, with numpy alone.

Everything is computed in float64 from float32 weights and features, so that one decision, the same decision in
a batch, and a replay on another host agree to about 1e-15, far below anything that a draw could notice.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from controllers.config import DecisionRule
from controllers.network import MLPWeights
from harness_mdp.hashing import digest
from harness_mdp.mdp import N_ACTIONS, DecisionBatch, DecisionPoint, Mask, Probs

__all__ = ["ControllerPolicy"]

_NEVER = -math.inf
_ZERO = np.zeros(())


class ControllerPolicy:
    """π(·|s), a softmax over the legal actions, or its mode.

    Args:
        weights: the network.
        decision: `sample` gives π itself, `greedy` all probability to the most probable legal action (the
            lowest index among equals).
        name: for tables.
    """

    kind = "network"

    def __init__(
        self, weights: MLPWeights, decision: DecisionRule = DecisionRule.SAMPLE, name: str = "controller"
    ) -> None:
        self.name = name
        self.weights = weights
        self.decision = DecisionRule(decision)
        self._fingerprint = digest(["controller", 1, weights.digest, self.decision.value], 16)
        self._greedy = self.decision is DecisionRule.GREEDY
        self._w1 = weights.w1.astype(np.float64)
        self._b1 = weights.b1.astype(np.float64)
        self._w2 = weights.w2.astype(np.float64)
        self._b2 = weights.b2.astype(np.float64)

    @property
    def fingerprint(self) -> str:
        """Weights and decision rule."""
        return self._fingerprint

    @property
    def n_features(self) -> int:
        """Features that it reads."""
        return self.weights.n_features

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """The network's arrays."""
        return dict(self.weights.tensors())

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,) float64, exactly 0 on illegal actions.

        Raises:
            ValueError: no action is legal, the features do not fit, or they are not finite.
        """
        # The hot path. `dot` with arrays spares the checks of `@`; seven numbers are faster as Python floats than
        # as one numpy call for each operation.
        hidden = self._checked(point.features).dot(self._w1)
        hidden += self._b1
        np.maximum(hidden, _ZERO, out=hidden)
        logits = hidden.dot(self._w2)
        logits += self._b2
        legal = zip(logits.tolist(), point.mask.tolist(), strict=True)
        masked = [logit if allowed else _NEVER for logit, allowed in legal]
        best = max(masked)
        if not _NEVER < best < math.inf:
            raise _no_decision(point.features[None], point.mask[None])
        if self._greedy:
            mode = masked.index(best)
            return np.array([float(action == mode) for action in range(N_ACTIONS)])
        odds = [math.exp(logit - best) for logit in masked]
        total = sum(odds)
        return np.array([odd / total for odd in odds])

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7) float64, the rows that n calls of `probs` give.

        Raises:
            ValueError: as `probs`, with the row.
        """
        hidden = np.maximum(self._checked(batch.features) @ self._w1 + self._b1, 0.0)
        logits = np.where(batch.mask, hidden @ self._w2 + self._b2, _NEVER)
        if len(logits) == 0:
            return np.zeros((0, N_ACTIONS))
        best = logits.max(axis=1, keepdims=True)
        if not np.isfinite(best).all():
            raise _no_decision(batch.features, batch.mask)
        if self._greedy:
            return np.eye(N_ACTIONS)[logits.argmax(axis=1)]
        odds = np.exp(logits - best)
        probs: Probs = odds / odds.sum(axis=1, keepdims=True)
        return probs

    def _checked(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        if features.shape[-1] != len(self._w1):
            raise ValueError(
                f"controller {self.name} reads {len(self._w1)} features; the state has {features.shape[-1]}"
            )
        return features.astype(np.float64)


def _no_decision(features: npt.NDArray[np.float32], mask: Mask) -> ValueError:
    """Why no probabilities could be computed, for the first row to blame."""
    illegal = ~mask.any(axis=1)
    if illegal.any():
        return ValueError(f"no action is legal in row {int(illegal.argmax())} of {len(mask)}")
    row = int((~np.isfinite(features).all(axis=1)).argmax())
    return ValueError(f"features of row {row} of {len(mask)} are not finite: {features[row].tolist()}")
