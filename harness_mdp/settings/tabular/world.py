"""The chances of the world, each stated here and nowhere else.

A draft is two figures, each there or marked as missing, which anyone can see. How often the simulated executor misses a
figure depends on the evidence at hand and, once there is some, on the difficulty of the task, which the evidence tells.
So what a state's features show is all that the future depends on: an MDP, with no hidden part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb

import numpy as np
import numpy.typing as npt

from harness_mdp.executors.skill import SkillProfile

__all__ = [
    "BRIEF",
    "EXAMPLE",
    "FIGURES",
    "HELP",
    "LEVELS",
    "NOTES",
    "RECORD",
    "draft_chances",
    "evidence_id",
    "level_of",
    "level_shares",
    "named_chances",
    "revision_chances",
    "skill",
]

Chances = npt.NDArray[np.float64]
"""(3,) probabilities of 0, 1 and 2."""

LEVELS = ("easy", "standard", "hard")
"""Difficulties, in the order of every axis that has one entry for each."""

FIGURES = ("a", "b")
"""Parts of a draft; both weigh the same."""

BRIEF, EXAMPLE, RECORD, NOTES = "brief", "example", "record", "notes"
"""Evidence: `observe` brings the first, then the second; one `call_tool` brings the other two."""

HELP = (BRIEF,) * 4 + (RECORD,) * 2 + (NOTES,)
"""What helps with a figure: each entry at hand brings a seventh of the relief, so that the brief counts most and the
example, which a second `observe` brings, not at all."""

_RELIEF = {"easy": 0.85, "standard": 0.5, "hard": 0.1}
"""Share of the chance to miss a figure that all evidence together takes away."""

_MISSED = 0.75
"""Chance to miss a figure without evidence, whatever the difficulty: nobody can tell it then."""


@cache
def skill(level: str) -> SkillProfile:
    """How often the simulated executor goes wrong on a task of difficulty `level`.

    Revising helps little unless a check named what is missing, and a check overlooks a missing figure two times in
    five. A figure is never reported missing when it is there, and every reply can be parsed.
    """
    return SkillProfile(
        name=f"tabular-{level}",
        version=1,
        fault_easy=_MISSED,
        fault_standard=_MISSED,
        fault_hard=_MISSED,
        evidence_relief=_RELIEF[level],
        slot_spread=0.0,
        repair_named=0.85,
        repair_shown=0.1,
        repair_blind=0.1,
        breaks=0.05,
        review_hit=0.6,
        review_alarm=0.0,
        tool_slip=0.0,
        garble=0.0,
    )


def evidence_id(name: str, level: str) -> str:
    """Evidence says how difficult the task is, and so its id does."""
    return f"{name}-{level}"


def level_of(evidence: Sequence[str]) -> str | None:
    """The difficulty that evidence ids tell; None without evidence."""
    return evidence[0].rpartition("-")[2] if evidence else None


def level_shares(levels: Sequence[str] | None) -> npt.NDArray[np.float64]:
    """(3,) share of each difficulty among tasks of difficulties `levels`; None: 20, 60 and 20 of 100.

    Raises:
        ValueError: `levels` is empty or holds something else than a difficulty.
    """
    if levels is None:
        return np.array([0.2, 0.6, 0.2])
    if not levels or not set(levels) <= set(LEVELS):
        raise ValueError(f"levels are {levels!r}; expected at least one of {', '.join(LEVELS)}")
    counts = np.array([sum(each == level for each in levels) for level in LEVELS], dtype=np.float64)
    return counts / counts.sum()


@cache
def draft_chances(level: str, evidence: tuple[str, ...]) -> Chances:
    """Of 0, 1, 2 missing figures in a draft written with the named `evidence` (`BRIEF`, ..) at hand."""
    chance = _MISSED * (1.0 - _RELIEF[level] * sum(name in evidence for name in HELP) / len(HELP))
    return _binomial(len(FIGURES), chance)


@cache
def named_chances(missing: int) -> Chances:
    """Of 0, 1, 2 missing figures named by a check, when `missing` are missing."""
    return _binomial(missing, skill("standard").review_hit)


@cache
def revision_chances(missing: int, named: int) -> Chances:
    """Of 0, 1, 2 missing figures after a revision, when `missing` are missing and `named` of them were named."""
    profile = skill("standard")
    parts = (
        _binomial(named, 1.0 - profile.repair_named),
        _binomial(missing - named, 1.0 - profile.repair_blind),
        _binomial(len(FIGURES) - missing, profile.breaks),
    )
    chances = np.ones(1)
    for part in parts:
        chances = np.convolve(chances, part)
    return _fixed(chances[: len(FIGURES) + 1])


def _binomial(n: int, chance: float) -> Chances:
    """(3,) of 0, 1, 2 successes in `n` tries, n at most 2."""
    return _fixed(np.array([comb(n, k) * chance**k * (1.0 - chance) ** max(n - k, 0) for k in range(len(FIGURES) + 1)]))


def _fixed(chances: Chances) -> Chances:
    """Not to be written to, since it is shared."""
    chances.setflags(write=False)
    return chances
