"""Folds of tasks: what is fitted for a fold never saw its tasks."""

from __future__ import annotations

import numpy as np

from controllers.data import Ints
from harness_mdp.hashing import generator

__all__ = ["task_folds"]


def task_folds(task: Ints, folds: int) -> Ints:
    """(m,) fold of each episode, 0 .. folds - 1; all episodes of a task share it, and the folds are equally large.

    The same tasks are dealt the same way whatever is learned from them, so learners share their folds.

    Args:
        task: (m,) index of each episode's task.
        folds: at least 1; more than there are tasks leaves some empty.
    """
    tasks = np.unique(task)
    fold = np.empty(int(tasks.max(initial=-1)) + 1, dtype=np.int64)
    fold[generator("task folds", len(tasks)).permutation(tasks)] = np.arange(len(tasks)) % folds
    dealt: Ints = fold[task]
    return dealt
