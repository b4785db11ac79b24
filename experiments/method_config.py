"""What can be configured about a learner. None is the method's own value (`controllers.presets`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from controllers.config import (
    AdvantageKind,
    AWConfig,
    Backup,
    Baseline,
    D3Config,
    DecisionRule,
    LearnerConfig,
    LinearQConfig,
    Method,
    PlanConfig,
    Prior,
    QConfig,
)
from controllers.presets import preset
from experiments.idle_keys import refuse_idle
from experiments.members import member
from harness_mdp.errors import ConfigError

__all__ = [
    "D3MethodConfig",
    "LinearQMethodConfig",
    "MethodConfig",
    "PlanMethodConfig",
    "QMethodConfig",
    "learner_config",
    "method_config",
]

MISSING: Any = "???"


@dataclass
class AnyMethodConfig:
    """A learner."""

    method: str = MISSING
    """Name of the learner."""


@dataclass
class PlanMethodConfig(AnyMethodConfig):
    """Pessimistic planning on abstract states, field by field `controllers.PlanConfig`."""

    method: str = "plan"
    members: int | None = None
    """Abstractions planned on, each found on half of the tasks; 1 gives one table that can be read."""
    cells: int | None = None
    """At most so many abstract states in each."""
    cell_steps: int | None = None
    """Steps in a cell, at least."""
    rounds: int | None = None
    """How often plan and cells take turns."""
    z: float | None = None
    """Standard errors by which every backed-up mean is lowered."""
    min_visits: int | None = None
    """A pair of cell and action with fewer visits is left out ..."""
    min_tasks: int | None = None
    """... and one from fewer tasks."""
    spread_penalty: float | None = None
    """Standard deviations between members by which their mean is lowered."""


@dataclass
class QMethodConfig(AnyMethodConfig):
    """Fitted Q within support, field by field `controllers.QConfig`."""

    bags: int | None = None
    """Forests, each on its own half of the tasks."""
    trees: int | None = None
    """Trees in each."""
    leaf_steps: int | None = None
    """Steps in a leaf, at least."""
    z: float | None = None
    """Standard deviations between bags by which their mean is lowered."""
    min_visits: int | None = None
    """Support: visits of a pair of cell and action ..."""
    min_tasks: int | None = None
    """... from so many tasks."""
    cells: int | None = None
    """Cells of the support rule."""


@dataclass
class LinearQMethodConfig(AnyMethodConfig):
    """A-learning or linear fitted Q over proposed actions, field by field `controllers.LinearQConfig`."""

    method: str = "a_learning"
    """`a_learning` or `linear_q`."""
    ridge: float | None = None
    """Weight of the squared coefficients, in steps."""
    excess: float | None = None
    """An action is proposed where its propensity is so much above the least of the state ..."""
    relative: float | None = None
    """... and at least this share of the greatest."""
    min_visits: int | None = None
    """An action with fewer visits is left out."""
    backup: str | None = None
    """What follows a step: `best` (of what was proposed), or `behaviour` (one step of improvement)."""


@dataclass
class D3MethodConfig(AnyMethodConfig):
    """A learner of d3rlpy, field by field `controllers.D3Config`."""

    hidden: int | None = None
    """Width of the one hidden layer."""
    learning_rate: float | None = None
    """Adam."""
    batch_size: int | None = None
    """Steps a minibatch."""
    steps: int | None = None
    """Gradient steps."""
    gamma: float | None = None
    """Discount."""
    alpha: float | None = None
    """CQL's weight of conservatism."""
    threshold: float | None = None
    """BCQ's threshold on the imitated probability, relative to the most probable action."""


