"""The dataset on the device, and which of its rows each model of a stack sees in which minibatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from controllers.data import Floats, Ints, StepData
from controllers.stack import Batch
from harness_mdp.hashing import generator

__all__ = ["Resident", "Schedule"]


class Schedule:
    """Which rows each of m models sees in which minibatch.

    Args:
        rows: row indices of each model, the longest first.
        seeds: of each model's order.
        batch_size: steps a minibatch; the last one of an epoch holds what is left.
    """

    def __init__(self, rows: Sequence[Ints], seeds: Sequence[int], batch_size: int) -> None:
        self.rows = rows
        self.batch_size = batch_size
        self.batches = np.array([-(-len(own) // batch_size) for own in rows], dtype=np.int64)
        """(m,) minibatches an epoch, not increasing."""
        self._orders = [generator("controller", "minibatch order", seed) for seed in seeds]
        self._length = int(self.batches[0]) * batch_size
        self.share = np.zeros((len(rows), self._length), dtype=np.float32)
        """(m, L) one over the size of the row's minibatch; 0 on rows that only fill it up."""
        for k, own in enumerate(rows):
            last = (self.batches[k] - 1) * batch_size
            self.share[k, :last] = 1.0 / batch_size
            self.share[k, last : len(own)] = 1.0 / (len(own) - last)

    def shuffled(self) -> Ints:
        """(m, L) row indices of the next epoch, in order; filled up with row 0."""
        drawn = np.zeros((len(self.rows), self._length), dtype=np.int64)
        for k, (own, rng) in enumerate(zip(self.rows, self._orders, strict=True)):
            drawn[k, : len(own)] = own[rng.permutation(len(own))]
        return drawn

    def active(self, batch: int) -> int:
        """How many models still have a minibatch number `batch` in this epoch."""
        return int((self.batches > batch).sum())


@dataclass(frozen=True, slots=True)
class Resident:
    """The whole dataset on the device."""

    features: Tensor
    """(n, d) float32"""
    illegal: Tensor
    """(n, 7) bool"""
    action: Tensor
    """(n, 1) int64"""
    weights: Tensor
    """(m, n)"""

    @classmethod
    def put(cls, data: StepData, weights: Floats, device: torch.device) -> Resident:
        """Copies the steps and the weights (m, n) of each model once."""
        features = np.ascontiguousarray(data.features, dtype=np.float32)
        return cls(
            torch.as_tensor(features, device=device),
            torch.as_tensor(~data.mask, device=device),
            torch.as_tensor(data.action, dtype=torch.int64, device=device)[:, None],
            torch.as_tensor(weights.astype(np.float32), device=device),
        )

    def gather(self, rows: Tensor, share: Tensor, entropy: float) -> Batch:
        """Rows (a, L) for the first a models, with the scales of their minibatches."""
        a, length = rows.shape
        flat = rows.reshape(-1)

        def pick(table: Tensor) -> Tensor:
            return table.index_select(0, flat).view(a, length, -1)

        weight = self.weights[:a].gather(1, rows) * share
        return Batch(
            pick(self.features), pick(self.illegal), pick(self.action), weight[..., None], (entropy * share)[..., None]
        )
