"""What a learner reads: n steps of m episodes as plain arrays. `buffers.TrainingArrays` has this shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import ACTIONS, N_ACTIONS

__all__ = ["Bools", "Floats", "Ints", "StepArrays", "StepData", "check_steps"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class StepData(Protocol):
    """n steps of m episodes of one setting, in any order."""

    @property
    def features(self) -> npt.NDArray[np.float32]:
        """(n, d)"""
        ...

    @property
    def mask(self) -> Bools:
        """(n, 7) legal actions."""
        ...

    @property
    def action(self) -> Ints:
        """(n,) what was taken."""
        ...

    @property
    def base_action(self) -> Ints:
        """(n,) what the setting's base script would have taken."""
        ...

    @property
    def propensities(self) -> Floats:
        """(n, 7) the behaviour policy's distribution."""
        ...

    @property
    def t(self) -> Ints:
        """(n,) 1..H"""
        ...

    @property
    def episode(self) -> Ints:
        """(n,) index into the m episodes."""
        ...

    @property
    def returns(self) -> Floats:
        """(m,) what is to be maximised, e.g. Q in [0, 1]."""
        ...

    @property
    def task(self) -> Ints:
        """(m,) index of the episode's task."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class StepArrays:
    """`StepData` from arrays at hand: a notebook, a test, a log that is no buffer."""

    features: npt.NDArray[np.float32]
    mask: Bools
    action: Ints
    base_action: Ints
    propensities: Floats
    t: Ints
    episode: Ints
    returns: Floats
    task: Ints


def check_steps(data: StepData) -> None:
    """Refuses arrays that would train to nonsense.

    Raises:
        UnusableBuffer: no steps; features or returns that are not finite; an illegal action was taken.
        ValueError: shapes that do not fit, or a step where no action is legal (errors of a program, not of data).
    """
    n, m = len(data.action), len(data.returns)
    if n == 0:
        raise UnusableBuffer(f"{m} episodes with no steps at all: nothing to learn from. Collect episodes first")
    shapes = {
        "features": (data.features.shape, (n, data.features.shape[-1])),
        "mask": (data.mask.shape, (n, N_ACTIONS)),
        "base_action": (data.base_action.shape, (n,)),
        "episode": (data.episode.shape, (n,)),
        "task": (data.task.shape, (m,)),
    }
    for name, (found, expected) in shapes.items():
        if found != expected:
            raise ValueError(f"{name} has shape {found}; expected {expected} for {n} steps of {m} episodes")
    if data.episode.min() < 0 or data.episode.max() >= m:
        raise ValueError(f"episode holds indices {data.episode.min()}..{data.episode.max()} for {m} episodes")
    nothing_legal = ~data.mask.any(axis=1)
    if nothing_legal.any():
        raise ValueError(f"no action is legal in row {int(nothing_legal.argmax())} of {n}")
    for name, action in (("action", data.action), ("base_action", data.base_action)):
        if action.min() < 0 or action.max() >= N_ACTIONS:
            raise ValueError(f"{name} holds values {action.min()}..{action.max()}; expected 0..{N_ACTIONS - 1}")
    illegal = ~data.mask[np.arange(n), data.action]
    if illegal.any():
        row = int(illegal.argmax())
        raise UnusableBuffer(
            f"{int(illegal.sum())} of {n} steps took an action that their legal mask forbids; the first is step {row} "
            f"(t = {int(data.t[row])}), {ACTIONS[data.action[row]].label}. Run verify on the buffer"
        )
    if not np.isfinite(data.features).all():
        row = int((~np.isfinite(data.features).all(axis=1)).argmax())
        raise UnusableBuffer(f"features of step {row} of {n} are not finite. Run verify on the buffer")
    if not np.isfinite(data.returns).all():
        episode = int((~np.isfinite(data.returns)).argmax())
        raise UnusableBuffer(f"return of episode {episode} of {m} is {data.returns[episode]}; expected a number")
