"""Every learner behind one interface: logged steps and a configuration in, a controller that can be saved out.

`learn` also makes, on demand, the task-fold controllers with which off-policy evaluation scores a learner on tasks
that it did not learn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from controllers.config import AWConfig, D3Config, LearnerConfig, LinearQConfig, Method, PlanConfig, QConfig
from controllers.data import Bools, Floats, StepData, check_steps
from controllers.folds import task_folds
from controllers.guard import GuardConfig, GuardedPolicy, GuardLevel, fit_guard
from controllers.kinds import Controller
from controllers.policy import ControllerPolicy
from controllers.q_function import ValuePolicy
from controllers.slack import expect_contrast
from controllers.transitions import only_episodes
from harness_mdp.hashing import Json
from harness_mdp.mdp import DecisionBatch

__all__ = ["FoldController", "Learned", "learn"]


@dataclass(frozen=True, eq=False)
class FoldController:
    """What the learner makes of the other tasks."""

    controller: Controller
    held_out: Bools
    """(m,) episodes of the tasks it never saw."""


@dataclass(frozen=True, eq=False)
class Learned:
    """A trained controller and what training reports."""

    controller: Controller
    metrics: dict[str, Json]
    step_weights: Floats | None = None
    """(n,) w of every step, where the learner reweights the data; predicts the shift of process statistics."""
    folds: tuple[FoldController, ...] = field(default=())


def learn(
    data: StepData,
    config: LearnerConfig,
    *,
    seed: int = 0,
    device: str = "cpu",
    folds: int = 0,
    guard: GuardConfig | None = None,
) -> Learned:
    """Train one controller on all of `data`, and one on the other tasks for each of `folds` folds of its tasks.

    With a guard, each is guarded by a plan on the same episodes that it learned from.

    Raises:
        UnusableBuffer: nothing to learn from, by name; zero slack, for a learner that picks actions by their value.
        ConfigError: no such device, or training diverged.
    """
    check_steps(data)
    whole = np.ones(len(data.returns), dtype=np.bool_)
    fold = task_folds(data.task, folds) if folds else np.zeros(0, dtype=np.int64)
    held_out = [fold == index for index in range(folds) if (fold == index).any() and (fold != index).any()]
    parts = [whole, *(~own for own in held_out)]
    match config:
        case AWConfig():
            made = _weighted(data, parts, config, seed, device)
        case PlanConfig() | QConfig() | LinearQConfig() | D3Config():
            expect_contrast(data, Method(config.method).value)
            made = [_one(only_episodes(data, part)[0], config, seed, device) for part in parts]
    if guard is not None and guard.level is not GuardLevel.NONE:
        if guard.level is GuardLevel.ADVANTAGE:
            expect_contrast(data, "guard=advantage", "leave it out with guard=none")
        made = [_guarded(one, only_episodes(data, part)[0], guard, seed) for one, part in zip(made, parts, strict=True)]
    first = made[0]
    others = tuple(FoldController(one.controller, own) for one, own in zip(made[1:], held_out, strict=True))
    return Learned(first.controller, first.metrics, first.step_weights, others)


def _weighted(data: StepData, parts: Sequence[Bools], config: AWConfig, seed: int, device: str) -> list[Learned]:
    """All parts in one stack; each one's weights come from its own episodes alone."""
    from controllers.training import ModelPlan, step_weights, train_many

    plans: list[ModelPlan] = []
    for part in parts:
        own, rows = only_episodes(data, part)
        weights = np.zeros(len(data.action))
        weights[rows], _ = step_weights(own, config, seed)
        plans.append(ModelPlan(seed, weights, rows))
    results = train_many(data, plans, config, device)
    return [
        Learned(
            ControllerPolicy(result.weights, config.decision, config.method.value),
            result.metrics.as_json(),
            result.step_weights,
        )
        for result in results
    ]


def _guarded(learned: Learned, data: StepData, config: GuardConfig, seed: int) -> Learned:
    policy = GuardedPolicy(learned.controller, fit_guard(data, config, seed))
    states = DecisionBatch(data.features, data.mask, data.base_action)
    refused: dict[str, Json] = {
        f"refused_{reason}": count / len(states) for reason, count in policy.refusals(states).items()
    }
    as_base = policy.probs_batch(states)[np.arange(len(states)), data.base_action]
    metrics: dict[str, Json] = {**learned.metrics, **refused, "agreement_with_base": float(as_base.mean())}
    return replace(learned, controller=policy, metrics=metrics)


def _one(data: StepData, config: PlanConfig | QConfig | LinearQConfig | D3Config, seed: int, device: str) -> Learned:
    match config:
        case PlanConfig():
            from controllers.planning import fit_planned_q

            controller = ValuePolicy(fit_planned_q(data, config, seed), config.method.value)
        case QConfig():
            from controllers.fitted_q import fit_forest_q

            controller = ValuePolicy(fit_forest_q(data, config, seed), config.method.value)
        case LinearQConfig():
            from controllers.fitted_linear import fit_linear

            controller = ValuePolicy(fit_linear(data, config), config.method.value)
        case D3Config():
            from controllers.d3rlpy_learners import fit_d3rlpy

            controller = fit_d3rlpy(data, config, seed, device)
    return Learned(controller, _metrics(controller, data))


def _metrics(controller: Controller, data: StepData) -> dict[str, Json]:
    """What every learner can say of its controller, over the states it learned from."""
    states = DecisionBatch(data.features, data.mask, data.base_action)
    probs = controller.probs_batch(states)
    rows = np.arange(len(data.action))
    found: dict[str, Json] = {
        "n_steps": len(rows),
        "agreement_with_base": float(probs[rows, data.base_action].mean()),
    }
    if isinstance(controller, ValuePolicy):
        values = np.where(data.mask, controller.q.values(data.features), -np.inf)
        found["states_without_support"] = float((~np.isfinite(values).any(axis=1)).mean())
    return found
