r"""Estimators that weigh logged episodes, with or without a value model beside.

With :math:`w_i = \rho_{i,1:T_i}`, means over the log (tasks weigh equally):

.. math::

    \mathrm{IS} = \overline{w_i G_i}, \qquad \mathrm{WIS} = \overline{w_i G_i} \,/\, \overline{w_i}

    \mathrm{PDIS} = \overline{\textstyle\sum_t \rho_{i,1:t}\, r_{i,t}}, \qquad
    \mathrm{WPDIS} = \sum_t \overline{\rho_{i,1:t}\, r_{i,t}} \,/\, \overline{\rho_{i,1:t}}

    \mathrm{DR} = \overline{\textstyle\sum_t \rho_{i,1:t} (r_{i,t} - \hat Q(s_{i,t}, a_{i,t}))
        + \rho_{i,1:t-1} \hat V(s_{i,t})}, \qquad \hat V(s) = \sum_a \pi(a|s)\, \hat Q(s,a)

and WDR as DR with every :math:`\rho_{1:t}` divided by its mean (Precup, Sutton and Singh 2000; Jiang and Li 2016;
Thomas and Brunskill 2016). In the weighted sums an ended episode keeps its ratio in the denominators of all later
steps. With a terminal reward alone PDIS is IS.
"""

from __future__ import annotations

import numpy as np

from analysis.ope.intervals import Terms, mean_terms
from analysis.ope.logged import Logged
from controllers.awr import effective_sample_size
from controllers.data import Floats
from harness_mdp.mdp import Probs

__all__ = [
    "doubly_robust",
    "doubly_robust_values",
    "effective_episodes",
    "expected_value",
    "importance_sampling",
    "largest_share",
    "lost_probability",
    "per_decision",
    "weighted_doubly_robust",
    "weighted_importance_sampling",
    "weighted_per_decision",
]


def importance_sampling(log: Logged) -> Terms:
    """IS: unbiased where the behaviour policy tries all that the target does."""
    return mean_terms(log.per_task(log.weights * log.returns))


def weighted_importance_sampling(log: Logged) -> Terms:
    """WIS: biased, of much smaller variance, and within the range of the returns."""
    return Terms(log.per_task(log.weights * log.returns)[:, None], log.per_task(log.weights)[:, None])


def per_decision(log: Logged) -> Terms:
    """PDIS: a reward is weighed by the decisions up to it, and by no later one."""
    return mean_terms(log.per_task((log.cumulative * _rewards(log)).sum(axis=1)))


def weighted_per_decision(log: Logged) -> Terms:
    """WPDIS: each step's rewards divided by that step's mean ratio."""
    return Terms(log.per_task(log.cumulative * _rewards(log)), log.per_task(log.cumulative))


def doubly_robust(log: Logged, q: Floats) -> Terms:
    """DR: unbiased whatever the value model, if that was not fitted on the episode's own task.

    Args:
        log: n steps.
        q: (n, 7) Q̂ of the target; illegal actions are not read.
    """
    return mean_terms(log.per_task(doubly_robust_values(log, q)))


def doubly_robust_values(log: Logged, q: Floats) -> Floats:
    """(m,) the DR estimate of each episode."""
    return (log.cumulative * _corrections(log, q)).sum(axis=1)


def weighted_doubly_robust(log: Logged, q: Floats) -> Terms:
    """WDR: DR with each step's ratios divided by their mean."""
    return Terms(log.per_task(log.cumulative * _corrections(log, q)), log.per_task(log.cumulative))


def effective_episodes(log: Logged) -> float:
    """ESS = (Σw)²/Σw² of the m weights: m under the behaviour policy, 1 when one episode is all."""
    return effective_sample_size(log.weights)


def largest_share(log: Logged) -> float:
    """Share of the heaviest episode in the sum of weights; 1 where nothing has weight."""
    total = float(log.weights.sum())
    return float(log.weights.max()) / total if total > 0 else 1.0


def lost_probability(log: Logged) -> float:
    r"""Probability that an episode of the target takes an action that the behaviour policy never takes there.

    No weight shows it: such episodes are not in the log. With :math:`\ell(s) = \sum_a \pi(a|s)\,1[\mu(a|s) = 0]` it
    is the mean of :math:`\sum_t \rho_{1:t-1}\, \ell(s_t)`, without bias; returns in [0, 1] bound the bias of IS by it.
    """
    leak = np.where(log.behaviour > 0, 0.0, log.target).sum(axis=1)
    before = log.cumulative[log.episode, log.t - 1]
    return float(log.mass[log.episode] @ (before * leak))


def _rewards(log: Logged) -> Floats:
    """(m, H+1) r_t; column 0 is the return that no step earned, which needs no ratio."""
    rewards = log.by_step(log.rewards)
    rewards[:, 0] = log.unearned
    return rewards


def _corrections(log: Logged, q: Floats) -> Floats:
    """(m, H+1) r_t - Q̂(s_t, a_t) + V̂(s_{t+1}) at column t; V̂(s_1) at column 0."""
    if q.shape != log.target.shape:
        raise ValueError(f"Q has shape {q.shape}; expected {log.target.shape}, one row a step")
    taken = log.by_step(q[np.arange(len(q)), log.action])
    following = np.zeros(taken.shape)
    following[log.episode, log.t - 1] = expected_value(log.target, q)
    return _rewards(log) - taken + following


def expected_value(probs: Probs, q: Floats) -> Floats:
    """(n,) Σ_a π(a|s)·Q(s, a); actions of probability 0 are not read, whatever stands there."""
    values: Floats = np.where(probs > 0, probs * q, 0.0).sum(axis=1)
    return values
