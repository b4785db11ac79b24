"""The controller's network as plain arrays: one hidden ReLU layer, features (d,) to one logit per action.

Numpy only: a decision, a saved file and the trainer all speak of these four arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from harness_mdp.hashing import canonical_json, generator
from harness_mdp.mdp import N_ACTIONS

__all__ = ["TENSOR_NAMES", "MLPWeights", "initial_weights"]

Float32 = npt.NDArray[np.float32]

TENSOR_NAMES = ("w1", "b1", "w2", "b2")


@dataclass(frozen=True, eq=False)
class MLPWeights:
    """logits = relu(x @ w1 + b1) @ w2 + b2, all float32.

    Raises:
        ValueError: shapes or dtypes do not fit together, or a value is not finite; says which array.
    """

    w1: Float32
    """(d, h)"""
    b1: Float32
    """(h,)"""
    w2: Float32
    """(h, 7)"""
    b2: Float32
    """(7,)"""

    def __post_init__(self) -> None:
        if self.w1.ndim != 2:
            raise ValueError(f"w1 has shape {self.w1.shape}; expected (features, hidden)")
        d, h = self.w1.shape
        expected = {"w1": (d, h), "b1": (h,), "w2": (h, N_ACTIONS), "b2": (N_ACTIONS,)}
        for name, shape in expected.items():
            array: Float32 = getattr(self, name)
            if array.shape != shape:
                raise ValueError(f"{name} has shape {array.shape}; expected {shape}")
            if array.dtype != np.float32:
                raise ValueError(f"{name} is {array.dtype}; expected float32")
            if not np.isfinite(array).all():
                bad = int(array.size - np.isfinite(array).sum())
                raise ValueError(f"{name} holds {bad} of {array.size} values that are not finite")

    @property
    def n_features(self) -> int:
        """Width of the input, d."""
        return self.w1.shape[0]

    def outputs(self, features: Float32) -> npt.NDArray[np.float64]:
        """(n, 7) float64 from (n, d), computed in float64."""
        hidden = np.maximum(features.astype(np.float64) @ self.w1.astype(np.float64) + self.b1, 0.0)
        outputs: npt.NDArray[np.float64] = hidden @ self.w2.astype(np.float64) + self.b2
        return outputs

    def tensors(self) -> dict[str, Float32]:
        """Array by name, contiguous."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in TENSOR_NAMES}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, npt.NDArray[np.generic]]) -> MLPWeights:
        """The inverse of `tensors`.

        Raises:
            ValueError: an array is missing or too many, or does not fit.
        """
        if set(tensors) != set(TENSOR_NAMES):
            raise ValueError(f"arrays are {sorted(tensors)}; expected {sorted(TENSOR_NAMES)}")
        return cls(**{name: cast("Float32", tensors[name]) for name in TENSOR_NAMES})  # checked by __post_init__

    @property
    def digest(self) -> str:
        """SHA-256 of names, shapes and little-endian values, 64 hex digits; no matter how a file lays them out."""
        content = hashlib.sha256()
        for name, array in self.tensors().items():
            content.update(canonical_json([name, list(array.shape)]).encode())
            content.update(array.astype("<f4").tobytes())
        return content.hexdigest()


def initial_weights(n_features: int, hidden: int, seed: int) -> MLPWeights:
    """Weights before training: each layer uniform in ±1/sqrt(inputs), as `torch.nn.Linear` starts.

    Drawn by numpy on the host, so that CPU and CUDA start from the same numbers.
    """
    rng = generator("controller", "initial weights", seed)

    def layer(inputs: int, outputs: int) -> tuple[Float32, Float32]:
        bound = inputs**-0.5
        weight = rng.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
        return weight, rng.uniform(-bound, bound, outputs).astype(np.float32)

    w1, b1 = layer(n_features, hidden)
    w2, b2 = layer(hidden, N_ACTIONS)
    return MLPWeights(w1, b1, w2, b2)
