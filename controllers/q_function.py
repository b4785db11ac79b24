"""What a learner believes an action is worth, and the policy that acts on it.

A Q function maps features to one value per action, -inf where the data say too little to tell. Each can be saved
as arrays and is evaluated with numpy alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from controllers.data import Bools, Floats, Ints
from harness_mdp.hashing import digest
from harness_mdp.mdp import N_ACTIONS, DecisionBatch, DecisionPoint, Probs

__all__ = ["UNSUPPORTED", "QFunction", "ValuePolicy", "greedy_actions", "tensors_digest"]

UNSUPPORTED = -math.inf
"""Value of an action that the data say too little about."""

Tensors = Mapping[str, npt.NDArray[np.generic]]


class QFunction(Protocol):
    """Values of the seven actions in a state."""

    kind: ClassVar[str]
    """Name under which a saved controller finds its class; see `kinds`."""

    @property
    def n_features(self) -> int:
        """At least so many features are read."""
        ...

    def values(self, features: npt.NDArray[np.float32]) -> Floats:
        """(n, 7) float64 from (n, d), in units of the return; `UNSUPPORTED` where the data say too little."""
        ...

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything it is made of, by name."""
        ...


def greedy_actions(values: Floats, mask: Bools, base_action: Ints) -> Ints:
    """(n,) the best legal action, the lowest index among equals; the base action where no legal one is supported."""
    allowed = np.where(mask, values, UNSUPPORTED)
    best = allowed.argmax(axis=1)
    supported = allowed[np.arange(len(best)), best] > UNSUPPORTED
    chosen: Ints = np.where(supported, best, base_action).astype(np.int64)
    return chosen


class ValuePolicy:
    """Greedy on a Q function: the best supported legal action, or base where none is supported.

    Args:
        q: the Q function.
        name: for tables.
    """

    def __init__(self, q: QFunction, name: str = "values") -> None:
        self.name = name
        self.q = q
        self.kind = q.kind
        self._fingerprint = digest(["value policy", 1, q.kind, tensors_digest(q.tensors())], 16)

    @property
    def fingerprint(self) -> str:
        """The Q function's arrays."""
        return self._fingerprint

    @property
    def n_features(self) -> int:
        """At least so many features are read."""
        return self.q.n_features

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """The Q function's arrays."""
        return self.q.tensors()

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,) all on one action; raises as `probs_batch`."""
        base = np.array([int(point.base_action)])
        return self.probs_batch(DecisionBatch(point.features[None], point.mask[None], base))[0]

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7) all on one action each.

        Raises:
            ValueError: a row has no legal action, or the features do not fit.
        """
        expect_states(self.name, self.q.n_features, batch)
        if len(batch) == 0:
            return np.zeros((0, N_ACTIONS))
        return np.eye(N_ACTIONS)[greedy_actions(self.q.values(batch.features), batch.mask, batch.base_action)]


def expect_states(name: str, n_features: int, batch: DecisionBatch) -> None:
    """Refuses states that a controller cannot decide in.

    Raises:
        ValueError: too few features, features that are not finite, or no legal action, with the row.
    """
    if batch.features.shape[-1] < n_features:
        raise ValueError(f"controller {name} reads {n_features} features; the state has {batch.features.shape[-1]}")
    illegal = ~batch.mask.any(axis=1)
    if illegal.any():
        raise ValueError(f"no action is legal in row {int(illegal.argmax())} of {len(batch)}")
    odd = ~np.isfinite(batch.features).all(axis=1)
    if odd.any():
        row = int(odd.argmax())
        raise ValueError(f"features of row {row} of {len(batch)} are not finite: {batch.features[row].tolist()}")


def tensors_digest(tensors: Tensors) -> str:
    """SHA-256 over names, shapes, dtypes and little-endian values, 64 hex digits."""
    import hashlib

    content = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        little = array.astype(array.dtype.newbyteorder("<"))
        content.update(f"{name}|{little.dtype.str}|{little.shape}|".encode())
        content.update(little.tobytes())
    return content.hexdigest()
