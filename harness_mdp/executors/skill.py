"""Skill profiles of the simulated executor: the numbers, each with its reason in docs/simulated.md.

The profiles are fixed by the literature and by reason. They are never tuned to make a learner win; a change
needs a new `version`, which changes the executor's fingerprint and so keeps old and new episodes apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import digest

__all__ = ["PROFILES", "SkillProfile", "skill_profile"]


@dataclass(frozen=True)
class SkillProfile:
    """How often a stand-in for a model goes wrong. All figures but `slot_spread` are probabilities."""

    name: str
    version: int
    fault_easy: float
    """Chance that a slot of an easy task is wrong in a draft written without any evidence."""
    fault_standard: float
    fault_hard: float
    evidence_relief: float
    """Share of that chance which full evidence takes away."""
    slot_spread: float
    """Standard deviation, in logits, of a slot's own difficulty; the same in every draw, as blind spots are."""
    repair_named: float
    """Chance that a revision mends a fault whose place was named."""
    repair_shown: float
    """The same when a tool or check showed a symptom but not the place."""
    repair_blind: float
    """The same with no problem at hand."""
    breaks: float
    """Chance that a revision breaks a slot that was right."""
    review_hit: float
    """Sensitivity of self-review: chance that a fault is named."""
    review_alarm: float
    """Chance that a slot which is right is named all the same."""
    tool_slip: float
    """Chance that the wrong tool or arguments are chosen."""
    garble: float
    """Chance that a reply holds nothing that can be parsed."""

    def fault(self, difficulty: str) -> float:
        """Chance of a fault per slot without evidence, for a task's difficulty."""
        return {"easy": self.fault_easy, "standard": self.fault_standard, "hard": self.fault_hard}[difficulty]

    @property
    def fingerprint(self) -> str:
        """8 hex digits over every figure."""
        return digest(asdict(self), 8)


PROFILES: Mapping[str, SkillProfile] = {
    profile.name: profile
    for profile in (
        SkillProfile(
            name="weak",
            version=1,
            fault_easy=0.30,
            fault_standard=0.45,
            fault_hard=0.60,
            evidence_relief=0.4,
            slot_spread=0.8,
            repair_named=0.40,
            repair_shown=0.20,
            repair_blind=0.08,
            breaks=0.06,
            review_hit=0.25,
            review_alarm=0.12,
            tool_slip=0.25,
            garble=0.08,
        ),
        SkillProfile(
            name="medium",
            version=1,
            fault_easy=0.15,
            fault_standard=0.25,
            fault_hard=0.40,
            evidence_relief=0.5,
            slot_spread=0.8,
            repair_named=0.60,
            repair_shown=0.35,
            repair_blind=0.10,
            breaks=0.03,
            review_hit=0.45,
            review_alarm=0.06,
            tool_slip=0.10,
            garble=0.02,
        ),
        SkillProfile(
            name="strong",
            version=1,
            fault_easy=0.06,
            fault_standard=0.12,
            fault_hard=0.22,
            evidence_relief=0.6,
            slot_spread=0.8,
            repair_named=0.80,
            repair_shown=0.55,
            repair_blind=0.15,
            breaks=0.01,
            review_hit=0.65,
            review_alarm=0.03,
            tool_slip=0.03,
            garble=0.005,
        ),
    )
}


def skill_profile(name: str) -> SkillProfile:
    """The profile `name`.

    Raises:
        ConfigError: there is none.
    """
    if name not in PROFILES:
        raise ConfigError(f"unknown skill profile {name!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[name]
