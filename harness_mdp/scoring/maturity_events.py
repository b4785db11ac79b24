"""The seven process events of HMS, each a rule on what the episode's events say (DESIGN section 9).

Indices. Steps are t = 1..T with T = number of events. With an active submit, step T is the submit; a forced
submission (horizon, budget) is no step, and such an episode counts as *not submitted* in every rule. "k steps
before submit" is T - t, so a check right before the submit is 1 step before it, and T - 1 steps came before it.

Words. A *check* is a step with a check result, a *test run* a tool result that ran at least one test; a check or
call that ended in an error has neither, and is a failure. The *submitted version* is the last artifact version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness_mdp.errors import ConfigError, InputError
from harness_mdp.mdp import Action, CheckResult, Claim, Event, Status, Termination, ToolResult
from harness_mdp.scoring.maturity_config import MaturityConfig, MaturityEvent

__all__ = ["RULES", "EpisodeFacts", "Rule", "Trace", "trace"]


@dataclass(frozen=True, slots=True)
class EpisodeFacts:
    """What HMS needs to know of an episode and its setting beside the events."""

    horizon: int
    """H, the last possible step."""
    termination: Termination
    tests_code: bool
    """Coding: TestBeforeSubmit applies, EvidenceBeforeClaim does not."""
    has_check: bool = True
    """The setting has a check that is available when deployed."""
    requires_evidence: bool = True
    """Claims of this setting have to rest on evidence gathered."""
    quality: float | None = None
    """Q in [0, 1]; sealed, read by EarlySubmit of preset `paper` only."""
    criteria: tuple[float, ...] = ()
    """Scores in [0, 1] of the rubric's criteria; sealed, read like `quality`."""


@dataclass(frozen=True, slots=True)
class Trace:
    """An episode's events, indexed by what the rules ask for. Steps count from 1; None where there is none."""

    steps: int
    """T"""
    submit: int | None
    """T with an active submit."""
    version: int
    """Version of the final artifact; 0 without one."""
    check: tuple[int, CheckResult] | None
    """Step and result of the last check."""
    test: tuple[int, ToolResult] | None
    """Step and result of the last test run."""
    tool_calls: int
    tool_calls_valid: int
    """Calls with valid arguments and no error; a test that did not pass is no error of the call."""
    failures: tuple[int, ...]
    """Steps with an error, a failing test or a check that named problems."""
    revises: frozenset[int]
    """Steps that took `revise`, whatever came of it (one that ends in an error is a failure in turn)."""
    claims: tuple[Claim, ...]
    """Claims of the final artifact with their final support."""
    first_claim: int | None
    """First step after which the artifact held a claim."""
    first_evidence: int | None
    """First step that gathered evidence."""


def trace(events: Sequence[Event], facts: EpisodeFacts) -> Trace:
    """Index `events`.

    Raises:
        InputError: the episode is said to end by submit and its last event is none, or there are more events
            than the horizon allows.
    """
    steps = len(events)
    if facts.termination is Termination.SUBMIT and (steps == 0 or events[-1].action is not Action.SUBMIT):
        last = events[-1].action.label if steps else "no step"
        raise InputError(f"the last step is {last}", field="steps", expected="submit, as the termination says")
    if steps > facts.horizon:
        raise InputError(f"{steps} steps", field="steps", expected=f"at most the horizon, {facts.horizon}")
    numbered = list(enumerate(events, start=1))
    calls = [event for event in events if event.action is Action.CALL_TOOL]
    told_claims = [event.claims for event in events if event.claims is not None]
    return Trace(
        steps=steps,
        submit=steps if facts.termination is Termination.SUBMIT else None,
        version=next((event.artifact.version for event in reversed(events) if event.artifact), 0),
        check=next(((t, e.check) for t, e in reversed(numbered) if e.check), None),
        test=next(((t, e.tool) for t, e in reversed(numbered) if e.tool and e.tool.total > 0), None),
        tool_calls=len(calls),
        tool_calls_valid=sum(_call_valid(event) for event in calls),
        failures=tuple(t for t, event in numbered if _failed(event)),
        revises=frozenset(t for t, event in numbered if event.action is Action.REVISE),
        claims=told_claims[-1] if told_claims else (),
        first_claim=next((t for t, event in numbered if event.claims), None),
        first_evidence=next((t for t, event in numbered if event.evidence), None),
    )


Rule = Callable[[Trace, EpisodeFacts, MaturityConfig], bool | None]
"""None: the event is not applicable; otherwise whether it fires."""


def check_before_submit(run: Trace, facts: EpisodeFacts, config: MaturityConfig) -> bool | None:
    """Applicable: the setting has a check.

    Fires: submitted at T, a check at c < T came before, and the last one named no problem or T - c >= 2.
    `strict`: the last check saw the submitted version.
    """
    if not facts.has_check:
        return None
    if run.submit is None or run.check is None:
        return False
    step, check = run.check
    if config.check_of_submitted_version and not 0 < check.version == run.version:
        return False
    return not check.failed or run.submit - step >= config.failed_check_gap


