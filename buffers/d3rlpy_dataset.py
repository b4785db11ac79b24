"""A buffer as a d3rlpy dataset (DESIGN section 8, the traps of d3rlpy 2.8.1)."""

from __future__ import annotations

import contextlib
import io
import logging
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from buffers.tensors import TrainingArrays
from harness_mdp.errors import InputError, UnusableBuffer
from harness_mdp.mdp import N_ACTIONS, Mask

if TYPE_CHECKING:
    from d3rlpy.dataset import MDPDataset, ReplayBuffer

__all__ = ["load_d3rlpy", "mdp_dataset", "quiet_d3rlpy", "to_d3rlpy"]


def quiet_d3rlpy() -> None:
    """Imports d3rlpy without the Gym notice, and lets it log warnings only. Call it before any use of d3rlpy."""
    import torch

    precision = torch.get_float32_matmul_precision()
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        import_module("d3rlpy")  # configures structlog when imported, so ours comes after
    if torch.get_float32_matmul_precision() != precision:
        torch.set_float32_matmul_precision(precision)  # where there is CUDA, the import lowers it for everybody
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


def to_d3rlpy(arrays: TrainingArrays, returns: npt.NDArray[np.float64] | None = None) -> tuple[MDPDataset, Mask]:
    """`(dataset, masks)`: one d3rlpy episode per episode, its return as the reward of the last step.

    An `MDPDataset` has no field for legal masks, so they come beside it: (n, 7) bool, row i for step i of the dataset
    in order. See `mdp_dataset` for the rest, and `load_d3rlpy` for reading what `dataset.dump` wrote.

    Args:
        arrays: of one selection of the buffer.
        returns: (m,) to use instead of the rubric's, e.g. quality minus λ times cost.

    Raises:
        UnusableBuffer: an episode without steps, which a d3rlpy dataset cannot hold.
        AssertionError: d3rlpy kept fewer steps than it was given.
    """
    empty = np.flatnonzero(arrays.lengths == 0)
    if len(empty):
        raise UnusableBuffer(
            f"{len(empty)} episodes have no step (first: {arrays.episode_ids[empty[0]]}); d3rlpy cannot hold them. "
            "Leave them out with episode_id=..."
        )
    values = arrays.returns if returns is None else returns
    return mdp_dataset(arrays.features, arrays.action, arrays.lengths, values), arrays.mask


def mdp_dataset(
    features: npt.NDArray[np.float32],
    action: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    returns: npt.NDArray[np.float64],
    *,
    batched: bool = False,
) -> MDPDataset:
    """Episodes (m) that lie one after another, rewards 0 but for the return at the last step.

    Every episode ends with a terminal flag, forced submissions too, because d3rlpy drops trailing steps without one
    and the return is final in either case. `action_size` is 7 whatever actions occur.

    Args:
        features: (n, d)
        action: (n,)
        lengths: (m,) steps of each episode, at least 1.
        returns: (m,)
        batched: draw minibatches as arrays, several times faster; see `d3rlpy_batches`.

    Raises:
        AssertionError: d3rlpy kept fewer steps or episodes than it was given.
    """
    quiet_d3rlpy()
    from d3rlpy.constants import ActionSpace
    from d3rlpy.dataset import MDPDataset

    from buffers.d3rlpy_batches import BatchedDataset

    n, m = len(action), len(lengths)
    last = np.cumsum(lengths) - 1
    rewards = np.zeros((n, 1), dtype=np.float32)
    rewards[last, 0] = returns
    terminals = np.zeros(n, dtype=np.float32)
    terminals[last] = 1.0
    dataset = (BatchedDataset if batched else MDPDataset)(
        observations=features,
        actions=action[:, None],
        rewards=rewards,
        terminals=terminals,
        action_space=ActionSpace.DISCRETE,
        action_size=N_ACTIONS,
    )
    kept = sum(len(episode.actions) for episode in dataset.episodes)
    if kept != n or len(dataset.episodes) != m:
        raise AssertionError(f"d3rlpy kept {kept} of {n} steps and {len(dataset.episodes)} of {m} episodes")
    return dataset


def load_d3rlpy(file: Path) -> ReplayBuffer:
    """What `dataset.dump` wrote, with its seven actions: the file holds no action count.

    d3rlpy's own `ReplayBuffer.load` counts up to the largest action that occurs instead.

    Raises:
        InputError: no such file, or not one that `dump` wrote.
    """
    quiet_d3rlpy()
    from d3rlpy.constants import ActionSpace
    from d3rlpy.dataset import Episode, InfiniteBuffer, ReplayBuffer
    from d3rlpy.dataset.io import load

    try:
        with file.open("rb") as opened:
            episodes = load(Episode, opened)
    except (OSError, KeyError) as problem:
        raise InputError(
            f"cannot be read ({problem})", file=file, expected="an HDF5 file that d3rlpy's dataset.dump wrote"
        ) from problem
    return ReplayBuffer(InfiniteBuffer(), episodes=episodes, action_space=ActionSpace.DISCRETE, action_size=N_ACTIONS)
