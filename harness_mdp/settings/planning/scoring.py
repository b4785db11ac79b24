"""The sealed rubric: constraints kept, and the makespan against the optimum.

`constraints` (weight 2): the share of stated constraints that are kept, each with the same weight.
`makespan` (weight 3): 1 at the optimum, falling linearly to 0 at 1.5 times the optimum; 0 unless every constraint is
kept, since a plan that cannot be carried out has no length. So a feasible plan of no use scores 0.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness_mdp.settings.planning.constraints import makespan, verdicts
from harness_mdp.settings.planning.instance import Entry, Instance
from harness_mdp.settings.protocol import Criterion

__all__ = ["CONSTRAINTS_WEIGHT", "MAKESPAN_WEIGHT", "WORTHLESS_AT", "grade", "nothing", "quality"]

CONSTRAINTS_WEIGHT: Final = 2.0
MAKESPAN_WEIGHT: Final = 3.0
WORTHLESS_AT: Final = 1.5
"""Multiple of the optimum from which a makespan earns nothing."""


def grade(instance: Instance, entries: Sequence[Entry], optimum: int) -> tuple[Criterion, Criterion]:
    """Both criteria of a schedule; `optimum` is the least makespan of `instance`, at least 1."""
    found = verdicts(instance, entries)
    kept = sum(verdict.kept for verdict in found)
    length = 0.0
    if kept == len(found):
        length = _length_score(makespan(instance, entries), optimum)
    return _criteria(kept / len(found), length)


def quality(instance: Instance, entries: Sequence[Entry], optimum: int) -> float:
    """The return that both criteria give together, in [0, 1]."""
    found = grade(instance, entries, optimum)
    return sum(each.weight * each.score for each in found) / sum(each.weight for each in found)


def nothing() -> tuple[Criterion, Criterion]:
    """Both criteria of a text that is no schedule."""
    return _criteria(0.0, 0.0)


def _length_score(found: float, optimum: int) -> float:
    # Nothing feasible is shorter than the optimum: such a key belongs to another problem and earns nothing.
    if found < optimum:
        return 0.0
    return max(0.0, (WORTHLESS_AT * optimum - found) / ((WORTHLESS_AT - 1.0) * optimum))


def _criteria(kept: float, length: float) -> tuple[Criterion, Criterion]:
    return Criterion("constraints", kept, CONSTRAINTS_WEIGHT), Criterion("makespan", length, MAKESPAN_WEIGHT)
