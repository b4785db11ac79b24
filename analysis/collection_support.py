r"""What a buffer lacks, and what collecting with another mixture would add (support is designed at collection).

A pair is a state cluster and an action. It is *sensible* where somebody would take it: a script or controller proposes
it there, or it is legal and costs next to nothing. A sensible pair *lacks data* below 20 visits or 5 tasks: what no
learner should be asked about, and what `analysis.ope` does not count as well visited.

What a mixture m would add is the expected number of visits of an episode, by importance weighting of the logged steps.
With :math:`\rho_{i,1:t} = \prod_{u \le t} m(a_{i,u}|s_{i,u}) / \mu(a_{i,u}|s_{i,u})`, an ended episode keeping its
ratio, and :math:`v_i` the share of episode i in the log (tasks weigh equally),

.. math::

    \hat N_m(c, a) = \sum_t \frac{\sum_i v_i\, \rho_{i,1:t-1}\, 1[s_{i,t} \in c]\, m(a|s_{i,t})}
                                 {\sum_i v_i\, \rho_{i,1:t-1}}

Its limit: states that the log never entered weigh nothing. What follows an action that was never taken is not seen, so
pairs further on than the first missing one are underestimated; and a mixture far from what collected rests on few
episodes (its ESS). One round of collection at a time, then ask again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.ope.logged import Logged, logged
from analysis.ope.support import SupportRules
from analysis.ope.weighting import effective_episodes
from analysis.state_words import WordedClusters
from controllers.data import Bools, Floats, Ints, StepData
from harness_mdp.errors import ConfigError
from harness_mdp.mdp import ACTIONS, N_ACTIONS, Action, Probs

__all__ = ["LEAST_ESS", "Addition", "LackRules", "StatePair", "addition", "choose", "rollouts_needed", "state_pairs"]


LEAST_ESS = SupportRules().ess_weak
"""Effective episodes behind an estimate that a suggestion may rest on."""


@dataclass(frozen=True, slots=True)
class LackRules:
    """What is sensible, and what is too little."""

    visits: int = 20
    """Logged steps ..."""
    tasks: int = 5
    """... and tasks below which a pair lacks data."""
    proposed: float = 0.05
    """Mean probability in a cluster from which a policy proposes an action there."""
    cheap: float = 0.25
    """Tokens of an action, as a share of those of a draft, up to which it is cheap; 0 leaves such pairs out."""
    cheap_states: float = 0.05
    """Share of all logged states that a cluster holds at least, for its cheap actions to count."""

    def __post_init__(self) -> None:
        if self.visits < 1 or self.tasks < 1:
            raise ConfigError(f"visits={self.visits} and tasks={self.tasks}; expected at least 1 each")
        for name in ("proposed", "cheap", "cheap_states"):
            value: float = getattr(self, name)
            if not 0.0 <= value <= 1.0 or (name == "proposed" and value == 0.0):
                raise ConfigError(f"{name}={value}; expected a share, {'above 0' if name == 'proposed' else '0'} to 1")


@dataclass(frozen=True, slots=True)
class StatePair:
    """A sensible (state cluster, action)."""

    cluster: int
    state: str
    """The cluster in words."""
    action: Action
    states: int
    """Logged states of the cluster."""
    visits: int
    """Of them, those where the action was taken."""
    tasks: int
    """Tasks that those come from."""
    behaviour: float
    """Mean probability that what collected gave it there."""
    proposed_by: tuple[str, ...]
    """Policies, the most decided first; empty for a pair that is only legal and cheap."""
    missing: int
    """Visits that it lacks (one for each task that it lacks, where that is more); 0 for a pair with enough data."""

    @property
    def column(self) -> int:
        """Place in a flat (C·7,) array."""
        return self.cluster * N_ACTIONS + self.action


@dataclass(frozen=True, slots=True)
class Addition:
    """What an episode under one mixture is expected to bring."""

    name: str
    visits: tuple[float, ...]
    """Expected visits of each pair asked for, an episode."""
    steps: float
    """Expected steps of an episode."""
    tokens: float
    """Expected tokens of an episode."""
    ess: float
    """Effective number of logged episodes behind it."""

    def filled(self, pairs: Sequence[StatePair], episodes: int) -> int:
        """Pairs that are expected to lack nothing after so many episodes."""
        return sum(rate * episodes >= pair.missing for rate, pair in zip(self.visits, pairs, strict=True))

    def share(self, pairs: Sequence[StatePair], episodes: int) -> float:
        """Mean over pairs of the share of what they lack that so many episodes are expected to bring."""
        shares = [min(1.0, rate * episodes / pair.missing) for rate, pair in zip(self.visits, pairs, strict=True)]
        return float(np.mean(shares)) if shares else 1.0


def state_pairs(
    data: StepData,
    clusters: WordedClusters,
    cluster: Ints,
    proposals: Mapping[str, Probs],
    tokens: Floats,
    rules: LackRules,
) -> tuple[StatePair, ...]:
    """Every sensible pair of the log: those that lack data first, the most often met of them first.

    Args:
        data: n steps of m episodes.
        clusters: C clusters.
        cluster: (n,) 0 .. C-1.
        proposals: policy -> (n, 7) what it does at each step.
        tokens: (n,) tokens of each step.
        rules: what is sensible and what is too little.
    """
    size = len(clusters.labels)
    states = np.bincount(cluster, minlength=size)
    visits, tasks = _visits(data, cluster, size)
    behaviour = _means(cluster, data.propensities, size)
    shares = {name: _means(cluster, probs, size) for name, probs in proposals.items()}
    legal = _means(cluster, data.mask.astype(np.float64), size) == 1.0
    cheap = _cheap(data, tokens, rules) & legal & (states >= rules.cheap_states * len(cluster))[:, None]
    found: list[StatePair] = []
    for c in range(size):
        for action in ACTIONS:
            by = [name for name in shares if shares[name][c, action] >= rules.proposed]
            if not by and not cheap[c, action]:
                continue
            lacks = visits[c, action] < rules.visits or tasks[c, action] < rules.tasks
            short = max(rules.visits - int(visits[c, action]), rules.tasks - int(tasks[c, action]))
            found.append(
                StatePair(
                    cluster=c,
                    state=clusters.labels[c],
                    action=action,
                    states=int(states[c]),
                    visits=int(visits[c, action]),
                    tasks=int(tasks[c, action]),
                    behaviour=float(behaviour[c, action]),
                    proposed_by=tuple(sorted(by, key=lambda name: -float(shares[name][c, action]))),
                    missing=short if lacks else 0,
                )
            )
    return tuple(sorted(found, key=lambda p: (p.missing == 0, not p.proposed_by, -p.states, p.column)))


def addition(
    name: str, data: StepData, mixture: Probs, cluster: Ints, tokens: Floats, pairs: Sequence[StatePair]
) -> Addition:
    """What an episode under `mixture` is expected to bring to each of `pairs`; see the module for the estimator.

    Args:
        name: of the mixture.
        data: n steps of m episodes, ordered by (episode, t).
        mixture: (n, 7) its probabilities at each step.
        cluster: (n,) cluster of each step.
        tokens: (n,) tokens of each step.
        pairs: what is asked for.

    Raises:
        UnusableBuffer: a taken action has propensity 0, or there are no steps.
    """
    log = logged(data, mixture)
    weight = _occupancy(log)
    size = int(cluster.max()) + 1
    visits = np.zeros((size, N_ACTIONS))
    np.add.at(visits, cluster, weight[:, None] * mixture)
    return Addition(
        name=name,
        visits=tuple(float(visits.reshape(-1)[pair.column]) for pair in pairs),
        steps=float(weight.sum()),
        tokens=float((weight[:, None] * mixture).sum(axis=0) @ _tokens_of(data, tokens)),
        ess=effective_episodes(log),
    )


def choose(additions: Sequence[Addition], pairs: Sequence[StatePair], episodes: int) -> Addition:
    """The mixture that is expected to leave the fewest pairs lacking after so many episodes.

    Where several do, the one that brings the larger share of what is missing; then the first. Estimates that rest on
    too few episodes do not count, unless all do.
    """
    sound = [each for each in additions if each.ess >= LEAST_ESS]
    return max(
        sound or additions, key=lambda each: (each.filled(pairs, episodes), round(each.share(pairs, episodes), 6))
    )


def rollouts_needed(chosen: Addition, pairs: Sequence[StatePair], tasks: int, most: int) -> int:
    """The fewest rollouts of `tasks` tasks that fill as many pairs as `most` rollouts do; `most` if those fill none."""
    goal = chosen.filled(pairs, tasks * most)
    if goal == 0:
        return most
    return next(n for n in range(1, most + 1) if chosen.filled(pairs, tasks * n) == goal)


def _occupancy(log: Logged) -> Floats:
    """(n,) expected visits of an episode that each logged step stands for."""
    weight = log.mass[:, None] * log.cumulative[:, :-1]
    total = weight.sum(axis=0)
    shares = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    return shares[log.episode, log.t - 1]


def _visits(data: StepData, cluster: Ints, size: int) -> tuple[Ints, Ints]:
    """Logged steps in each cell (C, 7), and tasks they come from (C, 7)."""
    cell = cluster * N_ACTIONS + data.action
    pairs = np.unique(np.stack([cell, data.task[data.episode]]), axis=1)[0]
    visits, tasks = (np.bincount(each, minlength=size * N_ACTIONS).reshape(-1, N_ACTIONS) for each in (cell, pairs))
    return visits, tasks


def _means(cluster: Ints, values: Floats, size: int) -> Floats:
    """(C, 7) means of (n, 7) by cluster."""
    sums = np.zeros((size, N_ACTIONS))
    np.add.at(sums, cluster, values)
    means: Floats = sums / np.maximum(np.bincount(cluster, minlength=size), 1)[:, None]
    return means


def _tokens_of(data: StepData, tokens: Floats) -> Floats:
    """(7,) mean tokens of each action; that of all steps where it was never taken."""
    counts = np.bincount(data.action, minlength=N_ACTIONS)
    sums = np.bincount(data.action, weights=tokens, minlength=N_ACTIONS)
    means: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), tokens.mean())
    return means


def _cheap(data: StepData, tokens: Floats, rules: LackRules) -> Bools:
    """(7,) actions that were taken and cost little beside a draft; submit ends the episode and is never cheap."""
    means = _tokens_of(data, tokens)
    draft = means[Action.DRAFT]
    taken = np.bincount(data.action, minlength=N_ACTIONS) > 0
    cheap: Bools = taken & (means <= rules.cheap * draft) & (np.arange(N_ACTIONS) != Action.SUBMIT)
    return cheap if rules.cheap > 0 else np.zeros(N_ACTIONS, dtype=np.bool_)
