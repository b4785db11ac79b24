"""Training of controllers: the dataset resident on the device, all models of a setting at once.

AWR and behaviour cloning differ in the weights of the steps and in nothing else. A model is trained by its plan
(seed, weights, rows) alone: in a stack it sees the same minibatches in the same order as on its own.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from controllers.advantages import advantage_estimator
from controllers.awr import awr_weights, effective_sample_size
from controllers.config import AWConfig, Method, Prior
from controllers.data import Floats, Ints, StepData, check_steps
from controllers.minibatches import Resident, Schedule
from controllers.network import MLPWeights, initial_weights
from controllers.policy import ControllerPolicy
from controllers.slack import Slack, measure_slack
from controllers.stack import NetworkStack, adam_scales
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.hashing import Json
from harness_mdp.mdp import DecisionBatch

__all__ = ["ModelPlan", "TrainMetrics", "TrainResult", "open_device", "step_weights", "train", "train_many"]

CHUNK_ROWS = 1 << 17
"""Rows gathered at a time; bounds the memory beside the dataset itself, and spares a gather per minibatch."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelPlan:
    """One model of a stack."""

    seed: int
    """Of starting weights and minibatch order."""
    weights: Floats
    """(n,) weight of every step of the dataset."""
    rows: Ints | None = None
    """Steps to learn from, e.g. a fold's; None for all."""


@dataclass(frozen=True, slots=True)
class TrainMetrics:
    """What training reports of one model, over the steps it learned from."""

    loss: tuple[float, ...]
    """Mean loss of each epoch, while it was learning."""
    n_steps: int
    weight_min: float
    weight_mean: float
    weight_max: float
    ess: float
    """Effective sample size of the weights, in steps."""
    entropy: float
    """Mean entropy of π, in nats."""
    agreement_with_base: float
    """Mean probability that a decision (by the configured rule) is the base action."""

    def as_json(self) -> dict[str, Json]:
        """Plain values by name, for the manifest."""
        return {**asdict(self), "loss": list(self.loss)}


@dataclass(frozen=True, slots=True, eq=False)
class TrainResult:
    """A trained model."""

    weights: MLPWeights
    step_weights: Floats
    """(n,) w of every step of the dataset, 0 on steps that it did not learn from; predicts process shifts."""
    metrics: TrainMetrics


def step_weights(data: StepData, config: AWConfig, seed: int = 0) -> tuple[Floats, Slack]:
    """Weights (n,) that `config` gives to the steps, and the slack behind them.

    `seed` is that of the fits behind `step` and `planned` advantages.

    Raises:
        UnusableBuffer: no episodes, or (not for BC) nothing to compare them with.
    """
    slack = measure_slack(data.returns, data.task)
    if config.method is Method.BC:
        return np.ones(len(data.action)), slack
    advantages = advantage_estimator(config, seed)(data)
    weights = awr_weights(advantages, config.beta, config.weight_min, config.weight_max)
    if config.prior is Prior.UNIFORM and not slack.is_zero:
        weights = weights / data.propensities[np.arange(len(weights)), data.action]
        weights /= weights.mean()
    return weights, slack


def train(data: StepData, config: AWConfig, seed: int, device: str = "cpu") -> TrainResult:
    """One model on all steps of `data`; see `train_many`."""
    weights, _ = step_weights(data, config, seed)
    return train_many(data, [ModelPlan(seed, weights)], config, device)[0]


def train_many(data: StepData, plans: Sequence[ModelPlan], config: AWConfig, device: str = "cpu") -> list[TrainResult]:
    """Trains all plans at once; `config` gives network, optimiser, entropy bonus and decision rule.

    Deterministic for a plan: the same result alone or in any stack, up to the order of float32 sums.

    Args:
        data: n steps.
        plans: at least one.
        config: its method, advantage, β and clip are not used here; they made the plans' weights.
        device: `cpu`, `cuda` or `auto`.

    Returns:
        One result a plan, in the order of `plans`.

    Raises:
        UnusableBuffer: see `check_steps`; or a plan has no rows, or only weights of 0.
        ValueError: a plan's weights are negative, not finite, or not one a step.
        ConfigError: no such device, or training diverged.
    """
    check_steps(data)
    target = open_device(device)
    if not plans:
        return []
    rows = [_rows(data, plan, index) for index, plan in enumerate(plans)]
    # Longest epochs first: models that have finished an epoch early are then the tail of the stack.
    order = sorted(range(len(plans)), key=lambda k: -len(rows[k]))
    schedule = Schedule([rows[k] for k in order], [plans[k].seed for k in order], config.batch_size)
    starts = [initial_weights(data.features.shape[1], config.hidden, plans[k].seed) for k in order]
    weights = np.stack([plans[k].weights for k in order])
    with _quiet_threads(target), torch.inference_mode():
        stack = NetworkStack(starts, target)
        dataset = Resident.put(data, weights, target)
        losses = [_epoch(stack, dataset, schedule, epoch, config) for epoch in range(config.epochs)]
        curve = torch.stack(losses).cpu().numpy().astype(np.float64)
    arrays = stack.networks()
    results: dict[int, TrainResult] = {}
    for place, k in enumerate(order):
        try:
            network = MLPWeights.from_tensors(arrays[place])
        except ValueError as problem:
            raise ConfigError(
                f"training diverged with seed {plans[k].seed} ({problem}). Lower learning_rate "
                f"({config.learning_rate:g}) or weight_max ({config.weight_max:g})"
            ) from problem
        used = np.zeros(len(data.action))
        used[rows[k]] = plans[k].weights[rows[k]]
        metrics = _metrics(data, rows[k], plans[k].weights, network, config, curve[:, place])
        results[k] = TrainResult(network, used, metrics)
    return [results[k] for k in range(len(plans))]


