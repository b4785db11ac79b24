"""d3rlpy's discrete learners on logged steps, carried over into plain arrays (DESIGN section 8).

d3rlpy 2.8.1 trains; what decides afterwards is our numpy, with legal masks. d3rlpy knows no masks: its CQL, BCQ, SAC,
double DQN and NFQ back up the value of actions that may be illegal in the next state, and nothing here changes that.
Its defaults hold for all that `D3Config` does not name, with two exceptions:

- the target network is renewed every `TARGET_INTERVAL` gradient steps, not every 8,000, which with the few thousand
  steps of a training would be never: values would then be those of one step and a random network;
- the imitator of BCQ has no penalty on its logits, which would flatten what the threshold is compared with.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from buffers.d3rlpy_dataset import mdp_dataset, quiet_d3rlpy
from controllers.config import D3Config, Method
from controllers.data import StepData, check_steps
from controllers.gated_q import GatedQ
from controllers.kinds import Controller
from controllers.network import Float32, MLPWeights
from controllers.policy import ControllerPolicy
from controllers.q_function import ValuePolicy
from controllers.training import open_device
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import generator

if TYPE_CHECKING:
    from d3rlpy.algos import NFQ, DiscreteBCQ, DiscreteCQL, DiscreteSAC, DoubleDQN
    from d3rlpy.dataset import MDPDataset

    Learner = DiscreteCQL | DiscreteBCQ | DiscreteSAC | DoubleDQN | NFQ

__all__ = ["TARGET_INTERVAL", "as_dataset", "carry_over", "fit_d3rlpy", "network_of", "seeded", "train_d3rlpy"]

TARGET_INTERVAL = 100
"""Gradient steps between renewals of the target network (NFQ renews it at every one): with the default of 2,000 steps
a return can travel back over 20 decisions, twice the usual horizon."""

_SMALLEST = float(np.finfo(np.float64).tiny)


def fit_d3rlpy(data: StepData, config: D3Config, seed: int, device: str = "cpu") -> Controller:
    """One of d3rlpy's learners, trained on `data`; decides with numpy alone, and never an illegal action.

    Args:
        data: n steps.
        config: learner and sizes.
        seed: of starting weights and minibatches; the same seed gives the same controller.
        device: `cpu`, `cuda` or `auto`, for training.

    Raises:
        UnusableBuffer: see `check_steps`.
        ConfigError: no such device, or training diverged.
    """
    return carry_over(train_d3rlpy(data, config, seed, device), config, seed)


def train_d3rlpy(data: StepData, config: D3Config, seed: int, device: str = "cpu") -> Learner:
    """The same as d3rlpy's own object, e.g. to save it in d3rlpy's format.

    Raises:
        As `fit_d3rlpy`, but for divergence.
    """
    check_steps(data)
    target = open_device(device)
    dataset = as_dataset(data)
    from d3rlpy.logging import NoopAdapterFactory

    learner = _create(config, str(target))
    with seeded(config.method.value, seed, target):
        learner.fit(
            dataset,
            n_steps=config.steps,
            n_steps_per_epoch=config.steps,
            logger_adapter=NoopAdapterFactory(),
            show_progress=False,
        )
    return learner


def as_dataset(data: StepData) -> MDPDataset:
    """`data` as d3rlpy wants it: steps in order, episodes one after another; no step is lost.

    Episodes without a step (a budget that was spent at once) are not in it: there is no decision in them.
    """
    order = np.lexsort((data.t, data.episode))
    lengths = np.bincount(data.episode, minlength=len(data.returns))
    acted = lengths > 0
    return mdp_dataset(data.features[order], data.action[order], lengths[acted], data.returns[acted], batched=True)


def carry_over(learner: Learner, config: D3Config, seed: int = 0) -> Controller:
    """The networks of a trained learner as a controller.

    Q learners become the mean of their critics, greedy over the legal actions (BCQ: that its imitator finds likely
    enough), SAC the softmax of its policy network over the legal actions.

    Raises:
        ConfigError: a weight is not finite, because training diverged.
    """
    from d3rlpy.algos import DiscreteBCQ, DiscreteSAC
    from d3rlpy.algos.qlearning.torch.bcq_impl import DiscreteBCQModules

    if learner.impl is None:
        raise ValueError(f"{config.method} has not been trained")
    try:
        if isinstance(learner, DiscreteSAC):
            return ControllerPolicy(network_of(learner.impl.policy), name=config.method.value)
        critics = [network_of(critic) for critic in learner.impl.q_function]
        if isinstance(learner, DiscreteBCQ):
            modules = learner.impl.modules
            assert isinstance(modules, DiscreteBCQModules)
            q = GatedQ(critics, network_of(modules.imitator), config.threshold)
        else:
            q = GatedQ(critics)
    except ValueError as problem:
        raise ConfigError(
            f"training {config.method} diverged with seed {seed} ({problem}). Lower learning_rate "
            f"({config.learning_rate:g}) or gamma ({config.gamma:g})"
        ) from problem
    return ValuePolicy(q, config.method.value)


def _create(config: D3Config, device: str) -> Learner:
    quiet_d3rlpy()
    from d3rlpy.algos import DiscreteBCQConfig, DiscreteCQLConfig, DiscreteSACConfig, DoubleDQNConfig, NFQConfig
    from d3rlpy.models import VectorEncoderFactory

    encoder = VectorEncoderFactory([config.hidden])
    rate, size, gamma = config.learning_rate, config.batch_size, config.gamma
    match config.method:
        case Method.CQL:
            made = DiscreteCQLConfig(
                learning_rate=rate,
                batch_size=size,
                gamma=gamma,
                encoder_factory=encoder,
                target_update_interval=TARGET_INTERVAL,
                alpha=config.alpha,
            )
        case Method.BCQ:
            made = DiscreteBCQConfig(
                learning_rate=rate,
                batch_size=size,
                gamma=gamma,
                encoder_factory=encoder,
                target_update_interval=TARGET_INTERVAL,
                action_flexibility=max(config.threshold, _SMALLEST),  # d3rlpy takes its logarithm
                beta=0.0,
            )
        case Method.SAC:
            made = DiscreteSACConfig(
                actor_learning_rate=rate,
                critic_learning_rate=rate,
                temp_learning_rate=rate,
                batch_size=size,
                gamma=gamma,
                actor_encoder_factory=encoder,
                critic_encoder_factory=encoder,
                target_update_interval=TARGET_INTERVAL,
            )
        case Method.DOUBLE_DQN:
            made = DoubleDQNConfig(
                learning_rate=rate,
                batch_size=size,
                gamma=gamma,
                encoder_factory=encoder,
                target_update_interval=TARGET_INTERVAL,
            )
        case Method.NFQ:
            made = NFQConfig(learning_rate=rate, batch_size=size, gamma=gamma, encoder_factory=encoder)
        case _:
            raise ConfigError(f"method is {config.method}; expected a learner of d3rlpy")
    return made.create(device=device)


def network_of(module: nn.Module) -> MLPWeights:
    """One hidden ReLU layer and a linear one on top, as d3rlpy builds critics, policies and imitators.

    Raises:
        ValueError: a value is not finite.
    """
    hidden, out = (layer for layer in module.modules() if isinstance(layer, nn.Linear))

    def array(tensor: torch.Tensor) -> Float32:
        return np.ascontiguousarray(tensor.detach().cpu().numpy().astype(np.float32))

    return MLPWeights(w1=array(hidden.weight.T), b1=array(hidden.bias), w2=array(out.weight.T), b2=array(out.bias))


@contextmanager
def seeded(learner: str, seed: int, device: torch.device) -> Generator[None]:
    """d3rlpy draws from the global generators: they are seeded for it, and put back as they were.

    One thread on the CPU, because sums in another order are other sums, and small matrices are no slower.
    """
    rng = generator("controller", "d3rlpy", learner, seed)
    threads, legacy, plain = torch.get_num_threads(), np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if device.type == "cuda" else []):
        try:
            if device.type == "cpu":
                torch.set_num_threads(1)
            torch.manual_seed(int(rng.integers(2**63)))
            np.random.seed(rng.integers(2**32, size=4, dtype=np.uint32))  # noqa: NPY002
            random.seed(int(rng.integers(2**63)))
            yield
        finally:
            torch.set_num_threads(threads)
            np.random.set_state(legacy)  # noqa: NPY002
            random.setstate(plain)
