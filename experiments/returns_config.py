"""What can be configured about what a learner maximises, field by field `controllers.returns.ReturnsConfig`."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.returns import CostUnit, ReturnKind
from controllers.returns import ReturnsConfig as Returns
from experiments.idle_keys import refuse_idle
from experiments.members import member

__all__ = ["ReturnsConfig", "returns_config"]


_IDLE = {
    ReturnKind.QUALITY: ("cost", "weight", "scale", "threshold"),
    ReturnKind.COST: ("threshold",),
    ReturnKind.EFFICIENCY: (),
}
"""Keys that a kind of return does not read."""


@dataclass
class ReturnsConfig:
    """What a learner is to maximise; every report shows quality alone too."""

    kind: str = "quality"
    """`quality`, `cost` (quality less λ·cost) or `efficiency` (success-gated)."""
    cost: str = "steps"
    """Unit of cost: `steps`, `tokens`, `usd` or `seconds`."""
    weight: float = 0.1
    """λ"""
    scale: float | None = None
    """Cost that counts as 1; None is the horizon for steps, else the dearest episode."""
    threshold: float = 0.5
    """Quality from which an episode is a success (`efficiency`)."""


def returns_config(config: ReturnsConfig) -> Returns:
    """The return's own configuration, its values checked.

    Raises:
        ConfigError: a value that cannot work, by name.
    """
    kind = member(ReturnKind, "returns.kind", config.kind)
    refuse_idle(config, ReturnsConfig(), _IDLE[kind], "returns", f"with returns={kind}")
    return Returns(
        kind=kind,
        cost=member(CostUnit, "returns.cost", config.cost),
        weight=config.weight,
        scale=config.scale,
        threshold=config.threshold,
    )
