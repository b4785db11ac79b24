"""Does the log support an estimate of this target? The verdict of DESIGN section 11, and where support is lacking.

By weights: `supported` at an effective sample size of at least 100 with no episode above 5 % of the weight, `weak` at
30. Weights that were drawn cannot show what was not, so both ask two things more. The probability that the target
leaves the actions that the behaviour policy tries is at most 1 % and 5 %: a target that does half of the time what the
behaviour policy never does has equal weights, and an effective sample size of all episodes. And the mean weight, whose
expectation is 1, lies within 3 of its standard errors, sqrt(1/ESS), of it: where it falls short, the few episodes that
carry the target are not among those that were drawn, and the others look alike.

By cells: `weak` at best, since a model carries it, when at least 95 % of the target's decisions fall on (state
cluster, action) cells with at least 20 visits from at least 5 tasks. Where its decisions fall is taken from the
forward pass of the abstract model under the target, not from the states of the log: those are where the *behaviour*
policy goes, and a target that goes elsewhere would be called supported by states that it never sees. A cell that the
log never enters ends the pass there, and the steps that were left count as not supported.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from analysis.ope.abstract_model import AbstractModel
from analysis.ope.logged import Logged
from analysis.ope.weighting import effective_episodes, largest_share, lost_probability
from controllers.data import Bools
from harness_mdp.mdp import ACTIONS

__all__ = ["ActionSupport", "Support", "SupportRules", "SupportVerdict", "measure_support"]


class SupportVerdict(StrEnum):
    """How far an estimate can be trusted."""

    SUPPORTED = "supported"
    WEAK = "weak"
    INSUFFICIENT = "insufficient support"

    @property
    def rank(self) -> int:
        """2, 1, 0: more is better."""
        return {"supported": 2, "weak": 1}.get(self.value, 0)


@dataclass(frozen=True, slots=True)
class SupportRules:
    """The margins."""

    ess_supported: float = 100.0
    """Episodes."""
    ess_weak: float = 30.0
    largest_share: float = 0.05
    """Of the sum of weights, for `supported`."""
    lost_supported: float = 0.01
    """Probability of leaving what the behaviour policy tries; with returns in [0, 1] it bounds the bias."""
    lost_weak: float = 0.05
    mean_weight_errors: float = 3.0
    """Standard errors, sqrt(1/ESS), that the mean weight may lie from 1."""
    cells_share: float = 0.95
    """Of the target's decisions."""
    cell_visits: int = 20
    """Logged steps ..."""
    cell_tasks: int = 5
    """... and tasks that make a cell count."""


@dataclass(frozen=True, slots=True)
class ActionSupport:
    """One structural action under the target."""

    action: str
    visits: int
    """Logged steps that took it."""
    tasks: int
    behaviour: float
    """Share of the logged decisions, by the propensities."""
    target: float
    """Share of the target's decisions, by the abstract model."""
    on_support: float | None
    """Of those, the share on cells that count; None where the target never takes it."""


@dataclass(frozen=True, slots=True)
class Support:
    """The verdict and what it rests on."""

    verdict: SupportVerdict
    """The better of the two."""
    by_weights: SupportVerdict
    by_cells: SupportVerdict
    """`weak` at best."""
    n_episodes: int
    n_tasks: int
    ess: float
    """Episodes."""
    largest_share: float
    """Of the sum of weights."""
    mean_weight: float
    """Its expectation is 1; far below, the episodes that matter were not drawn."""
    lost: float
    """Probability that an episode of the target takes an action which the behaviour policy never takes there."""
    cells_share: float
    """Share of the target's decisions on cells that count."""
    actions: tuple[ActionSupport, ...]

    def sentence(self) -> str:
        """The verdict with its reasons, for a person."""
        weights = (
            f"ESS {self.ess:.0f} of {self.n_episodes} episodes, largest share {self.largest_share:.1%}, "
            f"mean weight {self.mean_weight:.2f}"
        )
        if self.lost > 0:
            weights += f", leaves the logged actions with probability {self.lost:.1%}"
        cells = f"{self.cells_share:.1%} of its decisions on well-visited cells"
        return (
            f"{self.verdict.value} (by weights {self.by_weights.value}: {weights}; "
            f"by cells {self.by_cells.value}: {cells})"
        )


def measure_support(log: Logged, model: AbstractModel, rules: SupportRules | None = None) -> Support:
    """The verdict for the target of `log`.

    Args:
        log: n steps.
        model: of the same log.
        rules: the margins.
    """
    margins = rules or SupportRules()
    ess, share, lost = effective_episodes(log), largest_share(log), lost_probability(log)
    visits, tasks = model.visits()
    counts: Bools = (visits >= margins.cell_visits) & (tasks >= margins.cell_tasks)
    occupancy = model.occupancy()
    total = float(occupancy.decisions.sum() + occupancy.beyond.sum())
    cells = float(occupancy.decisions[counts].sum()) / total
    mean_weight = float(log.mass @ log.weights)
    drawn = ess > 0 and abs(mean_weight - 1.0) <= margins.mean_weight_errors / ess**0.5
    by_weights = _by_weights(ess, share, lost, margins) if drawn else SupportVerdict.INSUFFICIENT
    by_cells = SupportVerdict.WEAK if cells >= margins.cells_share else SupportVerdict.INSUFFICIENT
    return Support(
        verdict=max(by_weights, by_cells, key=lambda verdict: verdict.rank),
        by_weights=by_weights,
        by_cells=by_cells,
        n_episodes=log.n_episodes,
        n_tasks=log.n_tasks,
        ess=ess,
        largest_share=share,
        mean_weight=mean_weight,
        lost=lost,
        cells_share=cells,
        actions=_actions(log, occupancy.decisions, counts),
    )


def _by_weights(ess: float, share: float, lost: float, margins: SupportRules) -> SupportVerdict:
    # A sum of n equal weights may come out a rounding below n.
    if ess >= margins.ess_supported - 1e-6 and share <= margins.largest_share and lost <= margins.lost_supported:
        return SupportVerdict.SUPPORTED
    if ess >= margins.ess_weak - 1e-6 and lost <= margins.lost_weak:
        return SupportVerdict.WEAK
    return SupportVerdict.INSUFFICIENT


def _actions(log: Logged, decisions: np.ndarray, counts: Bools) -> tuple[ActionSupport, ...]:
    mass = log.mass[log.episode]
    behaviour = mass @ log.behaviour / mass.sum()
    taken, kept = decisions.sum(axis=0), np.where(counts, decisions, 0.0).sum(axis=0)
    rows: list[ActionSupport] = []
    for action in ACTIONS:
        own = log.action == action
        rows.append(
            ActionSupport(
                action=action.label,
                visits=int(own.sum()),
                tasks=len(np.unique(log.task[log.episode[own]])),
                behaviour=float(behaviour[action]),
                target=float(taken[action] / decisions.sum()),
                on_support=float(kept[action] / taken[action]) if taken[action] > 0 else None,
            )
        )
    return tuple(rows)
