"""An `MDPDataset` that draws its minibatches as arrays; loads d3rlpy, so import it where it is used.

d3rlpy 2.8.1 makes a minibatch from one Python object a step, which takes two thirds of the time of training small
networks. The batches are the same, from the same draws of the same generator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from d3rlpy.dataset import MDPDataset, TransitionMiniBatch

__all__ = ["BatchedDataset"]


class BatchedDataset(MDPDataset):
    """For learners that look at single transitions and not at returns to go: all discrete ones of d3rlpy.

    Takes what `MDPDataset` takes, without timeouts. Steps cannot be added to it.
    """

    def __init__(self, **arrays: Any) -> None:  # the many of MDPDataset, passed on as they are
        super().__init__(**arrays)
        observations, actions = (np.asarray(arrays[name], dtype=np.float32) for name in ("observations", "actions"))
        going = 1.0 - np.asarray(arrays["terminals"], dtype=np.float32).reshape(-1, 1)
        self._columns = {
            "observations": observations,
            "actions": actions,
            "rewards": np.asarray(arrays["rewards"], dtype=np.float32),
            # After the last step of an episode come zeros, as d3rlpy has it.
            "next_observations": np.roll(observations, -1, axis=0) * going,
            "next_actions": np.roll(actions, -1, axis=0) * going,
            "terminals": 1.0 - going,
            "intervals": np.ones_like(going),
        }

    def sample_transition_batch(self, batch_size: int) -> TransitionMiniBatch:
        """`batch_size` steps, drawn with replacement from numpy's global generator, as d3rlpy does."""
        rows = np.random.randint(self.transition_count, size=batch_size)  # noqa: NPY002
        return TransitionMiniBatch(**{name: column[rows] for name, column in self._columns.items()}, transitions=())
