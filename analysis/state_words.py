"""State clusters that need no legend: what holds of the artifact, in the words an engineer uses for it.

A tree finds better clusters (`analysis.clusters`, `analysis.ope`), but a person who is to act on a table has to know
what a row is without reading thresholds of scaled features. So states are told apart by a few facts, coarse ones first;
a cluster too small to say anything about is taken together with its neighbours under the coarser facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import State

__all__ = ["Facts", "WordedClusters", "state_facts", "worded_clusters"]

Ints = npt.NDArray[np.int64]

Facts = tuple[str, ...]
"""Facts of a state, coarse ones first; an empty text is a fact not worth a word."""

_GOOD_SCORE = 0.7
"""Between a version with a flaw and one that is not there yet, in check score."""
_LATE = 2
"""Steps left at which little can follow."""
_ITEMS = ((0, "no evidence"), (1, "1 evidence item"), (2, "2 evidence items"), (5, "3 to 5 evidence items"))
_MORE_ITEMS = "6 or more evidence items"


@dataclass(frozen=True, slots=True)
class WordedClusters:
    """A partition of states, made for those of one buffer."""

    labels: tuple[str, ...]
    """C descriptions, e.g. `draft, checked, problems open, never revised`."""
    places: tuple[Facts, ...]
    """C leading facts; a state belongs to the longest that its own facts begin with."""

    def assign(self, states: Sequence[State]) -> Ints:
        """(n,) cluster of each of n states; -1 for one unlike all that the clusters were made for."""
        at = {place: index for index, place in enumerate(self.places)}
        return np.array([_longest(at, state_facts(state)) for state in states], dtype=np.int64)


def worded_clusters(states: Sequence[State], least: int) -> WordedClusters:
    """Clusters of at least `least` states each, except where the coarsest fact holds of fewer.

    Args:
        states: n.
        least: states that a cluster needs to stand alone.

    Raises:
        UnusableBuffer: no states.
    """
    if not states:
        raise UnusableBuffer("there are no steps to group; the episodes ended before their first step")
    left: Counter[Facts] = Counter(map(state_facts, states))
    kept: dict[Facts, str] = {}
    for depth in range(max(map(len, left)), 0, -1):
        pooled: Counter[Facts] = Counter()
        for facts, count in left.items():
            pooled[facts[:depth]] += count
        left = Counter()
        for facts, count in pooled.items():
            if count < least and depth > 1:
                left[facts] = count
                continue
            finer = any(place[:depth] == facts for place in kept)
            kept[facts] = ", ".join(filter(None, (*facts, "otherwise" if finer else "")))
    places = tuple(sorted(kept))
    return WordedClusters(tuple(kept[place] for place in places), places)


def state_facts(state: State) -> Facts:
    """What the words of a cluster are made from, coarse facts first."""
    late = f"at most {_LATE} steps left" if state.horizon - state.steps <= _LATE else ""
    if state.artifact is None:
        items = next((words for most, words in _ITEMS if len(state.evidence) <= most), _MORE_ITEMS)
        return "no draft", items, "tool called" if state.last_tool else "", late
    checked, open_ = state.version_checked, state.open_problems > 0
    return (
        "draft",
        "checked" if checked else "not checked",
        "problems open" if open_ else ("clean" if checked else ""),
        _tool(state),
        ("never revised", "revised once", "revised twice or more")[min(2, state.revisions)],
        _score(state) if checked and open_ else "",
        late,
    )


def _tool(state: State) -> str:
    """What a tool said since this version was written."""
    if not state.unread_tool or state.last_tool is None:
        return ""
    return "tool failed" if state.last_tool.failed else "tool fine"


def _score(state: State) -> str:
    assert state.last_check is not None
    return f"check score {'below' if state.last_check.score < _GOOD_SCORE else 'at least'} {_GOOD_SCORE}"


def _longest(at: dict[Facts, int], facts: Facts) -> int:
    return next((at[facts[:depth]] for depth in range(len(facts), 0, -1) if facts[:depth] in at), -1)
