"""What is configured about a learned controller; nothing here computes, and nothing here loads torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TypeVar

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json

__all__ = [
    "AWConfig",
    "AdvantageKind",
    "Backup",
    "Baseline",
    "ConfigurationJson",
    "D3Config",
    "DecisionRule",
    "LearnerConfig",
    "LinearQConfig",
    "Method",
    "PlanConfig",
    "Prior",
    "QConfig",
    "bc_config",
]

_E = TypeVar("_E", bound=StrEnum)


class Method(StrEnum):
    """Learners; each has one configuration class."""

    AW = "aw"
    """Advantage-weighted regression with trajectory advantages (the paper)."""
    BC = "bc"
    """Behaviour cloning: the same trainer with every weight 1."""
    AW_STEP = "aw_step"
    """Advantage-weighted regression with the advantage of each step under the behaviour."""
    AW_PLANNED = "aw_planned"
    """Advantage-weighted regression with the advantage of each step under the plan: a light network to deploy."""
    PLAN = "plan"
    """Pessimistic planning on abstract states."""
    ONE_STEP = "one_step"
    """Greedy on the behaviour's Q, within support."""
    FITTED_Q = "fitted_q"
    """Finite-horizon fitted Q iteration, within support."""
    LINEAR_Q = "linear_q"
    """Finite-horizon fitted Q, linear in the features, over the actions that the behaviour proposed."""
    A_LEARNING = "a_learning"
    """Finite-horizon A-learning: linear advantages, regressed with the known propensities, over the same actions."""
    AW_LINEAR = "aw_linear"
    """Advantage-weighted regression with the linear advantage of each step: a light network to deploy."""
    CQL = "cql"
    """d3rlpy's discrete conservative Q-learning."""
    BCQ = "bcq"
    """d3rlpy's discrete batch-constrained Q-learning."""
    SAC = "sac"
    """d3rlpy's discrete soft actor-critic."""
    DOUBLE_DQN = "double_dqn"
    """d3rlpy's double DQN."""
    NFQ = "nfq"
    """d3rlpy's neural fitted Q."""


AW_METHODS = (Method.AW, Method.BC, Method.AW_STEP, Method.AW_PLANNED, Method.AW_LINEAR)
Q_METHODS = (Method.ONE_STEP, Method.FITTED_Q)
LINEAR_METHODS = (Method.LINEAR_Q, Method.A_LEARNING)
D3_METHODS = (Method.CQL, Method.BCQ, Method.SAC, Method.DOUBLE_DQN, Method.NFQ)


class AdvantageKind(StrEnum):
    """Where the advantage of a step comes from (DESIGN section 8)."""

    TRAJECTORY = "trajectory"
    """Every step inherits its episode's return above the task's baseline."""
    STEP = "step"
    """Q(s,a) - Σ μ(a'|s) Q(s,a') with the behaviour's Q, regressed on other tasks than the step's."""
    PLANNED = "planned"
    """The same with the plan's Q."""
    LINEAR = "linear"
    """Q(s,a) - max Q(s,a') with the Q of `a_learning` or `linear_q`."""


class Backup(StrEnum):
    """What is done in the states that an action leads to."""

    BEST = "best"
    """The best that was proposed: planning over the whole horizon."""
    BEHAVIOUR = "behaviour"
    """What the behaviour does: one step of improvement."""


class Prior(StrEnum):
    """What the weighted policy stays close to."""

    BEHAVIOUR = "behaviour"
    """π ∝ μ·exp(A/β) (the paper)."""
    UNIFORM = "uniform"
    """π ∝ exp(A/β): weights are divided by the known propensity, so that a rare good action is learned all the same."""


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


class ConfigurationJson:
    """A configuration that a manifest can hold."""

    __slots__ = ()

    def as_json(self) -> dict[str, Json]:
        """Plain values by name, for the manifest."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}  # pyright: ignore[reportArgumentType]
        return {
            name: v.as_json() if isinstance(v, ConfigurationJson) else str(v) if isinstance(v, StrEnum) else v
            for name, v in values.items()
        }


@dataclass(frozen=True, slots=True)
class PlanConfig(ConfigurationJson):
    """Pessimistic planning on abstract states, by an ensemble over halves of the tasks (`planning`).

    Raises:
        ConfigError: a value that cannot work, by name.
    """

    method: Method = Method.PLAN
    members: int = 8
    """Abstractions that are planned on; 1 uses all tasks for one table that can be read."""
    cells: int = 30
    """At most so many abstract states in each."""
    cell_steps: int = 20
    """Steps in a cell, at least."""
    rounds: int = 3
    """How often plan and cells take turns."""
    z: float = 0.5
    """Standard errors by which every backed-up mean is lowered."""
    min_visits: int = 10
    """A pair of cell and action with fewer visits is left out ..."""
    min_tasks: int = 3
    """... and one from fewer tasks."""
    spread_penalty: float = 0.0
    """Standard deviations between members by which their mean is lowered."""

    def __post_init__(self) -> None:
        _expect_method(self.method, (Method.PLAN,))
        _at_least(self, 1, "members", "cell_steps", "min_visits", "min_tasks")
        _at_least(self, 2, "cells")
        _at_least(self, 0, "rounds")
        _finite_from_zero(self, "z", "spread_penalty")


@dataclass(frozen=True, slots=True)
class QConfig(ConfigurationJson):
    """Fitted Q with regression forests, within support (`fitted_q`).

    Raises:
        ConfigError: a value that cannot work, by name.
    """

    method: Method = Method.FITTED_Q
    """`one_step` fits the behaviour's Q and improves on it once; `fitted_q` iterates over the horizon."""
    bags: int = 5
    """Forests, each on its own half of the tasks."""
    trees: int = 20
    """Trees in each."""
    leaf_steps: int = 10
    """Steps in a leaf, at least."""
    z: float = 0.5
    """Standard deviations between bags by which their mean is lowered."""
    min_visits: int = 20
    """Support: a pair of cell and action has at least so many visits ..."""
    min_tasks: int = 5
    """... from so many tasks."""
    cells: int = 30
    """Cells of the support rule."""

    def __post_init__(self) -> None:
        _expect_method(self.method, Q_METHODS)
        _at_least(self, 1, "bags", "trees", "leaf_steps", "min_visits", "min_tasks")
        _at_least(self, 2, "cells")
        _finite_from_zero(self, "z")


