r"""The mathematics of advantage-weighted regression, and nothing else (DESIGN section 8).

With advantages A_i, temperature β and legal masks m(s), over a batch of B steps:

.. math::

    w_i = \mathrm{clip}(\exp(A_i / \beta),\, w_{min},\, w_{max})

    \pi_\theta(a|s) = 1[a \in m(s)]\; e^{z_a} / \sum_{b \in m(s)} e^{z_b}, \qquad z = z_\theta(s)

    L(\theta) = \frac{1}{B} \sum_i \big[ -w_i \log \pi_\theta(a_i|s_i) - c_H\, H(\pi_\theta(\cdot|s_i)) \big]

    \frac{\partial L}{\partial z_{ij}} = \frac{1}{B} \big[ w_i\, (\pi_{ij} - 1[j = a_i])
        + c_H\, \pi_{ij} (\log \pi_{ij} + H_i) \big]

w = 1 is behaviour cloning. The weights are those of Peng et al., "Advantage-Weighted Regression" (2019).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from controllers.data import Floats

__all__ = ["awr_gradient", "awr_loss", "awr_weights", "effective_sample_size", "masked_log_softmax"]


def awr_weights(advantages: Floats, beta: float, weight_min: float, weight_max: float) -> Floats:
    """The weights w = clip(exp(A/β), weight_min, weight_max).

    Args:
        advantages: (n,) in units of the return.
        beta: β > 0, in the same units.
        weight_min: lower clip.
        weight_max: upper clip, finite.

    Returns:
        (n,) float64
    """
    # exp of at most log(weight_max) cannot overflow, whatever the advantage.
    exponent = np.minimum(advantages / beta, np.log(weight_max))
    weights: Floats = np.clip(np.exp(exponent), weight_min, weight_max)
    return weights


def effective_sample_size(weights: Floats) -> float:
    """(Σw)² / Σw²: n for equal weights, 1 when one of them is all; 0 when all are 0."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def masked_log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """The log of π over the legal actions, -inf on the others.

    Args:
        logits: (..., 7)
        mask: (..., 7) bool

    Raises:
        ValueError: a row has no legal action.
    """
    if not bool(mask.any(dim=-1).all()):
        raise ValueError("no action is legal in at least one row")
    return torch.log_softmax(logits.masked_fill(~mask, -torch.inf), dim=-1)


def awr_loss(logits: Tensor, mask: Tensor, action: Tensor, weight: Tensor, entropy: float) -> Tensor:
    """L(θ) of one batch, differentiable by autograd: the definition that `awr_gradient` is tested against.

    Args:
        logits: (B, 7)
        mask: (B, 7) bool
        action: (B,) int64, legal
        weight: (B,)
        entropy: c_H

    Returns:
        Scalar.

    Raises:
        ValueError: a row has no legal action.
    """
    log_probs = masked_log_softmax(logits, mask)
    taken = log_probs.gather(-1, action[:, None])[:, 0]
    legal = log_probs.masked_fill(~mask, 0.0)  # 0·log 0 = 0, and no gradient through an illegal logit
    entropies = -(legal.exp() * legal * mask).sum(dim=-1)
    return (-weight * taken - entropy * entropies).mean()


def awr_gradient(
    logits: Tensor, illegal: Tensor, action: Tensor, weight: Tensor, entropy: Tensor
) -> tuple[Tensor, Tensor]:
    """Losses of m batches and their gradients by the logits, in closed form.

    The mean over a batch is part of the scales: rows of a batch of B steps carry `weight = w_i/B` and
    `entropy = c_H/B`, and a row that only fills up a batch carries 0 in both, so it adds exactly nothing.

    Args:
        logits: (m, B, 7); overwritten.
        illegal: (m, B, 7) bool; at least one False a row, which is checked once for all data and not here.
        action: (m, B, 1) int64
        weight: (m, B, 1)
        entropy: (m, B, 1)

    Returns:
        (m,) losses and (m, B, 7) gradients; gradients are exactly 0 on illegal actions.
    """
    log_probs = torch.log_softmax(logits.masked_fill_(illegal, -torch.inf), dim=-1)
    probs = log_probs.exp()
    log_probs.masked_fill_(illegal, 0.0)
    negative_entropy = (probs * log_probs).sum(dim=-1, keepdim=True)
    losses = (entropy * negative_entropy - weight * log_probs.gather(-1, action)).sum(dim=(1, 2))
    gradient = log_probs.sub_(negative_entropy).mul_(entropy).add_(weight).mul_(probs)
    gradient.scatter_add_(-1, action, -weight)
    return losses, gradient
