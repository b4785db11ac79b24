"""Exact values, exact optimum and exact one-step improvement, by backward induction.

    Q_h(s, a) = Σ_s' P(s' | s, a) V_{h+1}(s'),   V_h(s) = Σ_a π(a | s) Q_h(s, a),   V(final) = terminal quality

(Puterman, Markov Decision Processes, 1994, section 4.3.) The stage is part of the state. A policy reads features, which
tell the difficulty of a task only once there is evidence. Until then nothing depends on it but what will be told, so it
is as the tasks are dealt, and Q there is the mean over difficulties: what a policy can know, and all that it could use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from harness_mdp.mdp import Action, Policy, Probs
from harness_mdp.settings.tabular.graph import TabularMDP
from harness_mdp.settings.tabular.policies import FeatureTable
from harness_mdp.settings.tabular.world import LEVELS, level_shares

__all__ = [
    "exact_q",
    "exact_value",
    "one_step_improvement",
    "optimal_policy",
    "optimal_q",
    "optimal_value",
    "state_values",
]

Floats = npt.NDArray[np.float64]

TIE = 1e-12
"""Actions whose Q differ by less are equally good; then submit is preferred, and after it the lower index."""

_Decide = Callable[[Floats, slice], Floats]


def exact_value(mdp: TabularMDP, policy: Policy | Probs, levels: Sequence[str] | None = None) -> float:
    """V^π at the start, averaged over tasks: what the mean return of infinitely many episodes would be.

    Args:
        mdp: the MDP.
        policy: π, or its table (`TabularMDP.table`).
        levels: the difficulty of each task, e.g. `["hard"]` for one hard task; None: 20% easy, 60%, 20% hard.
    """
    return float(level_shares(levels) @ state_values(mdp, policy)[:, 0])


def state_values(mdp: TabularMDP, policy: Policy | Probs) -> Floats:
    """V^π (3, n): by the difficulty of the task and state, known or not."""
    table = mdp.table(policy)
    _, values = _backward(mdp, lambda q, layer: (table[:, layer] * q).sum(axis=2), None)
    return values


def exact_q(mdp: TabularMDP, policy: Policy | Probs, levels: Sequence[str] | None = None) -> Floats:
    """Q^π (3, n, 7) given what features show, on tasks of difficulties `levels`; 0 where illegal."""
    table = mdp.table(policy)
    q, _ = _backward(mdp, lambda q, layer: (table[:, layer] * q).sum(axis=2), level_shares(levels))
    return q


def optimal_q(mdp: TabularMDP, levels: Sequence[str] | None = None) -> Floats:
    """Q* (3, n, 7): the best that any policy of the features can reach; 0 where illegal."""
    q, _ = _backward(mdp, lambda q, layer: np.where(mdp.mask[layer], q, -np.inf).max(axis=2), level_shares(levels))
    return q


def optimal_policy(mdp: TabularMDP, levels: Sequence[str] | None = None) -> FeatureTable:
    """A policy that reaches `optimal_value`; deterministic, submits where that is as good as anything else."""
    return FeatureTable("optimal", mdp, _greedy(mdp, optimal_q(mdp, levels)))


def optimal_value(mdp: TabularMDP, levels: Sequence[str] | None = None) -> float:
    """V* at the start, averaged over tasks of difficulties `levels`."""
    return exact_value(mdp, optimal_policy(mdp, levels), levels)


def one_step_improvement(mdp: TabularMDP, policy: Policy | Probs, levels: Sequence[str] | None = None) -> FeatureTable:
    """argmax_a Q^π(s, a): the greedy policy with respect to the behaviour's exact Q (one step of policy iteration)."""
    return FeatureTable("one_step_improvement", mdp, _greedy(mdp, exact_q(mdp, policy, levels)))


def _backward(mdp: TabularMDP, decide: _Decide, shares: Floats | None) -> tuple[Floats, Floats]:
    """(Q, V); with `shares`, both are means over difficulties where the difficulty is not told."""
    q = np.zeros(mdp.chance.shape[:3])
    final = np.tile(mdp.quality, (len(LEVELS), 1))
    values = np.concatenate([np.zeros((len(LEVELS), mdp.n_states)), final], axis=1)
    for layer in reversed(mdp.layers):
        q[:, layer] = (mdp.chance[:, layer] * values[:, mdp.successor[layer]]).sum(axis=3)
        if shares is not None:
            pooled = np.einsum("l,lna->na", shares, q[:, layer])
            q[:, layer] = np.where(mdp.told[layer, None], q[:, layer], pooled)
        values[:, layer] = decide(q[:, layer], layer)
    return q, values[:, : mdp.n_states]


def _greedy(mdp: TabularMDP, q: Floats) -> Probs:
    """(3, n, 7) one-hot on the best legal action."""
    legal = np.where(mdp.mask, q, -np.inf)
    best = legal >= legal.max(axis=2, keepdims=True) - TIE
    order = [Action.SUBMIT, *(action for action in Action if action is not Action.SUBMIT)]
    choice = np.array(order)[best[:, :, order].argmax(axis=2)]
    return np.eye(len(order))[choice]
