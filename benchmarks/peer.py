"""d3rlpy 2.8.1 without its printing, and arrays of paper size, for the benchmarks of training and deciding."""

from __future__ import annotations

import contextlib
import io
import logging
from types import ModuleType
from typing import Any

import numpy as np
import torch

from controllers.d3rlpy_learners import as_dataset, network_of, seeded
from controllers.data import StepArrays, StepData
from controllers.network import MLPWeights
from harness_mdp.mdp import N_ACTIONS

__all__ = [
    "BATCH",
    "EPISODES",
    "HIDDEN",
    "LEARNING_RATE",
    "STEPS_PER_EPISODE",
    "bc_peer",
    "cloned_by_peer",
    "paper_size",
    "quiet_d3rlpy",
]

EPISODES, TASKS, STEPS_PER_EPISODE, FEATURES = 1600, 80, 5, 31
HIDDEN, BATCH, LEARNING_RATE = 64, 256, 1e-3


def paper_size(seed: int = 0) -> StepArrays:
    """80 tasks x 20 rollouts of 5 steps, 31 features; actions follow a softmax of the features on random masks."""
    rng = np.random.default_rng(seed)
    n = EPISODES * STEPS_PER_EPISODE
    features = rng.random((n, FEATURES)).astype(np.float32)
    mask = rng.random((n, N_ACTIONS)) < 0.7
    mask[:, 3] = True  # draft is always legal
    logits = features @ rng.normal(0, 0.7, (FEATURES, N_ACTIONS))
    action = np.where(mask, logits + rng.gumbel(size=logits.shape), -np.inf).argmax(axis=1)
    return StepArrays(
        features=features,
        mask=mask,
        action=action,
        base_action=np.where(mask, logits, -np.inf).argmax(axis=1),
        propensities=mask / mask.sum(axis=1, keepdims=True),
        t=np.tile(np.arange(1, STEPS_PER_EPISODE + 1), EPISODES),
        episode=np.repeat(np.arange(EPISODES), STEPS_PER_EPISODE),
        returns=rng.random(EPISODES),
        task=np.repeat(np.arange(TASKS), EPISODES // TASKS),
    )


def quiet_d3rlpy() -> ModuleType:
    """d3rlpy, imported without the notice that Gym prints, and with its log switched off."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        import d3rlpy
        import structlog
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return d3rlpy


def bc_peer(d3rlpy: ModuleType) -> Any:
    """`DiscreteBC(beta=0)` with the network, optimiser and batch of ours, on the CPU."""
    config = d3rlpy.algos.DiscreteBCConfig(
        batch_size=BATCH,
        learning_rate=LEARNING_RATE,
        beta=0.0,
        encoder_factory=d3rlpy.models.VectorEncoderFactory([HIDDEN]),
    )
    return config.create(device="cpu")


def cloned_by_peer(data: StepData, steps: int, seed: int) -> MLPWeights:
    """The network that `DiscreteBC(beta=0)` learns from `data` in so many gradient steps."""
    d3rlpy = quiet_d3rlpy()
    peer = bc_peer(d3rlpy)
    with seeded("discrete_bc", seed, torch.device("cpu")):
        peer.fit(
            as_dataset(data),
            n_steps=steps,
            n_steps_per_epoch=steps,
            logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
            show_progress=False,
        )
    return network_of(peer.impl.modules.imitator)
