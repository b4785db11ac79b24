"""The configuration that each method has unless told otherwise."""

from __future__ import annotations

from controllers.config import (
    D3_METHODS,
    Q_METHODS,
    AdvantageKind,
    AWConfig,
    D3Config,
    DecisionRule,
    LearnerConfig,
    LinearQConfig,
    Method,
    PlanConfig,
    Prior,
    QConfig,
)

__all__ = ["preset"]


def preset(method: Method) -> LearnerConfig:
    """`aw` is the paper's; the others are ours, chosen on training tasks (docs/learners.md)."""
    match method:
        case Method.AW | Method.BC:
            return AWConfig(method=method)
        case Method.AW_STEP:
            return AWConfig(method=method, advantage=AdvantageKind.STEP, beta=0.05, decision=DecisionRule.GREEDY)
        case Method.AW_PLANNED:
            return AWConfig(method=method, advantage=AdvantageKind.PLANNED, beta=0.05, decision=DecisionRule.GREEDY)
        case Method.AW_LINEAR:
            return AWConfig(
                method=method,
                advantage=AdvantageKind.LINEAR,
                beta=0.02,
                weight_min=1e-3,
                weight_max=1.0,
                epochs=60,
                prior=Prior.UNIFORM,
                decision=DecisionRule.GREEDY,
            )
        case Method.PLAN:
            return PlanConfig()
        case Method.A_LEARNING:
            return LinearQConfig()
        case Method.LINEAR_Q:
            return LinearQConfig(method=method, ridge=20.0)
        case _ if method in Q_METHODS:
            return QConfig(method=method)
        case _ if method in D3_METHODS:
            return D3Config(method=method)
        case _:
            raise ValueError(f"no preset for {method!r}")
