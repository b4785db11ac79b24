"""What the Harness Maturity Score judges, and by which thresholds (DESIGN section 9).

Two presets: `paper` (compatible with the published artifact; reads the sealed quality in one event) and
`strict` (reads nothing sealed, and asks for a check of the very version that is submitted).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json, digest

__all__ = ["PRESETS", "RULES_VERSION", "MaturityConfig", "MaturityEvent"]

RULES_VERSION = 1
"""Raised by hand when a rule changes its meaning, so that re-scores by the old rule are not taken for new ones."""


class MaturityEvent(StrEnum):
    """The seven events; the value is the name in files and tables."""

    CHECK_BEFORE_SUBMIT = "CheckBeforeSubmit"
    EVIDENCE_BEFORE_CLAIM = "EvidenceBeforeClaim"
    TEST_BEFORE_SUBMIT = "TestBeforeSubmit"
    REVISION_AFTER_FAILURE = "RevisionAfterFailure"
    VALID_TOOL_USE = "ValidToolUse"
    STOP_WHEN_SUFFICIENT = "StopWhenSufficient"
    EARLY_SUBMIT = "EarlySubmit"

    @property
    def sign(self) -> int:
        """-1 for EarlySubmit, the only event that counts against a process; 1 for the others."""
        return -1 if self is MaturityEvent.EARLY_SUBMIT else 1


_SHARES = (
    "claims_supported",
    "valid_tool_share",
    "sufficient_score",
    "early_quality",
    "early_share",
    "missed_criterion",
    "missed_share",
    "early_pass_rate",
)
_STEPS = ("failed_check_gap", "failed_test_gap", "revision_window", "sufficient_age")


@dataclass(frozen=True)
class MaturityConfig:
    """Thresholds and weights of HMS. The defaults are preset `paper`; see `MaturityConfig.strict`.

    Raises:
        ConfigError: a weight or threshold out of range, or a weight of an unknown event.
    """

    preset: str = "paper"
    """The label scores are stored under; give changed thresholds a label of their own."""
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """Event name -> weight, at least 0; an event that is not named weighs 1."""
    check_of_submitted_version: bool = False
    """CheckBeforeSubmit and StopWhenSufficient need a check of the submitted version (`strict`)."""
    early_reads_quality: bool = True
    """EarlySubmit keeps its two clauses on Q and on criteria (`paper`), which are sealed values."""
    failed_check_gap: int = 2
    """Steps, at least, from a check that named problems to the submit."""
    claims_supported: float = 0.7
    """Share of the final claims, at least, that evidence supports."""
    failed_test_gap: int = 2
    """Steps, at least, from a failed test run to the submit."""
    revision_window: int = 3
    """A failure at step f is answered by a revise at f+1 .. f+3."""
    valid_tool_share: float = 0.9
    """Share of tool calls, at least, with valid arguments and no error."""
    sufficient_score: float = 0.85
    """Score of the last check, at least."""
    sufficient_age: int = 3
    """Steps, at most, from the last check to the submit."""
    early_quality: float = 0.5
    """EarlySubmit: Q below this ..."""
    early_share: float = 0.25
    """... with at most this share of H in steps before the submit."""
    missed_criterion: float = 0.5
    """EarlySubmit: a criterion is missed below this score ..."""
    missed_share: float = 0.5
    """... and at least this share of the criteria is missed."""
    early_pass_rate: float = 0.5
    """EarlySubmit in coding: the pass rate of the last test run below this."""

    def __post_init__(self) -> None:
        known = [event.value for event in MaturityEvent]
        for name, weight in self.weights.items():
            if name not in known:
                raise ConfigError(f"maturity weight of unknown event {name!r}; expected one of {', '.join(known)}")
            if not (math.isfinite(weight) and weight >= 0):
                raise ConfigError(f"maturity weight of {name} is {weight}; expected a finite number, at least 0")
        for name in _SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(
                    f"a maturity threshold is {getattr(self, name)}; expected 0 to 1 (field {name} of MaturityConfig)"
                )
        for name in _STEPS:
            if getattr(self, name) < 0:
                raise ConfigError(
                    f"a maturity threshold is {getattr(self, name)} steps; expected at least 0 (field {name} of "
                    "MaturityConfig)"
                )

    @classmethod
    def paper(cls) -> MaturityConfig:
        """Compatible with the published artifact. Reads Q: never set it against quality."""
        return cls()

    @classmethod
    def strict(cls) -> MaturityConfig:
        """No sealed value, and checks count only for the version they saw. For every analysis against quality."""
        return cls(preset="strict", check_of_submitted_version=True, early_reads_quality=False)

    @classmethod
    def named(cls, preset: str) -> MaturityConfig:
        """The preset of that name.

        Raises:
            ConfigError: there is no such preset.
        """
        if preset not in PRESETS:
            raise ConfigError(f"unknown maturity preset {preset!r}; expected one of {', '.join(PRESETS)}")
        return PRESETS[preset]

    def weight(self, event: MaturityEvent) -> float:
        """Weight of `event`, 1 unless set."""
        return self.weights.get(event.value, 1.0)

    @property
    def values(self) -> dict[str, Json]:
        """Everything that changes a score, and the label: thresholds, the weights of all events, `rules`."""
        values: dict[str, Json] = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values |= {name: float(values[name]) for name in _SHARES}
        values["weights"] = {event.value: float(self.weight(event)) for event in MaturityEvent}
        return values | {"rules": RULES_VERSION}

    @cached_property
    def hash(self) -> str:
        """16 hex digits over `values`; stored beside re-scores."""
        return digest(self.values, 16)


PRESETS: Mapping[str, MaturityConfig] = {
    "paper": MaturityConfig.paper(),
    "strict": MaturityConfig.strict(),
}
"""By name; neither can be changed, `dataclasses.replace` makes variants."""
