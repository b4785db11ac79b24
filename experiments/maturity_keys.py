"""Thresholds and weights of the Harness Maturity Score as keys of the group `maturity`, event by event.

Plain dataclasses like those of `experiments.config`; `experiments.scoring.maturity_config` makes the scorer's of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["MaturityPresetConfig"]


@dataclass
class CheckBeforeSubmitConfig:
    """Thresholds of CheckBeforeSubmit."""

    min_gap: int = 2
    """Steps, at least, from a check that named problems to the submit."""


@dataclass
class EvidenceBeforeClaimConfig:
    """Thresholds of EvidenceBeforeClaim."""

    supported_share: float = 0.7
    """Share of the final claims, at least, that evidence supports."""


@dataclass
class TestBeforeSubmitConfig:
    """Thresholds of TestBeforeSubmit."""

    min_gap: int = 2
    """Steps, at least, from a failed test run to the submit."""


@dataclass
class RevisionAfterFailureConfig:
    """Thresholds of RevisionAfterFailure."""

    window: int = 3
    """Steps, at most, from a failure to the revise that answers it."""


@dataclass
class ValidToolUseConfig:
    """Thresholds of ValidToolUse."""

    valid_share: float = 0.9
    """Share of tool calls, at least, with valid arguments and no error."""


@dataclass
class StopWhenSufficientConfig:
    """Thresholds of StopWhenSufficient."""

    score: float = 0.85
    """Score of the last check, at least."""
    max_age: int = 3
    """Steps, at most, from the last check to the submit."""


@dataclass
class EarlySubmitConfig:
    """Thresholds of EarlySubmit."""

    reads_quality: bool = True
    """Ask the two clauses on sealed values: poor quality after few steps, and missed criteria."""
    quality: float = 0.5
    """Q below this ..."""
    step_share: float = 0.25
    """... with at most this share of H in steps before the submit."""
    criterion: float = 0.5
    """A criterion is missed below this score ..."""
    missed_share: float = 0.5
    """... and at least this share of the criteria is missed."""
    pass_rate: float = 0.5
    """In coding: the pass rate of the last test run below this."""


@dataclass
class EventWeightsConfig:
    """What each event weighs, at least 0."""

    check_before_submit: float = 1.0
    evidence_before_claim: float = 1.0
    test_before_submit: float = 1.0
    revision_after_failure: float = 1.0
    valid_tool_use: float = 1.0
    stop_when_sufficient: float = 1.0
    early_submit: float = 1.0
    """Counts against the process."""


@dataclass
class MaturityPresetConfig:
    """Thresholds and weights of the Harness Maturity Score; the defaults are preset `paper`."""

    preset: str = "paper"
    """Label of the scores; what tells configurations apart is their hash."""
    check_of_submitted_version: bool = False
    """CheckBeforeSubmit and StopWhenSufficient need a check of the submitted version."""
    check_before_submit: CheckBeforeSubmitConfig = field(default_factory=CheckBeforeSubmitConfig)
    evidence_before_claim: EvidenceBeforeClaimConfig = field(default_factory=EvidenceBeforeClaimConfig)
    test_before_submit: TestBeforeSubmitConfig = field(default_factory=TestBeforeSubmitConfig)
    revision_after_failure: RevisionAfterFailureConfig = field(default_factory=RevisionAfterFailureConfig)
    valid_tool_use: ValidToolUseConfig = field(default_factory=ValidToolUseConfig)
    stop_when_sufficient: StopWhenSufficientConfig = field(default_factory=StopWhenSufficientConfig)
    early_submit: EarlySubmitConfig = field(default_factory=EarlySubmitConfig)
    weights: EventWeightsConfig = field(default_factory=EventWeightsConfig)