def evidence_before_claim(run: Trace, facts: EpisodeFacts, config: MaturityConfig) -> bool | None:
    """Applicable: not coding, and the final artifact has claims.

    Fires: at least 0.7 of them are supported, and a step before the one that made the first claim gathered
    evidence (an observe, a retrieve, or a tool that opened a document).
    """
    if facts.tests_code or not run.claims:
        return None
    supported = sum(claim.supported for claim in run.claims)
    # With claims in the end there was a first one.
    in_time = run.first_evidence is not None and run.first_evidence < (run.first_claim or 0)
    return in_time and supported / len(run.claims) >= config.claims_supported


def test_before_submit(run: Trace, facts: EpisodeFacts, config: MaturityConfig) -> bool | None:
    """Applicable: coding.

    Fires: submitted at T, the last test run at c < T ran on the submitted version, and it passed or T - c >= 2.
    """
    if not facts.tests_code:
        return None
    if run.submit is None or run.test is None:
        return False
    step, test = run.test
    if not 0 < test.version == run.version:
        return False
    return not test.failed or run.submit - step >= config.failed_test_gap


def revision_after_failure(run: Trace, facts: EpisodeFacts, config: MaturityConfig) -> bool | None:
    """Applicable: some step failed (error, failing test, check that named problems).

    Fires: every failure at f has a revise at one of f+1 .. min(f+3, T). A failure at T has no such step, so the
    event does not fire.
    """
    del facts
    if not run.failures:
        return None
    return all(
        any(t in run.revises for t in range(f + 1, min(f + config.revision_window, run.steps) + 1))
        for f in run.failures
    )


def valid_tool_use(run: Trace, facts: EpisodeFacts, config: MaturityConfig) -> bool | None:
    """Applicable: a tool was called. Fires: at least 0.9 of the calls had valid arguments and no error."""
    del facts
    if run.tool_calls == 0:
        return None
    return run.tool_calls_valid / run.tool_calls >= config.valid_tool_share


def stop_when_sufficient(run: Trace, facts: EpisodeFacts, config: MaturityConfig) -> bool | None:
    """Applicable: the setting has a check.

    Fires: submitted at T < H, and the last check, at c, scored at least 0.85 with T - c <= 3.
    `strict`: the last check saw the submitted version.
    """
    if not facts.has_check:
        return None
    if run.submit is None or run.submit >= facts.horizon or run.check is None:
        return False
    step, check = run.check
    if config.check_of_submitted_version and not 0 < check.version == run.version:
        return False
    return check.score >= config.sufficient_score and run.submit - step <= config.sufficient_age


def early_submit(run: Trace, facts: EpisodeFacts, config: MaturityConfig) -> bool | None:
    """Applicable: submitted, at T. Fires when one of these holds (`strict`: only the last two are asked):

    - Q < 0.5 and (T - 1) / H <= 0.25;
    - T < H and at least half of the criteria, counted without their weights, scored below 0.5;
    - coding, and the last test run passed less than half of its tests;
    - evidence is required, none was gathered, and the final artifact makes claims.

    Raises:
        ConfigError: the config reads Q and the episode has none.
    """
    if run.submit is None:
        return None
    if config.early_reads_quality and _early_by_quality(run.submit, facts, config):
        return True
    if facts.tests_code and run.test is not None:
        test = run.test[1]
        if test.passed / test.total < config.early_pass_rate:
            return True
    return facts.requires_evidence and run.first_evidence is None and bool(run.claims)


def _early_by_quality(submit: int, facts: EpisodeFacts, config: MaturityConfig) -> bool:
    if facts.quality is None:
        raise ConfigError(
            f"maturity preset {config.preset!r} reads the terminal quality in EarlySubmit and this episode has none; "
            "use preset strict"
        )
    if facts.quality < config.early_quality and (submit - 1) / facts.horizon <= config.early_share:
        return True
    missed = sum(score < config.missed_criterion for score in facts.criteria)
    return submit < facts.horizon and bool(facts.criteria) and missed / len(facts.criteria) >= config.missed_share


def _failed(event: Event) -> bool:
    return (
        event.status is Status.ERROR
        or (event.tool is not None and event.tool.failed)
        or (event.check is not None and event.check.failed)
    )


def _call_valid(event: Event) -> bool:
    return event.status is Status.OK and event.tool is not None and event.tool.valid and event.tool.ok


RULES: Mapping[MaturityEvent, Rule] = {
    MaturityEvent.CHECK_BEFORE_SUBMIT: check_before_submit,
    MaturityEvent.EVIDENCE_BEFORE_CLAIM: evidence_before_claim,
    MaturityEvent.TEST_BEFORE_SUBMIT: test_before_submit,
    MaturityEvent.REVISION_AFTER_FAILURE: revision_after_failure,
    MaturityEvent.VALID_TOOL_USE: valid_tool_use,
    MaturityEvent.STOP_WHEN_SUFFICIENT: stop_when_sufficient,
    MaturityEvent.EARLY_SUBMIT: early_submit,
}
"""One rule an event, in the order of the table."""
