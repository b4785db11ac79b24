"""A Q network gated by an imitation of the behaviour: d3rlpy's learners, carried over into plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from controllers.data import Floats
from controllers.network import MLPWeights
from controllers.q_function import UNSUPPORTED

__all__ = ["GatedQ"]


@dataclass(frozen=True, eq=False)
class GatedQ:
    """Mean of Q networks, over the actions that an imitator thinks likely enough.

    An action is supported where π_b(a|s) >= threshold · max_a' π_b(a'|s), as in discrete BCQ (Fujimoto et al. 2019,
    arXiv 1910.01708); without an imitator every action is.

    Raises:
        ValueError: no network.
    """

    kind: ClassVar[str] = "gated_q"

    networks: Sequence[MLPWeights]
    imitator: MLPWeights | None = None
    threshold: float = 0.0

    def __post_init__(self) -> None:
        if not self.networks:
            raise ValueError("a Q function needs at least one network")

    @property
    def n_features(self) -> int:
        """Features that are read."""
        return self.networks[0].n_features

    def values(self, features: npt.NDArray[np.float32]) -> Floats:
        """(n, 7) mean of the networks; `UNSUPPORTED` where the imitator thinks the action too rare."""
        mean = np.mean([network.outputs(features) for network in self.networks], axis=0)
        if self.imitator is None:
            return mean
        logits = self.imitator.outputs(features)
        relative = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.where(relative >= self.threshold, mean, UNSUPPORTED)

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything it is made of, by name."""
        found: dict[str, npt.NDArray[np.generic]] = {"threshold": np.array([self.threshold])}
        for index, network in enumerate(self.networks):
            found.update({f"q{index}.{name}": array for name, array in network.tensors().items()})
        if self.imitator is not None:
            found.update({f"imitator.{name}": array for name, array in self.imitator.tensors().items()})
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, npt.NDArray[np.generic]]) -> GatedQ:
        """The inverse of `tensors`.

        Raises:
            ValueError, KeyError: an array is missing, or does not fit.
        """
        groups: dict[str, dict[str, npt.NDArray[np.float32]]] = {}
        for name, array in tensors.items():
            group, dot, own = name.partition(".")
            if dot:
                groups.setdefault(group, {})[own] = array.astype(np.float32)
        imitator = groups.pop("imitator", None)
        return cls(
            networks=tuple(MLPWeights.from_tensors(groups[f"q{index}"]) for index in range(len(groups))),
            imitator=MLPWeights.from_tensors(imitator) if imitator is not None else None,
            threshold=float(tensors["threshold"][0]),
        )
