"""Q by planning on abstract states: tables that can be read, one for each member of an ensemble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from controllers.data import Floats, Ints
from controllers.forest import Forest
from controllers.q_function import UNSUPPORTED
from harness_mdp.features import STEPS_LEFT
from harness_mdp.mdp import N_ACTIONS

__all__ = ["PlannedQ", "remaining_steps"]


def remaining_steps(features: npt.NDArray[np.float32], horizon: int) -> Ints:
    """(n,) steps left, this one included, 1..H; a longer or shorter episode is read as its share of H."""
    steps: Ints = np.clip(np.rint(features[:, STEPS_LEFT] * np.float32(horizon)).astype(np.int64), 1, horizon)
    return steps


@dataclass(frozen=True, eq=False)
class PlannedQ:
    """Mean of K planned tables, minus `spread_penalty` standard deviations between them.

    `Q(s, a) = mean_k Q_k(h, c_k(s), a) - spread_penalty · sd_k Q_k(h, c_k(s), a)` with c_k the cell of s in the k-th
    abstraction and h the remaining steps, over the members that have data for the pair; unsupported where fewer
    than half of them have.

    Raises:
        ValueError: the arrays do not fit together.
    """

    kind: ClassVar[str] = "planned"

    cells: Forest
    """K trees; a leaf's value is the index of its cell in the tree, below C."""
    tables: Floats
    """(K, H, C, 7) value with h = 1..H steps left; NaN where the pair is unsupported."""
    spread_penalty: float = 0.0
    _index: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = self.cells.n_trees
        if self.tables.ndim != 4 or self.tables.shape[0] != k or self.tables.shape[3] != N_ACTIONS:
            raise ValueError(f"tables have shape {self.tables.shape}; expected ({k}, H, cells, {N_ACTIONS})")
        index = self.cells.value[:, 0].astype(np.int64)
        if index.min() < 0 or index.max() >= self.tables.shape[2]:
            raise ValueError(f"cells go up to {index.max()}; the tables have {self.tables.shape[2]}")
        if np.isinf(self.tables).any() or not np.isfinite(self.spread_penalty):
            raise ValueError("tables hold infinite values, or the spread penalty is not finite")
        object.__setattr__(self, "_index", index)

    @property
    def horizon(self) -> int:
        """H"""
        return self.tables.shape[1]

    @property
    def n_features(self) -> int:
        """At least so many features are read."""
        return max(self.cells.n_features, STEPS_LEFT + 1)

    def member_values(self, features: npt.NDArray[np.float32]) -> Floats:
        """(n, K, 7) value by member, NaN where it has too little data."""
        stage = remaining_steps(features, self.horizon) - 1
        cell = self._index[self.cells.leaves(features)]
        values: Floats = self.tables[np.arange(self.cells.n_trees)[None], stage[:, None], cell]
        return values

    def values(self, features: npt.NDArray[np.float32]) -> Floats:
        """(n, 7); `UNSUPPORTED` where fewer than half of the members have data."""
        members = self.member_values(features)
        known = ~np.isnan(members)
        count = known.sum(axis=1)
        filled = np.where(known, members, 0.0)
        mean = filled.sum(axis=1) / np.maximum(count, 1)
        if self.spread_penalty:
            deviation = np.where(known, filled - mean[:, None], 0.0)
            mean = mean - self.spread_penalty * np.sqrt((deviation**2).sum(axis=1) / np.maximum(count, 1))
        supported = 2 * count >= self.cells.n_trees
        return np.where(supported & (count > 0), mean, UNSUPPORTED)

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything it is made of, by name."""
        forest = {f"cells.{name}": array for name, array in self.cells.tensors().items()}
        return {**forest, "tables": self.tables, "spread_penalty": np.array([self.spread_penalty])}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, npt.NDArray[np.generic]]) -> PlannedQ:
        """The inverse of `tensors`.

        Raises:
            ValueError, KeyError: an array is missing, or does not fit.
        """
        own = {name.removeprefix("cells."): array for name, array in tensors.items() if name.startswith("cells.")}
        return cls(Forest.from_tensors(own), tensors["tables"].astype(np.float64), float(tensors["spread_penalty"][0]))
