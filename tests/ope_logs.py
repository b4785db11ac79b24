"""Random logs, and a small deterministic Harness MDP, for the identities of off-policy evaluation."""

from __future__ import annotations

import numpy as np

from controllers.data import StepArrays
from harness_mdp.hashing import generator


def distribution(rng: np.random.Generator, mask: np.ndarray) -> np.ndarray:
    """A random distribution over each row's legal actions, all of them above 0."""
    odds = (rng.exponential(size=mask.shape) + 0.05) * mask
    return odds / odds.sum(axis=1, keepdims=True)


def random_log(seed: int, tasks: int = 4, rollouts: int = 3, horizon: int = 5, features: int = 3) -> StepArrays:
    """`tasks` x `rollouts` episodes of random lengths, masks, propensities and returns."""
    rng = generator("ope log", seed, tasks, rollouts, horizon)
    m = tasks * rollouts
    lengths = rng.integers(1, horizon + 1, size=m)
    episode = np.repeat(np.arange(m), lengths)
    t = np.concatenate([np.arange(1, length + 1) for length in lengths])
    mask = rng.random((len(t), 7)) < 0.6
    mask[:, 3] = True
    propensities = distribution(rng, mask)
    action = np.array([rng.choice(7, p=row) for row in propensities])
    return StepArrays(
        features=np.column_stack([t, rng.integers(0, 3, size=(len(t), features - 1))]).astype(np.float32),
        mask=mask,
        action=action,
        base_action=np.full(len(t), 3),
        propensities=propensities,
        t=t,
        episode=episode,
        returns=rng.random(m),
        task=np.repeat(np.arange(tasks), rollouts),
    )


def other_target(log: StepArrays, seed: int) -> np.ndarray:
    """A random target with full support on the legal actions of `log`."""
    return distribution(generator("ope target", seed), log.mask)


def shuffled(log: StepArrays, seed: int) -> tuple[StepArrays, np.ndarray]:
    """The same log with episodes renumbered and steps in any order, and where each row came from."""
    rng = generator("ope shuffle", seed)
    new = rng.permutation(len(log.returns))  # new[i] is the new number of episode i
    rows = rng.permutation(len(log.action))
    old = np.argsort(new)
    return (
        StepArrays(
            log.features[rows],
            log.mask[rows],
            log.action[rows],
            log.base_action[rows],
            log.propensities[rows],
            log.t[rows],
            new[log.episode[rows]],
            log.returns[old],
            log.task[old],
        ),
        rows,
    )
