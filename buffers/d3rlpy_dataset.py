"""A buffer as a d3rlpy dataset (DESIGN section 8, the traps of d3rlpy 2.8.1)."""

from __future__ import annotations

import contextlib
import io
import logging
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from buffers.tensors import TrainingArrays
from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import N_ACTIONS, Mask

if TYPE_CHECKING:
    from d3rlpy.dataset import MDPDataset

__all__ = ["quiet_d3rlpy", "to_d3rlpy"]


def quiet_d3rlpy() -> None:
    """Imports d3rlpy without the Gym notice, and lets it log warnings only. Call it before any use of d3rlpy."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        import_module("d3rlpy")  # configures structlog when imported, so ours comes after
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


def to_d3rlpy(arrays: TrainingArrays, returns: npt.NDArray[np.float64] | None = None) -> tuple[MDPDataset, Mask]:
    """`(dataset, masks)`: one d3rlpy episode per episode, its return as the reward of the last step.

    Every episode ends with a terminal flag, forced submissions too, because d3rlpy drops trailing steps without one
    and the return is final in either case. `action_size` is 7 whatever actions occur. An `MDPDataset` has no field
    for legal masks, so they come beside it: (n, 7) bool, row i for step i of the dataset in order.

    Args:
        arrays: of one selection of the buffer.
        returns: (m,) to use instead of the rubric's, e.g. quality minus λ times cost.

    Raises:
        UnusableBuffer: an episode without steps, which a d3rlpy dataset cannot hold.
        AssertionError: d3rlpy kept fewer steps than it was given.
    """
    quiet_d3rlpy()
    from d3rlpy.constants import ActionSpace
    from d3rlpy.dataset import MDPDataset

    empty = np.flatnonzero(arrays.lengths == 0)
    if len(empty):
        raise UnusableBuffer(
            f"{len(empty)} episodes have no step (first: {arrays.episode_ids[empty[0]]}); d3rlpy cannot hold them. "
            "Leave them out with episode_id=..."
        )
    values = arrays.returns if returns is None else returns
    last = np.cumsum(arrays.lengths) - 1
    rewards = np.zeros((arrays.n_steps, 1), dtype=np.float32)
    rewards[last, 0] = values
    terminals = np.zeros(arrays.n_steps, dtype=np.float32)
    terminals[last] = 1.0
    dataset = MDPDataset(
        observations=arrays.features,
        actions=arrays.action[:, None],
        rewards=rewards,
        terminals=terminals,
        action_space=ActionSpace.DISCRETE,
        action_size=N_ACTIONS,
    )
    kept = sum(len(episode.actions) for episode in dataset.episodes)
    if kept != arrays.n_steps or len(dataset.episodes) != arrays.n_episodes:
        raise AssertionError(
            f"d3rlpy kept {kept} of {arrays.n_steps} steps and {len(dataset.episodes)} of {arrays.n_episodes} episodes"
        )
    return dataset, arrays.mask