@dataclass(frozen=True, slots=True)
class LinearQConfig(ConfigurationJson):
    """Q or advantages that are linear in the features, over what the behaviour proposed (`fitted_linear`).

    Raises:
        ConfigError: a value that cannot work, by name.
    """

    method: Method = Method.A_LEARNING
    """`a_learning` regresses the differences between actions, `linear_q` the value of each."""
    ridge: float = 10_000.0
    """Weight of the squared coefficients, in steps."""
    excess: float = 0.05
    """An action is proposed where its propensity is so much above the least of the state ..."""
    relative: float = 0.2
    """... and at least this share of the greatest."""
    min_visits: int = 10
    """An action with fewer visits is left out."""
    backup: Backup = Backup.BEST

    def __post_init__(self) -> None:
        _expect_method(self.method, LINEAR_METHODS)
        object.__setattr__(self, "method", Method(self.method))
        object.__setattr__(self, "backup", _member(Backup, "backup", self.backup))
        _at_least(self, 1, "min_visits")
        _finite_from_zero(self, "ridge")
        _shares(self, "excess", "relative")


@dataclass(frozen=True, slots=True)
class D3Config(ConfigurationJson):
    """A learner of d3rlpy with one hidden layer, masked when deciding (`d3rlpy_learners`).

    Raises:
        ConfigError: a value that cannot work, by name.
    """

    method: Method = Method.CQL
    hidden: int = 64
    learning_rate: float = 1e-3
    batch_size: int = 256
    steps: int = 2000
    """Gradient steps."""
    gamma: float = 1.0
    alpha: float = 1.0
    """CQL's weight of conservatism; others ignore it."""
    threshold: float = 0.3
    """BCQ's threshold on the imitated probability, relative to the most probable action; others ignore it."""

    def __post_init__(self) -> None:
        _expect_method(self.method, D3_METHODS)
        _at_least(self, 1, "hidden", "batch_size", "steps")
        _finite_from_zero(self, "learning_rate", "gamma", "alpha", "threshold")


@dataclass(frozen=True, slots=True)
class AWConfig(ConfigurationJson):
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
    prior: Prior = Prior.BEHAVIOUR
    plan: PlanConfig = field(default_factory=PlanConfig)
    """Where `planned` advantages come from."""
    linear: LinearQConfig = field(default_factory=LinearQConfig)
    """Where `linear` advantages come from."""

    def __post_init__(self) -> None:
        _expect_method(self.method, AW_METHODS)
        object.__setattr__(self, "method", Method(self.method))
        object.__setattr__(self, "advantage", _member(AdvantageKind, "advantage", self.advantage))
        object.__setattr__(self, "baseline", _member(Baseline, "baseline", self.baseline))
        object.__setattr__(self, "prior", _member(Prior, "prior", self.prior))
        object.__setattr__(self, "decision", _member(DecisionRule, "decision", self.decision))
        _at_least(self, 1, "hidden", "batch_size", "epochs")
        for name in ("learning_rate", "beta", "weight_max"):
            number: float = getattr(self, name)
            if not (math.isfinite(number) and number > 0):
                raise ConfigError(f"{name} is {number}; expected a finite number above 0")
        _finite_from_zero(self, "weight_min", "entropy")
        if self.weight_min > self.weight_max:
            raise ConfigError(
                f"weight_min is {self.weight_min} and weight_max {self.weight_max}; "
                "expected weight_min to be at most weight_max"
            )


LearnerConfig = AWConfig | PlanConfig | QConfig | LinearQConfig | D3Config
"""One configuration class for each family of learners."""


def bc_config() -> AWConfig:
    """Behaviour cloning beside the paper's preset."""
    return AWConfig(method=Method.BC)


def _member(kind: type[_E], name: str, value: str) -> _E:
    try:
        return kind(value)
    except ValueError:
        raise ConfigError(f"{name} is {value!r}; expected one of {', '.join(kind)}") from None


def _expect_method(method: str, allowed: tuple[Method, ...]) -> None:
    if method not in allowed:
        raise ConfigError(f"method is {method!r}; expected one of {', '.join(allowed)}")


def _at_least(config: object, least: int, *names: str) -> None:
    for name in names:
        value: int = getattr(config, name)
        if value < least:
            raise ConfigError(f"{name} is {value}; expected a whole number of at least {least}")


def _finite_from_zero(config: object, *names: str) -> None:
    for name in names:
        number: float = getattr(config, name)
        if not (math.isfinite(number) and number >= 0):
            raise ConfigError(f"{name} is {number}; expected a finite number of at least 0")


def _shares(config: object, *names: str) -> None:
    for name in names:
        share: float = getattr(config, name)
        if not 0.0 <= share <= 1.0:
            raise ConfigError(f"{name} is {share}; expected a share from 0 to 1")
