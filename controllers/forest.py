"""Regression trees as plain arrays: fitted by scikit-learn, then evaluated, saved and loaded with numpy alone.

A tree is also an abstraction: its leaves are the cells of an abstract state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from sklearn.tree import BaseDecisionTree

__all__ = ["Forest"]

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]

_ARRAYS = ("feature", "threshold", "left", "right", "value", "root")


@dataclass(frozen=True, eq=False)
class Forest:
    """K binary trees over d features; a node sends x to `left` where x[feature] <= threshold.

    All trees share the node arrays (N nodes); a leaf has `left` = `right` = itself.

    Raises:
        ValueError: the arrays do not describe trees; says which and why.
    """

    feature: Int32
    """(N,) index of the feature a node splits on; 0 in a leaf."""
    threshold: Float64
    """(N,)"""
    left: Int32
    """(N,)"""
    right: Int32
    """(N,)"""
    value: Float64
    """(N, k) what a leaf predicts."""
    root: Int32
    """(K,) node where each tree begins."""

    def __post_init__(self) -> None:
        n = len(self.feature)
        for name in ("threshold", "left", "right"):
            if getattr(self, name).shape != (n,):
                raise ValueError(f"{name} has shape {getattr(self, name).shape}; expected ({n},)")
        if self.value.ndim != 2 or len(self.value) != n or not np.isfinite(self.value).all():
            raise ValueError(f"value has shape {self.value.shape}; expected ({n}, outputs) of finite numbers")
        if not np.isfinite(self.threshold).all():
            raise ValueError("threshold holds values that are not finite")
        own = np.arange(n)
        inner = self.left != own
        ahead = (self.left > own) & (self.right > own) & (self.left < n) & (self.right < n)
        if not (ahead | ~inner).all() or not (self.right == own)[~inner].all():
            raise ValueError("left and right are no trees: children come after their node, leaves point at themselves")
        if self.root.ndim != 1 or not len(self.root) or self.root.min() < 0 or self.root.max() >= n:
            raise ValueError(f"root holds nodes that are not there; expected indices below {n}")
        if n and self.feature.min() < 0:
            raise ValueError("feature holds a negative index")

    @property
    def n_trees(self) -> int:
        """K"""
        return len(self.root)

    @property
    def n_features(self) -> int:
        """At least so many features are read."""
        return int(self.feature.max()) + 1

    def leaves(self, features: Float32) -> Int32:
        """(n, K) the leaf node of each row in each tree; `features` is (n, d) float32."""
        node = np.broadcast_to(self.root, (len(features), self.n_trees)).copy()
        rows = np.arange(len(features))[:, None]
        while True:
            goes_left = features[rows, self.feature[node]] <= self.threshold[node]
            following = np.where(goes_left, self.left[node], self.right[node])
            if (following == node).all():
                return node
            node = following

    def predict(self, features: Float32) -> Float64:
        """(n, k) mean over the trees."""
        mean: Float64 = self.value[self.leaves(features)].mean(axis=1)
        return mean

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """Array by name, contiguous."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in _ARRAYS}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, npt.NDArray[np.generic]]) -> Forest:
        """The inverse of `tensors`.

        Raises:
            ValueError: an array is missing, or does not fit.
        """
        missing = [name for name in _ARRAYS if name not in tensors]
        if missing:
            raise ValueError(f"arrays {missing} of a forest are missing")
        return cls(
            feature=tensors["feature"].astype(np.int32),
            threshold=tensors["threshold"].astype(np.float64),
            left=tensors["left"].astype(np.int32),
            right=tensors["right"].astype(np.int32),
            value=tensors["value"].astype(np.float64),
            root=tensors["root"].astype(np.int32),
        )

    @classmethod
    def join(cls, forests: Sequence[Forest]) -> Forest:
        """All trees of `forests`, in order."""
        offsets = np.cumsum([0, *(len(forest.feature) for forest in forests)])
        arrays: dict[str, npt.NDArray[np.generic]] = {}
        for name in _ARRAYS:
            shift = offsets if name in ("left", "right", "root") else np.zeros(len(offsets), dtype=np.int64)
            arrays[name] = np.concatenate(
                [getattr(forest, name) + start for forest, start in zip(forests, shift[:-1], strict=True)]
            )
        return cls.from_tensors(arrays)

    @classmethod
    def of(cls, trees: Sequence[BaseDecisionTree]) -> Forest:
        """From fitted scikit-learn trees, regressors with any number of outputs."""
        parts: dict[str, list[npt.NDArray[np.generic]]] = {name: [] for name in _ARRAYS}
        offset = 0
        for tree in trees:
            inner = tree.tree_
            n = inner.node_count
            leaf = inner.children_left < 0
            own = np.arange(n)
            parts["feature"].append(np.where(leaf, 0, inner.feature).astype(np.int32))
            parts["threshold"].append(np.where(leaf, 0.0, inner.threshold))
            parts["left"].append((np.where(leaf, own, inner.children_left) + offset).astype(np.int32))
            parts["right"].append((np.where(leaf, own, inner.children_right) + offset).astype(np.int32))
            parts["value"].append(inner.value[:, :, 0].astype(np.float64))
            parts["root"].append(np.array([offset], dtype=np.int32))
            offset += n
        return cls.from_tensors({name: np.concatenate(arrays) for name, arrays in parts.items()})
