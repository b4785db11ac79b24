"""m networks of one shape as one stack of tensors, trained by one Adam.

All parameters of a network are one row of a flat (m, D) tensor, so Adam is a handful of elementwise operations
for the whole stack; the layers are views into that row. A network's numbers do not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from controllers.awr import awr_gradient
from controllers.network import MLPWeights
from harness_mdp.mdp import N_ACTIONS

__all__ = ["Batch", "NetworkStack", "adam_scales"]

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's defaults in torch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One minibatch for each of the first a networks of a stack."""

    features: Tensor
    """(a, B, d) float32"""
    illegal: Tensor
    """(a, B, 7) bool"""
    action: Tensor
    """(a, B, 1) int64"""
    weight: Tensor
    """(a, B, 1) w_i over the size of the batch; 0 on rows that only fill it up."""
    entropy: Tensor
    """(a, B, 1) c_H over the size of the batch; 0 on rows that only fill it up."""

    def cut(self, a: int, start: int, stop: int) -> Batch:
        """Rows `start` to `stop` of the first a networks, as views."""
        fields = (self.features, self.illegal, self.action, self.weight, self.entropy)
        return Batch(*(tensor[:a, start:stop] for tensor in fields))


@dataclass(frozen=True, slots=True)
class _Layers:
    """Views into the first a rows of a flat (m, D) tensor."""

    flat: Tensor
    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor

    @classmethod
    def of(cls, flat: Tensor, inputs: int, hidden: int) -> _Layers:
        a = flat.shape[0]
        w1, b1, w2, b2 = flat.split([inputs * hidden, hidden, hidden * N_ACTIONS, N_ACTIONS], dim=1)
        return cls(
            flat,
            w1.view(a, inputs, hidden),
            b1.view(a, 1, hidden),
            w2.view(a, hidden, N_ACTIONS),
            b2.view(a, 1, N_ACTIONS),
        )


class NetworkStack:
    """m networks with their Adam state on one device.

    Args:
        networks: starting weights, all of one shape.
        device: where everything stays.
    """

    def __init__(self, networks: Sequence[MLPWeights], device: torch.device) -> None:
        self._inputs, self._hidden = networks[0].w1.shape
        rows = [np.concatenate([array.ravel() for array in net.tensors().values()]) for net in networks]
        self._parameters = torch.from_numpy(np.stack(rows)).to(device)
        self._gradient = torch.zeros_like(self._parameters)
        self._mean = torch.zeros_like(self._parameters)
        self._square = torch.zeros_like(self._parameters)
        self._scratch = torch.empty_like(self._parameters)
        self._views: dict[int, tuple[_Layers, _Layers]] = {}

    def logits(self, features: Tensor) -> Tensor:
        """(m, n, 7) of every network on the same (n, d) features."""
        layers, _ = self._first(len(self._parameters))
        hidden = torch.relu(torch.matmul(features, layers.w1) + layers.b1)
        return torch.matmul(hidden, layers.w2) + layers.b2

    def gradient(self, batch: Batch) -> Tensor:
        """Losses (a,) of the first a networks on their batches; leaves the gradient for `step`."""
        at, grad = self._first(len(batch.features))
        hidden = torch.baddbmm(at.b1, batch.features, at.w1).relu_()
        logits = torch.baddbmm(at.b2, hidden, at.w2)
        losses, by_logits = awr_gradient(logits, batch.illegal, batch.action, batch.weight, batch.entropy)
        grad.w2.copy_(torch.bmm(hidden.mT, by_logits))
        torch.sum(by_logits, dim=1, keepdim=True, out=grad.b2)
        by_hidden = torch.bmm(by_logits, at.w2.mT)
        by_hidden.mul_(hidden.sign_())  # 1 where the unit is on, else 0; the cheapest way to say it
        grad.w1.copy_(torch.bmm(batch.features.mT, by_hidden))
        torch.sum(by_hidden, dim=1, keepdim=True, out=grad.b1)
        return losses

    def step(self, rate: Tensor, spread: Tensor) -> None:
        """One step of Adam for the first a networks, as `torch.optim.Adam` makes it.

        Args:
            rate: (a, 1) minus the learning rate over its bias correction.
            spread: (a, 1) reciprocal root of the second bias correction; see `adam_scales`.
        """
        a = len(rate)
        parameters, gradient = self._parameters[:a], self._gradient[:a]
        mean, square, scratch = self._mean[:a], self._square[:a], self._scratch[:a]
        mean.lerp_(gradient, 1 - BETA1)
        square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        torch.sqrt(square, out=scratch)
        scratch.mul_(spread).add_(EPSILON)
        torch.div(mean, scratch, out=scratch)
        parameters.addcmul_(scratch, rate)

    def networks(self) -> list[dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]:
        """The arrays of each network, copied to the host; not checked to be finite."""
        layers = _Layers.of(self._parameters.cpu(), self._inputs, self._hidden)
        return [
            {
                "w1": layers.w1[k].numpy().copy(),
                "b1": layers.b1[k, 0].numpy().copy(),
                "w2": layers.w2[k].numpy().copy(),
                "b2": layers.b2[k, 0].numpy().copy(),
            }
            for k in range(len(self._parameters))
        ]

    def _first(self, a: int) -> tuple[_Layers, _Layers]:
        """Parameters and gradient of the first a networks; views are made once."""
        if a not in self._views:
            both = (self._parameters[:a], self._gradient[:a])
            parameters, gradient = (_Layers.of(flat, self._inputs, self._hidden) for flat in both)
            self._views[a] = (parameters, gradient)
        return self._views[a]


def adam_scales(steps: np.ndarray[tuple[int, ...], np.dtype[np.int64]], learning_rate: float) -> tuple[Tensor, Tensor]:
    """`rate` and `spread` of `NetworkStack.step` for step counts from 1, any shape; float32 of that shape.

    The update is p ← p - lr/(1-β₁ᵗ) · mean / (√square/√(1-β₂ᵗ) + ε).
    """
    rate = -learning_rate / (1.0 - BETA1**steps)
    spread = 1.0 / np.sqrt(1.0 - BETA2**steps)
    return torch.from_numpy(rate.astype(np.float32)), torch.from_numpy(spread.astype(np.float32))
