"""Training at paper size, beside d3rlpy's `DiscreteBC(beta=0)` with the same network, batch and steps.

`python -m benchmarks.training`. One model, and the six of a setting (two methods of three seeds) in one stack beside
six runs of d3rlpy, which is six times its median run. Ours does more in the same steps: legal masks, weights, an
entropy bonus, the checks of the data and the metrics at the end. Runs alternate, so that both meet the same machine;
CPU seconds are printed too, since wall time on a busy machine says little. Both have one torch thread, with which
d3rlpy is faster at this size than with more.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from types import ModuleType
from typing import Any

import numpy as np
import torch

from benchmarks.peer import BATCH, HIDDEN, LEARNING_RATE, bc_peer, paper_size, quiet_d3rlpy
from benchmarks.table import REPEATS, Line, Report, text
from controllers.config import AWConfig, Method
from controllers.data import StepArrays
from controllers.training import ModelPlan, TrainResult, step_weights, train, train_many
from harness_mdp.mdp import N_ACTIONS

EPOCHS = 20
SEEDS = 3
STACK = 2 * SEEDS
"""Models in the stacked line: advantage-weighted regression and behaviour cloning, three seeds of each."""
GOAL = 3.0
STACK_GOAL = 6.0
PEER = "d3rlpy"


def measure() -> Report:
    """Seconds of wall and of CPU that training one model takes."""
    torch.set_num_threads(1)
    d3rlpy = quiet_d3rlpy()
    data = paper_size()
    steps_per_epoch = -(-len(data.action) // BATCH)
    dataset = as_dataset(d3rlpy, data)
    aw = AWConfig(hidden=HIDDEN, batch_size=BATCH, learning_rate=LEARNING_RATE, epochs=EPOCHS)
    bc = AWConfig(Method.BC, hidden=HIDDEN, batch_size=BATCH, learning_rate=LEARNING_RATE, epochs=EPOCHS)

    def fit_peer() -> Any:
        peer = bc_peer(d3rlpy)
        peer.fit(
            dataset,
            n_steps=EPOCHS * steps_per_epoch,
            n_steps_per_epoch=steps_per_epoch,
            logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
            show_progress=False,
        )
        return peer

    def fit_stack() -> Any:
        """Both methods in one call, which is how a setting is trained; making the weights is part of it."""
        plans = [ModelPlan(seed, step_weights(data, one)[0]) for one in (aw, bc) for seed in range(SEEDS)]
        return train_many(data, plans, aw)

    stacked = f"{STACK} models in a stack"
    jobs: dict[str, Callable[[], Any]] = {
        "behaviour cloning, one model": lambda: train(data, bc, seed=0),
        "advantage-weighted regression, one model": lambda: train(data, aw, seed=0),
        stacked: fit_stack,
        PEER: fit_peer,
    }
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    fitted: dict[str, Any] = {}
    for _ in range(REPEATS + 1):  # the first round warms up and does not count
        for name, job in jobs.items():
            wall, cpu = perf_counter(), process_time()
            fitted[name] = job()
            spent[name].append((perf_counter() - wall, process_time() - cpu))
    fits = require_learned(data, fitted["behaviour cloning, one model"], fitted[PEER])
    middle = {name: [median(run[k] for run in runs[1:]) for k in (0, 1)] for name, runs in spent.items()}
    peer = middle.pop(PEER)
    lines: list[Line] = []
    for name, ours in middle.items():
        runs, goal = (STACK, STACK_GOAL) if name == stacked else (1, GOAL)
        label = f"{name}, beside {STACK} runs" if name == stacked else name
        lines.append(Line(label, "s", ours[0], runs * peer[0], goal))
        lines.append(Line(label, "s of CPU", ours[1], runs * peer[1], None))
    return Report(
        title="training",
        peer="d3rlpy's DiscreteBC(beta=0)",
        setup=f"{len(data.returns)} episodes, {len(data.action)} steps, {EPOCHS} epochs of {steps_per_epoch} batches "
        f"of {BATCH}, hidden {HIDDEN}, 1 torch thread; negative log-likelihood under the legal masks: ours "
        f"{fits[0]:.3f}, d3rlpy {fits[1]:.3f}; median of {REPEATS}",
        lines=tuple(lines),
    )


def as_dataset(d3rlpy: ModuleType, data: StepArrays) -> Any:
    """The same steps as an `MDPDataset`, with the return on the last step of an episode."""
    last = np.append(np.diff(data.episode) != 0, True)
    rewards = np.where(last, data.returns[data.episode], 0.0).astype(np.float32)
    return d3rlpy.dataset.MDPDataset(
        data.features,
        data.action[:, None],
        rewards[:, None],
        last.astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=N_ACTIONS,
    )


def require_learned(data: StepArrays, ours: TrainResult, peer: Any) -> list[float]:
    """Both must fit the actions alike once the same masks are put on both, or the comparison means nothing."""
    features, mask = torch.from_numpy(data.features), torch.from_numpy(data.mask)
    net = {name: torch.from_numpy(array) for name, array in ours.weights.tensors().items()}
    mine = torch.relu(features @ net["w1"] + net["b1"]) @ net["w2"] + net["b2"]
    with torch.no_grad():
        theirs = peer.impl.modules.imitator(features).logits
    fits = [
        torch.nn.functional.cross_entropy(z.masked_fill(~mask, -torch.inf), torch.from_numpy(data.action)).item()
        for z in (mine, theirs)
    ]
    if fits[0] > fits[1] + 0.02:
        raise AssertionError("ours fits worse than the peer")
    return fits


if __name__ == "__main__":
    print(text(measure()))
