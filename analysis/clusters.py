"""States in a few groups that a person can read: the leaves of a small tree over the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier

from analysis.statistics import Ints
from controllers.readable_tree import Bounds, condition, leaf_bounds
from harness_mdp.errors import ConfigError, UnusableBuffer

__all__ = ["StateClusters", "state_clusters"]

Features = npt.NDArray[np.float32]

_MIN_SHARE = 0.01
"""A leaf holds at least this share of the steps."""


@dataclass(frozen=True, eq=False)
class StateClusters:
    """A partition of states by conditions on their features."""

    labels: tuple[str, ...]
    """What holds in each cluster, e.g. `has_artifact = 0, evidence_items <= 0.36`."""
    tree: DecisionTreeClassifier
    leaves: Ints
    """(k,) node of the tree that each cluster is."""

    def assign(self, features: Features) -> Ints:
        """(n,) cluster of each of n states (n, d)."""
        return np.searchsorted(self.leaves, self.tree.apply(features)).astype(np.int64)


def state_clusters(features: Features, action: Ints, names: Sequence[str], most: int = 6) -> StateClusters:
    """Splits the states where what is done differs most (Gini impurity of the action), into at most `most` clusters.

    The tree is fitted on the steps of all arms together, so that no arm's habits alone decide; it is a view, not an
    estimate, and nothing is tested on it.

    Args:
        features: (n, d) of n steps.
        action: (n,) what was done.
        names: (d,) of the features.
        most: clusters.

    Raises:
        UnusableBuffer: no steps.
        ConfigError: fewer than two clusters are asked for.
    """
    if most < 2:
        raise ConfigError(f"{most} clusters; expected at least 2")
    if len(features) == 0:
        raise UnusableBuffer("there are no steps to group; the episodes ended before their first step")
    smallest = max(1, int(_MIN_SHARE * len(features)))
    tree = DecisionTreeClassifier(max_leaf_nodes=most, min_samples_leaf=smallest, random_state=0)
    tree.fit(features, action)
    bounds = leaf_bounds(tree)
    leaves = np.array(sorted(bounds), dtype=np.int64)
    binary = set(np.flatnonzero(((features == 0) | (features == 1)).all(axis=0)).tolist())
    labels = tuple(_label(bounds[int(leaf)], names, binary) for leaf in leaves)
    return StateClusters(labels, tree, leaves)


def _label(bounds: Bounds, names: Sequence[str], binary: set[int]) -> str:
    return ", ".join(condition(names[i], *limits, binary=i in binary) for i, limits in bounds.items()) or "all states"
