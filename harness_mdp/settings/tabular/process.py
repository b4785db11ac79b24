"""The exact distribution of what an episode's course was like, by forward induction over the states.

A statistic is any function of the final state, which counts the steps of each kind and says how the episode
ended; it does not say the difficulty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from harness_mdp.mdp import Action, Policy, Probs, State
from harness_mdp.settings.tabular.graph import TabularMDP
from harness_mdp.settings.tabular.world import LEVELS, level_shares

__all__ = [
    "Statistic",
    "check_before_submit",
    "expected_statistic",
    "final_probabilities",
    "statistic_distribution",
    "submitted",
    "visit_probabilities",
]

Statistic = Callable[[State], float]
"""Ψ of an episode, from its final state."""

Floats = npt.NDArray[np.float64]


def submitted(state: State) -> float:
    """1 where the episode ended by its own submit, and not at the horizon."""
    return float(state.last_action is Action.SUBMIT)


def check_before_submit(state: State) -> float:
    """1 where it ended by its own submit and a check, of whatever version, came before."""
    return float(state.last_action is Action.SUBMIT and state.count(Action.CHECK) > 0)


def visit_probabilities(mdp: TabularMDP, policy: Policy | Probs) -> Floats:
    """(3, n) probability that an episode of a task of each difficulty decides in each state."""
    return _forward(mdp, policy)[:, : mdp.n_states]


def final_probabilities(mdp: TabularMDP, policy: Policy | Probs) -> Floats:
    """(3, m) probability that an episode of a task of each difficulty ends in each final state; rows sum to 1."""
    return _forward(mdp, policy)[:, mdp.n_states :]


def statistic_distribution(
    mdp: TabularMDP, policy: Policy | Probs, statistic: Statistic, levels: Sequence[str] | None = None
) -> dict[float, float]:
    """Value -> probability of Ψ over tasks of difficulties `levels` (None: 20% easy, 60%, 20% hard), ascending."""
    chances = level_shares(levels) @ final_probabilities(mdp, policy)
    found: defaultdict[float, float] = defaultdict(float)
    for state, chance in zip(mdp.final_states, chances.tolist(), strict=True):
        if chance > 0.0:
            found[statistic(state)] += chance
    return dict(sorted(found.items()))


def expected_statistic(
    mdp: TabularMDP, policy: Policy | Probs, statistic: Statistic, levels: Sequence[str] | None = None
) -> float:
    """E[Ψ] over tasks of difficulties `levels`."""
    return sum(value * chance for value, chance in statistic_distribution(mdp, policy, statistic, levels).items())


def _forward(mdp: TabularMDP, policy: Policy | Probs) -> Floats:
    """(3, n + m)"""
    table = mdp.table(policy)
    visits = np.zeros((len(LEVELS), mdp.n_states + mdp.n_final))
    visits[:, 0] = 1.0
    for layer in mdp.layers:
        flow = visits[:, layer, None, None] * table[:, layer, :, None] * mdp.chance[:, layer]
        for level in range(len(LEVELS)):
            np.add.at(visits[level], mdp.successor[layer].ravel(), flow[level].ravel())
    return visits
