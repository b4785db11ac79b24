"""Q by regression forests on (state, action), within the support that the data give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from controllers.data import Bools, Floats
from controllers.forest import Forest
from controllers.q_function import UNSUPPORTED
from controllers.transitions import one_hot
from harness_mdp.mdp import N_ACTIONS

__all__ = ["ForestQ"]


@dataclass(frozen=True, eq=False)
class ForestQ:
    """Mean over bags of forests minus `z` standard deviations between them; unsupported where the cell lacks data.

    Raises:
        ValueError: the arrays do not fit together.
    """

    kind: ClassVar[str] = "forest_q"

    forest: Forest
    """B·T trees on d features and the action one-hot (d + 7 inputs); bags one after the other."""
    bags: int
    """B"""
    cells: Forest
    """One tree on the features; a leaf's value is the index of its cell."""
    supported: Bools
    """(C, 7)"""
    n_features: int
    """d"""
    z: float = 0.0

    def __post_init__(self) -> None:
        if self.bags < 1 or self.forest.n_trees % self.bags:
            raise ValueError(f"{self.forest.n_trees} trees in {self.bags} bags; expected as many in each")
        if self.forest.n_features > self.n_features + N_ACTIONS or self.cells.n_features > self.n_features:
            raise ValueError(f"the trees read more than {self.n_features} features")
        if self.supported.ndim != 2 or self.supported.shape[1] != N_ACTIONS:
            raise ValueError(f"supported has shape {self.supported.shape}; expected (cells, {N_ACTIONS})")
        if self.cells.value.min() < 0 or self.cells.value.max() >= len(self.supported):
            raise ValueError(f"cells go up to {self.cells.value.max():.0f}; supported has {len(self.supported)}")

    def means(self, features: npt.NDArray[np.float32]) -> Floats:
        """(B, n, 7) value by bag, whatever the support."""
        n = len(features)
        found = np.empty((self.bags, n, N_ACTIONS))
        for action in range(N_ACTIONS):
            leaves = self.forest.leaves(np.hstack([features, one_hot(np.full(n, action))]))
            values = self.forest.value[leaves, 0]  # (n, B·T)
            found[:, :, action] = values.reshape(n, self.bags, -1).mean(axis=2).T
        return found

    def support(self, features: npt.NDArray[np.float32]) -> Bools:
        """(n, 7)"""
        cell = self.cells.value[self.cells.leaves(features)[:, 0], 0].astype(np.int64)
        return self.supported[cell]

    def values(self, features: npt.NDArray[np.float32]) -> Floats:
        """(n, 7)"""
        means = self.means(features)
        lowered = means.mean(axis=0) - self.z * means.std(axis=0)
        return np.where(self.support(features), lowered, UNSUPPORTED)

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything it is made of, by name."""
        return {
            **{f"forest.{name}": array for name, array in self.forest.tensors().items()},
            **{f"cells.{name}": array for name, array in self.cells.tensors().items()},
            "supported": self.supported,
            "bags": np.array([self.bags]),
            "n_features": np.array([self.n_features]),
            "z": np.array([self.z]),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, npt.NDArray[np.generic]]) -> ForestQ:
        """The inverse of `tensors`.

        Raises:
            ValueError, KeyError: an array is missing, or does not fit.
        """

        def part(prefix: str) -> Forest:
            return Forest.from_tensors(
                {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
            )

        return cls(
            forest=part("forest."),
            bags=int(tensors["bags"][0]),
            cells=part("cells."),
            supported=tensors["supported"].astype(np.bool_),
            n_features=int(tensors["n_features"][0]),
            z=float(tensors["z"][0]),
        )