def open_device(name: str) -> torch.device:
    """`cpu`, `cuda`, or `auto`: CUDA where there is one.

    Raises:
        ConfigError: another name, or CUDA is asked for and not there.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device is {name!r}; expected auto, cpu or cuda")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError("device is 'cuda', and torch finds no CUDA device. Use device=auto or device=cpu")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def _epoch(stack: NetworkStack, dataset: Resident, schedule: Schedule, epoch: int, config: AWConfig) -> Tensor:
    """One pass of every model over its rows; mean loss (m,) of the pass."""
    device, size, m = dataset.features.device, schedule.batch_size, len(schedule.rows)
    longest = int(schedule.batches[0])
    rows = torch.as_tensor(schedule.shuffled(), device=device)
    share = torch.as_tensor(schedule.share, device=device)
    steps = epoch * schedule.batches + np.arange(1, longest + 1, dtype=np.int64)[:, None]
    rate, spread = (scale[..., None].to(device) for scale in adam_scales(steps, config.learning_rate))
    losses = torch.zeros((longest, m), device=device)
    chunk = max(1, CHUNK_ROWS // (size * m))
    for first in range(0, longest, chunk):
        last = min(first + chunk, longest)
        a, span = schedule.active(first), slice(first * size, last * size)
        gathered = dataset.gather(rows[:a, span], share[:a, span], config.entropy)
        for batch in range(first, last):
            a, at = schedule.active(batch), (batch - first) * size
            losses[batch, :a] = stack.gradient(gathered.cut(a, at, at + size))
            stack.step(rate[batch, :a], spread[batch, :a])
    n_rows = torch.as_tensor(np.array([len(own) for own in schedule.rows]), device=device)
    in_batch = (share.view(m, longest, size) > 0).sum(dim=2).T
    return (losses * in_batch).sum(dim=0) / n_rows


def _rows(data: StepData, plan: ModelPlan, index: int) -> Ints:
    """The rows a plan learns from, checked."""
    n = len(data.action)
    if plan.weights.shape != (n,):
        raise ValueError(f"plan {index}: weights have shape {plan.weights.shape}; expected ({n},)")
    if not (np.isfinite(plan.weights) & (plan.weights >= 0)).all():
        raise ValueError(f"plan {index}: a weight is negative or not finite")
    rows = np.arange(n, dtype=np.int64) if plan.rows is None else plan.rows
    if len(rows) and (rows.min() < 0 or rows.max() >= n):
        raise ValueError(f"plan {index}: rows are {rows.min()}..{rows.max()}; expected 0..{n - 1}")
    if not plan.weights[rows].any():
        raise UnusableBuffer(f"model {index} (seed {plan.seed}) has no step with a weight above 0 among {len(rows)}")
    return rows


def _metrics(
    data: StepData, rows: Ints, weights: Floats, network: MLPWeights, config: AWConfig, curve: Floats
) -> TrainMetrics:
    states = DecisionBatch(data.features[rows], data.mask[rows], data.base_action[rows])
    probs = ControllerPolicy(network).probs_batch(states)
    decided = ControllerPolicy(network, config.decision).probs_batch(states)
    logs = np.log(probs, out=np.zeros_like(probs), where=probs > 0)
    own = weights[rows]
    return TrainMetrics(
        loss=tuple(float(loss) for loss in curve),
        n_steps=len(rows),
        weight_min=float(own.min()),
        weight_mean=float(own.mean()),
        weight_max=float(own.max()),
        ess=effective_sample_size(own),
        entropy=float(-(probs * logs).sum(axis=1).mean()),
        agreement_with_base=float(decided[np.arange(len(rows)), data.base_action[rows]].mean()),
    )


@contextmanager
def _quiet_threads(device: torch.device) -> Generator[None]:
    """One thread on the CPU: matrices this small lose more to waking threads than they gain."""
    before = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
