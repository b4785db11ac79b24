"""Whether our behaviour cloning and d3rlpy's `DiscreteBC(beta=0)` come to the same policy, at paper size.

`python -m benchmarks.agreement [SETTING ...]`. Nothing is timed. For each setting and behaviour, 20 simulated rollouts
of 80 tasks to learn from and of 20 others to compare on; both learners have the same network, batch and number of
gradient steps, ours without its entropy bonus. d3rlpy knows no masks, so its probabilities are scaled up over the legal
actions. The first column has ours beside d3rlpy's, the second ours beside ours of another training seed: what remains
of a difference when only the draws differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.peer import BATCH, HIDDEN, LEARNING_RATE, cloned_by_peer
from buffers import ReplayBuffer
from controllers.config import AWConfig, Method
from controllers.data import StepData
from controllers.policy import ControllerPolicy
from controllers.training import ModelPlan, train_many
from experiments.collection import collect
from experiments.config import (
    CollectConfig,
    EpsilonPolicyConfig,
    PolicyConfig,
    PortfolioPolicyConfig,
    SettingConfig,
    SimulatedConfig,
)
from harness_mdp.mdp import DecisionBatch, Policy

SETTINGS = ("tabular", "planning", "coding")
BEHAVIOURS: dict[str, PolicyConfig] = {"epsilon": EpsilonPolicyConfig(), "portfolio": PortfolioPolicyConfig()}
EPOCHS = 20


@dataclass(frozen=True, slots=True)
class Agreement:
    """How alike two policies are over some states, each counted as often as it was visited."""

    best: float
    """Share of states with the same most probable legal action."""
    total_variation: float
    """Mean of Σ|p - q|/2."""


def compare(first: Policy, second: Policy, states: StepData) -> Agreement:
    """`first` and `second` on the states of `states`."""
    batch = DecisionBatch(states.features, states.mask, states.base_action)
    p, q = first.probs_batch(batch), second.probs_batch(batch)
    return Agreement(float((p.argmax(axis=1) == q.argmax(axis=1)).mean()), float(np.abs(p - q).sum(axis=1).mean() / 2))


def clones(data: StepData, epochs: int = EPOCHS, seed: int = 0) -> tuple[Policy, Policy, Policy]:
    """Ours, d3rlpy's, and ours with the next seed."""
    config = AWConfig(
        Method.BC, hidden=HIDDEN, batch_size=BATCH, learning_rate=LEARNING_RATE, epochs=epochs, entropy=0.0
    )
    weights = np.ones(len(data.action))
    ours, other = train_many(data, [ModelPlan(seed, weights), ModelPlan(seed + 1, weights)], config)
    theirs = cloned_by_peer(data, epochs * -(-len(data.action) // BATCH), seed)
    return ControllerPolicy(ours.weights), ControllerPolicy(theirs), ControllerPolicy(other.weights)


def buffers(setting: str, behaviour: PolicyConfig, tasks: int = 100, rollouts: int = 20) -> tuple[StepData, StepData]:
    """Simulated steps of the tasks to learn from, and of those held out."""
    with tempfile.TemporaryDirectory(prefix="harness-mdp-agreement-") as folder:
        config = CollectConfig(
            setting=SettingConfig(setting, tasks=tasks),
            executor=SimulatedConfig(),
            policy=behaviour,
            buffer=folder,
            rollouts=rollouts,
            split="all",
        )
        collect(config, quiet=True)
        buffer = ReplayBuffer(folder)
        return buffer.tensors(setting, split="train"), buffer.tensors(setting, split="eval")


def main(arguments: Sequence[str]) -> int:
    """Print one line a setting and behaviour."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("settings", nargs="*", metavar="SETTING", help=f"{', '.join(SETTINGS)} by default")
    print("same best legal action in held-out states, and mean total variation (simulated executor)")
    print(f"{'setting':16}{'behaviour':12}{'steps':>7}{'states':>8}{'ours, d3rlpy':>18}{'ours, ours':>18}")
    for setting in parser.parse_args(arguments).settings or SETTINGS:
        for name, behaviour in BEHAVIOURS.items():
            data, held_out = buffers(setting, behaviour)
            ours, theirs, other = clones(data)
            found = [compare(ours, one, held_out) for one in (theirs, other)]
            cells = "".join(f"{each.best:>10.2%}{each.total_variation:>8.4f}" for each in found)
            print(f"{setting:16}{name:12}{len(data.action):>7}{len(held_out.action):>8}{cells}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