@dataclass
class MethodConfig(AnyMethodConfig):
    """Advantage-weighted regression and behaviour cloning, field by field `controllers.AWConfig`."""

    advantage: str | None = None
    """`trajectory` (its episode's return above the task's baseline), `step`, `planned` or `linear`."""
    baseline: str | None = None
    """Of trajectory advantages: `task_mean` or `leave_one_out`."""
    hidden: int | None = None
    """Width of the one hidden layer."""
    learning_rate: float | None = None
    """Adam."""
    batch_size: int | None = None
    """Steps a minibatch."""
    epochs: int | None = None
    """Passes over the data."""
    beta: float | None = None
    """Temperature β of w = exp(A/β)."""
    weight_min: float | None = None
    """Weights are clipped from below ..."""
    weight_max: float | None = None
    """... and from above."""
    entropy: float | None = None
    """c_H."""
    decision: str | None = None
    """Decision rule of the saved controller: `sample` or `greedy`."""
    prior: str | None = None
    """What the policy stays close to: `behaviour`, or `uniform` (weights are divided by the propensity)."""
    plan: PlanMethodConfig = field(default_factory=PlanMethodConfig)
    """The plan behind `planned` advantages."""
    linear: LinearQMethodConfig = field(default_factory=LinearQMethodConfig)
    """The learner behind `linear` advantages."""


_KINDS: Mapping[str, type[StrEnum]] = {
    "advantage": AdvantageKind,
    "baseline": Baseline,
    "prior": Prior,
    "decision": DecisionRule,
    "backup": Backup,
}
"""Keys whose value is one of a few words."""


def method_config(name: str) -> AnyMethodConfig:
    """The configuration of a learner by name, nothing changed.

    Raises:
        ConfigError: no such learner.
    """
    match preset(member(Method, "method", name)):
        case AWConfig():
            return MethodConfig(method=name)
        case PlanConfig():
            return PlanMethodConfig(method=name)
        case QConfig():
            return QMethodConfig(method=name)
        case LinearQConfig():
            return LinearQMethodConfig(method=name)
        case D3Config():
            return D3MethodConfig(method=name)


def _part(config: AnyMethodConfig, key: str, kind: type[PlanConfig | LinearQConfig]) -> LearnerConfig:
    """The configuration of the learner inside another, which has to be of one kind."""
    kinds = [method.value for method in Method if isinstance(preset(method), kind)]
    if config.method not in kinds:
        raise ConfigError(f"{key}.method is {config.method!r}; expected {' or '.join(kinds)}")
    return learner_config(config, key)


def learner_config(config: AnyMethodConfig, key: str = "method") -> LearnerConfig:
    """The learner's own configuration, its values checked; `key` is where it stands on the command line.

    Raises:
        ConfigError: a value that cannot work, by its key.
    """
    default = preset(member(Method, "method", config.method))
    given = {
        item.name: value
        for item in fields(config)
        if item.name != "method" and (value := getattr(config, item.name)) is not None
    }
    if isinstance(config, MethodConfig):
        given["plan"] = _part(config.plan, f"{key}.plan", PlanConfig)
        given["linear"] = _part(config.linear, f"{key}.linear", LinearQConfig)
    for name, kind in _KINDS.items():
        if name in given:
            given[name] = member(kind, f"{key}.{name}", given[name])
    try:
        learner = replace(default, **given)
    except ConfigError as problem:
        raise ConfigError(f"{key}.{problem}") from None
    _expect_effect(config, learner, key)
    return learner


def _expect_effect(config: AnyMethodConfig, learner: LearnerConfig, key: str) -> None:
    """Refuse what this learner does not read."""
    match learner:
        case AWConfig() if learner.method is not Method.BC:
            reader = {
                "baseline": AdvantageKind.TRAJECTORY,
                "plan": AdvantageKind.PLANNED,
                "linear": AdvantageKind.LINEAR,
            }
            idle = [name for name, kind in reader.items() if learner.advantage is not kind]
            why = f"with {key}.advantage={learner.advantage}"
        case AWConfig():
            idle = ["advantage", "baseline", "beta", "weight_min", "weight_max", "prior", "plan", "linear"]
            why = "whose weights are all 1"
        case D3Config():
            reader = {"alpha": Method.CQL, "threshold": Method.BCQ}
            idle = [name for name, method in reader.items() if learner.method != method]
            why = "which has none"
        case _:
            return
    refuse_idle(config, type(config)(method=config.method), idle, key, f"for {learner.method}, {why}")
