"""What is configured about a learned controller; nothing here computes, and nothing here loads torch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TypeVar

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json

__all__ = ["AWConfig", "AdvantageKind", "Baseline", "DecisionRule", "Method", "bc_config"]

_E = TypeVar("_E", bound=StrEnum)


class Method(StrEnum):
    """Learners of the shared trainer."""

    AW = "aw"
    """Advantage-weighted regression."""
    BC = "bc"
    """Behaviour cloning: the same trainer with every weight 1."""


class AdvantageKind(StrEnum):
    """Where the advantage of a step comes from (DESIGN section 8)."""

    TRAJECTORY = "trajectory"
    """Every step inherits its episode's return above the task's baseline."""


class Baseline(StrEnum):
    """Baseline b(k) of the trajectory advantage, from the n returns of task k."""

    TASK_MEAN = "task_mean"
    """Mean of all n (the paper)."""
    LEAVE_ONE_OUT = "leave_one_out"
    """Mean of the other n - 1: the task-mean advantage times n/(n-1)."""


class DecisionRule(StrEnum):
    """How a controller decides from π(·|s)."""

    SAMPLE = "sample"
    """Draw from π."""
    GREEDY = "greedy"
    """The most probable legal action, the lowest index among equals."""


@dataclass(frozen=True, slots=True)
class AWConfig:
    """Advantage-weighted regression, the paper's preset by default.

    `w = clip(exp(A/β), weight_min, weight_max)` and
    `L(θ) = mean[ w·(-log π_θ(a|s)) - entropy·H(π_θ(·|s)) ]`, π a softmax over the legal actions.

    Raises:
        ConfigError: a value that cannot work, by name.
    """

    method: Method = Method.AW
    """`bc` ignores advantage, baseline, β and the clip; it keeps the entropy bonus, so that BC and AW differ in
    nothing but the weights. Plain maximum likelihood is `method=bc` with `entropy=0`."""
    advantage: AdvantageKind = AdvantageKind.TRAJECTORY
    baseline: Baseline = Baseline.TASK_MEAN
    hidden: int = 64
    """Width of the one hidden layer (ReLU)."""
    learning_rate: float = 1e-3
    """Adam; its other parameters are torch's defaults."""
    batch_size: int = 256
    """Steps (decisions) per minibatch; the last one of an epoch holds what is left."""
    epochs: int = 20
    beta: float = 0.2
    weight_min: float = 0.1
    weight_max: float = 10.0
    entropy: float = 0.01
    """c_H."""
    decision: DecisionRule = DecisionRule.SAMPLE

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", _member(Method, "method", self.method))
        object.__setattr__(self, "advantage", _member(AdvantageKind, "advantage", self.advantage))
        object.__setattr__(self, "baseline", _member(Baseline, "baseline", self.baseline))
        object.__setattr__(self, "decision", _member(DecisionRule, "decision", self.decision))
        for name in ("hidden", "batch_size", "epochs"):
            value: int = getattr(self, name)
            if value < 1:
                raise ConfigError(f"{name} is {value}; expected a whole number of at least 1")
        for name in ("learning_rate", "beta", "weight_max"):
            number: float = getattr(self, name)
            if not (math.isfinite(number) and number > 0):
                raise ConfigError(f"{name} is {number}; expected a finite number above 0")
        for name in ("weight_min", "entropy"):
            number = getattr(self, name)
            if not (math.isfinite(number) and number >= 0):
                raise ConfigError(f"{name} is {number}; expected a finite number of at least 0")
        if self.weight_min > self.weight_max:
            raise ConfigError(
                f"weight_min is {self.weight_min} and weight_max {self.weight_max}; "
                "expected weight_min to be at most weight_max"
            )

    def as_json(self) -> dict[str, Json]:
        """Plain values by name, for the manifest."""
        return {name: str(v) if isinstance(v, StrEnum) else v for name, v in asdict(self).items()}


def bc_config() -> AWConfig:
    """Behaviour cloning beside the paper's preset."""
    return AWConfig(method=Method.BC)


def _member(kind: type[_E], name: str, value: str) -> _E:
    try:
        return kind(value)
    except ValueError:
        raise ConfigError(f"{name} is {value!r}; expected one of {', '.join(kind)}") from None
