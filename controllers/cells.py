"""Abstract states: cells of alike states, and which actions were tried often enough in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeRegressor

from controllers.data import Bools, Floats, Ints
from controllers.forest import Forest
from harness_mdp.features import CLOCKS
from harness_mdp.mdp import N_ACTIONS

__all__ = ["Cells", "fit_cells", "visited_pairs"]


@dataclass(frozen=True, eq=False)
class Cells:
    """An abstraction: one tree whose leaves' value is the index of a cell."""

    forest: Forest
    n: int

    def of(self, features: npt.NDArray[np.float32]) -> Ints:
        """(n,) cell of each row."""
        cells: Ints = self.forest.value[self.forest.leaves(features)[:, 0], 0].astype(np.int64)
        return cells


def fit_cells(features: npt.NDArray[np.float32], targets: Floats, most: int, cell_steps: int) -> Cells:
    """At most `most` cells of at least `cell_steps` states in which the targets (n, k) are alike, clocks left out."""
    blind = features.copy()
    blind[:, CLOCKS] = 0.0  # a constant feature is never split on
    tree = DecisionTreeRegressor(max_leaf_nodes=most, min_samples_leaf=cell_steps, random_state=0)
    fitted = Forest.of([tree.fit(blind, targets)])
    leaf = np.flatnonzero(fitted.left == np.arange(len(fitted.left)))
    index = np.zeros((len(fitted.left), 1))
    index[leaf, 0] = np.arange(len(leaf))
    return Cells(Forest(fitted.feature, fitted.threshold, fitted.left, fitted.right, index, fitted.root), len(leaf))


def visited_pairs(pair: Ints, task: Ints, n_cells: int, min_visits: int, min_tasks: int) -> tuple[Ints, Bools]:
    """(C·7,) visits of each pair of cell and action, and whether they are enough, from enough tasks.

    Args:
        pair: (n,) cell · 7 + action of each step.
        task: (n,) index of each step's task.
        n_cells: C.
        min_visits: enough visits.
        min_tasks: enough tasks.
    """
    n_pairs = n_cells * N_ACTIONS
    visits = np.bincount(pair, minlength=n_pairs)
    tasks = np.bincount(np.unique(np.stack([pair, task]), axis=1)[0], minlength=n_pairs)
    return visits, (visits >= min_visits) & (tasks >= min_tasks)
