r"""What a learner is to maximise: quality alone, quality less cost, or quality that success gates (DESIGN section 8).

With quality :math:`Q_i` of episode :math:`i`, its cost :math:`c_i = \text{cost}_i / \text{scale}` in one of four units,
and weight :math:`\lambda`:

.. math::

    \text{quality:} \quad & G_i = Q_i \\
    \text{cost:} \quad & G_i = Q_i - \lambda c_i \\
    \text{efficiency:} \quad & G_i = Q_i \, (1 - \lambda \min(c_i, 1)) \;\text{if } Q_i \ge \tau, \;\text{else } 0

`cost` pays for a cheap failure, so that submitting at once can win where λ is large; `efficiency` pays for nothing
below the threshold τ. A return is what is learned from; quality is what is reported beside it, always.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from buffers.tensors import TrainingArrays
from controllers.data import Floats
from harness_mdp.errors import ConfigError, UnusableBuffer

__all__ = ["CostUnit", "ReturnKind", "ReturnsConfig", "cost_scale", "costs", "returns", "side_by_side", "with_returns"]


class ReturnKind(StrEnum):
    """Which of the three formulas."""

    QUALITY = "quality"
    """Q, the terminal rubric score."""
    COST = "cost"
    """Q - λ·cost/scale."""
    EFFICIENCY = "efficiency"
    """Success-gated: Q·(1 - λ·min(cost/scale, 1)) where Q reaches the threshold, else 0."""


class CostUnit(StrEnum):
    """What an episode costs."""

    STEPS = "steps"
    """Structural actions."""
    TOKENS = "tokens"
    """Prompt and completion tokens of the executor."""
    USD = "usd"
    """Money; unknown where a price is."""
    SECONDS = "seconds"
    """Wall time. The one unit that differs between two runs of the same work."""


@dataclass(frozen=True, slots=True)
class ReturnsConfig:
    """Which return, and what a cost weighs in it.

    Raises:
        ConfigError: a value that cannot work, by name.
    """

    kind: ReturnKind = ReturnKind.QUALITY
    cost: CostUnit = CostUnit.STEPS
    weight: float = 0.1
    """λ: the quality that an episode of cost `scale` has to make up for; with `efficiency` the share that it loses."""
    scale: float | None = None
    """Cost in its own unit that counts as 1; None for the horizon (steps) or the dearest episode at hand (see
    `cost_scale`)."""
    threshold: float = 0.5
    """τ: the quality from which an episode is a success; `efficiency` alone asks for it."""

    def __post_init__(self) -> None:
        for name, kind in (("kind", ReturnKind), ("cost", CostUnit)):
            value: str = getattr(self, name)
            if value not in list(kind):
                raise ConfigError(f"returns: {name} is {value!r}; expected one of {', '.join(kind)}")
            object.__setattr__(self, name, kind(value))
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise ConfigError(f"returns: weight is {self.weight}; expected a finite number of at least 0")
        if self.kind is ReturnKind.EFFICIENCY and self.weight > 1:
            raise ConfigError(
                f"returns: weight is {self.weight}; with efficiency it is the share of quality that the dearest "
                "episode loses, at most 1"
            )
        if self.scale is not None and not (math.isfinite(self.scale) and self.scale > 0):
            raise ConfigError(f"returns: scale is {self.scale}; expected a finite number of {self.cost} above 0")
        if not 0 <= self.threshold <= 1:
            raise ConfigError(f"returns: threshold is {self.threshold}; expected a quality from 0 to 1")

    def formula(self, scale: float) -> str:
        """The return in words, with its numbers, for a report."""
        share = f"{self.cost}/{scale:g}"
        match self.kind:
            case ReturnKind.QUALITY:
                return "quality"
            case ReturnKind.COST:
                return f"quality - {self.weight:g}·{share}"
            case ReturnKind.EFFICIENCY:
                return f"quality·(1 - {self.weight:g}·min({share}, 1)) where quality >= {self.threshold:g}, else 0"


def costs(arrays: TrainingArrays, unit: CostUnit) -> Floats:
    """(m,) what each episode cost, in `unit`; NaN where money is unknown."""
    match unit:
        case CostUnit.STEPS:
            return arrays.lengths.astype(np.float64)
        case CostUnit.TOKENS:
            return arrays.tokens.astype(np.float64)
        case CostUnit.USD:
            return arrays.cost_usd
        case CostUnit.SECONDS:
            return arrays.seconds


def cost_scale(arrays: TrainingArrays, config: ReturnsConfig) -> float:
    """The cost that counts as 1: `config.scale`, else the longest horizon for steps, else the dearest episode.

    A report states it. Buffers of different dearest episodes have different returns, so give `scale` where
    controllers of several buffers are to be compared.

    Raises:
        UnusableBuffer: an unknown cost, or no episode cost anything.
    """
    known = _known_costs(arrays, config.cost)
    if config.scale is not None:
        return config.scale
    if config.cost is CostUnit.STEPS:
        return float(arrays.horizon.max())
    dearest = float(known.max())
    if dearest <= 0:
        raise UnusableBuffer(
            f"all {arrays.n_episodes} episodes cost 0 {config.cost}, so there is no cost to weigh (a simulated "
            "executor is free). Weigh cost=steps or cost=tokens, or learn from quality alone"
        )
    return dearest


def returns(arrays: TrainingArrays, config: ReturnsConfig) -> Floats:
    """(m,) G of each episode, by the formulas at the top.

    Args:
        arrays: m episodes whose `returns` are quality.
        config: which formula, and its numbers.

    Raises:
        UnusableBuffer: an unknown cost, or no episode cost anything.
    """
    quality = arrays.returns
    if config.kind is ReturnKind.QUALITY:
        return quality
    share = costs(arrays, config.cost) / cost_scale(arrays, config)
    if config.kind is ReturnKind.COST:
        return quality - config.weight * share
    kept = quality * (1.0 - config.weight * np.minimum(share, 1.0))
    gated: Floats = np.where(quality >= config.threshold, kept, 0.0)
    return gated


def with_returns(arrays: TrainingArrays, config: ReturnsConfig) -> TrainingArrays:
    """`arrays` to learn from: `returns` replaced, the rest shared.

    Quality is no longer in the result; keep `arrays` for the report.

    Raises:
        UnusableBuffer: as `returns`.
    """
    return replace(arrays, returns=returns(arrays, config))


def side_by_side(arrays: TrainingArrays) -> dict[str, float | None]:
    """Mean quality and mean cost of an episode in every unit: `quality steps tokens usd seconds`, episodes weighing
    equally; `usd` is None where the price of an episode is unknown, never 0 for unknown.

    Args:
        arrays: m episodes whose `returns` are quality; at least one.
    """
    means: dict[str, float | None] = {"quality": float(arrays.returns.mean())}
    for unit in CostUnit:
        mean = float(costs(arrays, unit).mean())
        means[unit.value] = None if math.isnan(mean) else mean
    return means


def _known_costs(arrays: TrainingArrays, unit: CostUnit) -> Floats:
    found = costs(arrays, unit)
    unknown = np.isnan(found)
    if unknown.any():
        raise UnusableBuffer(
            f"the cost in {unit} of {int(unknown.sum())} of {len(found)} episodes is unknown, e.g. of episode "
            f"{arrays.episode_ids[int(unknown.argmax())]}: an unknown price is not 0. Collect with executor.prices, or "
            "weigh cost=steps or cost=tokens"
        )
    return found
