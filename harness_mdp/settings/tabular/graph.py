"""The MDP as arrays: every state that can be reached, what each action leads to, and with which chance.

The difficulty of a task is fixed for an episode. So there are three MDPs with the same states and successors; what
differs is the chance of each successor, and the two flags that tell the difficulty once there is evidence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from harness_mdp.mdp import ACTIONS, N_ACTIONS, Action, DecisionBatch, Policy, Probs, State, ended, legal_mask, start
from harness_mdp.settings.scripts import decision_point
from harness_mdp.settings.tabular.setting import Tabular, missing_figures
from harness_mdp.settings.tabular.transitions import Outcome, as_level, following, outcomes
from harness_mdp.settings.tabular.world import FIGURES, LEVELS

__all__ = ["TabularMDP", "tabular_mdp"]

MAX_OUTCOMES = len(FIGURES) + 1
"""Successors of one action: at most one for each number of figures missing, or named."""

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class TabularMDP:
    """n states to decide in and m final ones, for 3 difficulties (`world.LEVELS`), up to 3 successors an action."""

    horizon: int
    states: tuple[tuple[State, ...], ...]
    """3 tuples of n, by steps taken; the first is where episodes start."""
    features: npt.NDArray[np.float32]
    """(3, n, d)"""
    mask: npt.NDArray[np.bool_]
    """(n, 7)"""
    base_action: npt.NDArray[np.int64]
    """(n,)"""
    steps: npt.NDArray[np.int64]
    """(n,) steps taken, non-decreasing; the decision there is step t = steps + 1."""
    told: npt.NDArray[np.bool_]
    """(n,) evidence told the difficulty. Where it did not, features are the same for all difficulties."""
    successor: npt.NDArray[np.int64]
    """(n, 7, 3) index into the n states, or n + index into the m final ones; unused places hold 0."""
    chance: npt.NDArray[np.float64]
    """(3, n, 7, 3) by difficulty; sums to 1 over the last axis where the action is legal, else 0."""
    final_states: tuple[State, ...]
    """m, after a submit or after step H; ids of evidence are those of a standard task."""
    quality: npt.NDArray[np.float64]
    """(m,) terminal quality Q of what is submitted in them; 0 without a draft."""

    @property
    def n_states(self) -> int:
        """States to decide in."""
        return len(self.steps)

    @property
    def n_final(self) -> int:
        """Final states."""
        return len(self.quality)

    @property
    def layers(self) -> list[slice]:
        """H slices of the n states: those with 0, 1, .. H-1 steps taken."""
        edges = np.searchsorted(self.steps, np.arange(self.horizon + 1)).tolist()
        return [slice(first, last) for first, last in pairwise(edges)]

    def batch(self, level: int) -> DecisionBatch:
        """The n states as a task of difficulty `LEVELS[level]` shows them to a policy."""
        return DecisionBatch(self.features[level], self.mask, self.base_action, self.states[level])

    def table(self, policy: Policy | Probs) -> Probs:
        """(3, n, 7) what `policy` does in every state; a table is checked and handed back.

        Compute it once where the same policy is evaluated or sampled many times.

        Raises:
            ValueError: of the wrong shape, or not a distribution over the legal actions.
        """
        if isinstance(policy, np.ndarray):
            table, name = policy, "table"
        else:
            table, name = np.stack([policy.probs_batch(self.batch(level)) for level in range(len(LEVELS))]), policy.name
        if table.shape != self.chance.shape[:3]:
            raise ValueError(f"policy {name} has shape {table.shape}; expected {self.chance.shape[:3]}")
        wrong = (np.abs(table.sum(axis=2) - 1.0) > _SUM_TOLERANCE) | ((table != 0.0) & ~self.mask).any(axis=2)
        if wrong.any():
            level, row = (int(place[0]) for place in np.nonzero(wrong))
            raise ValueError(
                f"policy {name} gave {table[level, row].tolist()} where legal is {self.mask[row].tolist()}"
            )
        return table


@cache
def tabular_mdp(horizon: int | None = None) -> TabularMDP:
    """The MDP of setting `tabular`, made once a process (a second or two for H = 6); None: the setting's horizon.

    Raises:
        ValueError: `horizon` is below 1.
    """
    setting = Tabular()
    horizon = horizon or setting.horizon
    found = _explore(setting, start(horizon))
    states, final, n = list(found.states), list(found.final), len(found.states)
    shape = (n, N_ACTIONS, MAX_OUTCOMES)
    successor, chance = np.zeros(shape, dtype=np.int64), np.zeros((len(LEVELS), *shape))
    for row, action, place, outcome, after in found.leads:
        successor[row, action, place] = after if after >= 0 else n - 1 - after
        chance[:, row, action, place] = outcome.chance
    by_level = tuple(tuple(as_level(state, level) for state in states) for level in LEVELS)
    points = [[decision_point(setting, state) for state in each] for each in by_level]
    return TabularMDP(
        horizon=horizon,
        states=by_level,
        features=np.stack([np.stack([point.features for point in each]) for each in points]),
        mask=np.stack([point.mask for point in points[0]]),
        base_action=np.array([point.base_action for point in points[0]], dtype=np.int64),
        steps=np.array([state.steps for state in states], dtype=np.int64),
        told=np.array([bool(state.evidence) for state in states]),
        successor=successor,
        chance=chance,
        final_states=tuple(final),
        quality=np.array(list(_qualities(final))),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    states: dict[State, int] = field(default_factory=dict[State, int])
    """States to decide in, by steps taken, with their index."""
    final: dict[State, int] = field(default_factory=dict[State, int])
    """Final states with -1 - index."""
    leads: list[tuple[int, Action, int, Outcome, int]] = field(
        default_factory=list[tuple[int, Action, int, Outcome, int]]
    )
    """(index of state, action, number of outcome, outcome, index of what follows)"""


def _explore(setting: Tabular, first: State) -> _Found:
    """Everything that can be reached, in the order in which it is first reached: by steps taken."""
    found = _Found({first: 0})
    queue = deque([first])
    while queue:
        state = queue.popleft()
        row, mask = found.states[state], legal_mask(setting.rules, state)
        for action in ACTIONS:
            for place, outcome in enumerate(outcomes(state, action) if mask[action] else ()):
                after = following(state, outcome.event)
                if ended(after) is not None:
                    at = found.final.setdefault(after, -1 - len(found.final))
                elif (known := found.states.get(after)) is not None:
                    at = known
                else:
                    at = found.states[after] = len(found.states)
                    queue.append(after)
                found.leads.append((row, action, place, outcome, at))
    return found


def _qualities(final: Iterable[State]) -> Iterable[float]:
    for state in final:
        yield 0.0 if state.artifact is None else 1.0 - missing_figures(state) / len(FIGURES)
