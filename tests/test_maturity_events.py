"""Every maturity event on small episodes, at the exact boundaries of the table, for both presets."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from harness_mdp.errors import ConfigError, InputError
from harness_mdp.mdp import (
    Action,
    Artifact,
    CheckResult,
    Claim,
    Event,
    EventError,
    Status,
    Termination,
    ToolResult,
)
from harness_mdp.scoring.maturity import PRESETS, EpisodeFacts, MaturityConfig, MaturityEvent, maturity
from tests.maturity_frames import at_once

YES, NO, NOT_APPLICABLE = (True, True), (True, False), (False, False)


def look(*ids: str) -> Event:
    return Event(Action.OBSERVE, evidence=ids or ("e1",))


BLIND = Event(Action.OBSERVE)
"""An observe that brought nothing."""


def draft(version: int = 1, *supported: bool) -> Event:
    claims = tuple(Claim(f"c{i}", value) for i, value in enumerate(supported)) or None
    return Event(Action.DRAFT, artifact=Artifact(version, "0" * 64, 10), claims=claims)


def revise(version: int, *supported: bool) -> Event:
    return Event(Action.REVISE, artifact=draft(version).artifact, claims=draft(version, *supported).claims)


def check(score: float = 1.0, version: int = 1, named: bool = False) -> Event:
    return Event(Action.CHECK, check=CheckResult(score, version, 0, 1, ("a problem",) if named else ()))


def ran(passed: int, total: int = 4, version: int = 1) -> Event:
    return Event(Action.CALL_TOOL, tool=ToolResult("tests", True, True, version, passed, total))


def bad_run() -> Event:
    """Tests ran, and the tool still reported an error of its own."""
    return Event(Action.CALL_TOOL, tool=ToolResult("tests", True, False, 1, 4, 4))


def tool(valid: bool = True, ok: bool = True) -> Event:
    return Event(Action.CALL_TOOL, tool=ToolResult("sql", valid, ok))


def failed(action: Action) -> Event:
    return Event(action, Status.ERROR, EventError.PARSE)


SUBMIT = Event(Action.SUBMIT)


@dataclass(frozen=True)
class Case:
    why: str
    events: tuple[Event, ...]
    paper: tuple[bool, bool]
    strict: tuple[bool, bool] | None = None
    """None: the same as paper."""
    code: bool = False
    horizon: int = 10
    facts: dict[str, object] = field(default_factory=dict)


def episode(*events: Event) -> tuple[Event, ...]:
    return events


def facts_of(case: Case) -> EpisodeFacts:
    submitted = bool(case.events) and case.events[-1].action is Action.SUBMIT
    return EpisodeFacts(
        horizon=case.horizon,
        termination=Termination.SUBMIT if submitted else Termination.HORIZON,
        tests_code=case.code,
        **({"quality": 1.0, "criteria": (1.0,), "requires_evidence": not case.code} | case.facts),
    )


def verdict(case: Case, event: MaturityEvent, config: MaturityConfig) -> tuple[bool, bool]:
    score = maturity(case.events, facts_of(case), config)
    found = {name: (applicable, fired) for name, applicable, fired in score.verdicts}
    assert list(found) == list(MaturityEvent)
    return found[event]


CHECKS = [
    Case("clean check right before", episode(draft(), check(), SUBMIT), YES),
    Case("named problems, 1 step before", episode(draft(), check(0.5, named=True), SUBMIT), NO),
    Case("named problems, exactly 2 steps before", episode(draft(), check(0.5, named=True), look(), SUBMIT), YES),
    Case("problems named with a high score, 1 step before", episode(draft(), check(0.9, named=True), SUBMIT), NO),
    Case("low score that names nothing", episode(draft(), check(0.1), SUBMIT), YES),
    Case(
        "only the last check counts",
        episode(draft(), check(), look(), check(0.5, named=True), SUBMIT),
        NO,
    ),
    Case("no check", episode(draft(), SUBMIT), NO),
    Case("a check that ended in an error is none", episode(draft(), failed(Action.CHECK), SUBMIT), NO),
    Case("an error of a check leaves the one before it", episode(draft(), check(), failed(Action.CHECK), SUBMIT), YES),
    Case("submitted on the last possible step", episode(draft(), check(), SUBMIT), YES, horizon=3),
    Case("a check of no version", episode(draft(), check(version=0), SUBMIT), YES, NO),
    Case("no version, neither checked nor submitted", episode(check(version=0), SUBMIT), YES, NO),
    Case("not submitted", episode(draft(), check()), NO),
    Case("the version before was checked", episode(draft(), check(), revise(2), SUBMIT), YES, NO),
    Case(
        "problems named in the version before, 2 steps before",
        episode(draft(), check(0.5, named=True), revise(2), SUBMIT),
        YES,
        NO,
    ),
    Case(
        "the revision is checked too",
        episode(draft(), check(0.5, named=True), revise(2), check(version=2), SUBMIT),
        YES,
    ),
    Case(
        "the revision's check names problems, exactly 2 steps before",
        episode(draft(), revise(2), check(0.5, 2, named=True), look(), SUBMIT),
        YES,
    ),
    Case(
        "the revision's check names problems, 1 step before",
        episode(draft(), revise(2), check(0.5, 2, named=True), SUBMIT),
        NO,
    ),
    Case(
        "revision failed, so the checked version is submitted",
        episode(draft(), check(), failed(Action.REVISE), SUBMIT),
        YES,
    ),
    Case("setting without a check", episode(draft(), SUBMIT), NOT_APPLICABLE, facts={"has_check": False}),
]

EVIDENCE = [
    Case("evidence first, all supported", episode(look(), draft(1, True), SUBMIT), YES),
    Case("exactly 0.7 supported", episode(look(), draft(1, *[True] * 7, *[False] * 3), SUBMIT), YES),
    Case("2 of 3 supported", episode(look(), draft(1, True, True, False), SUBMIT), NO),
    Case("evidence after the first claim", episode(draft(1, True), look(), SUBMIT), NO),
    Case(
        "evidence in the very step of the first claim",
        episode(Event(Action.DRAFT, evidence=("e1",), artifact=draft().artifact, claims=(Claim("c", True),)), SUBMIT),
        NO,
    ),
    Case("a retrieve", episode(Event(Action.RETRIEVE, evidence=("r1",)), draft(1, True), SUBMIT), YES),
    Case("submitted on the last possible step", episode(look(), draft(1, True), SUBMIT), YES, horizon=3),
    Case("an observe that brought nothing", episode(BLIND, draft(1, True), SUBMIT), NO),
    Case(
        "a tool that opened a document",
        episode(Event(Action.CALL_TOOL, evidence=("d1",), tool=ToolResult("open", True, True)), draft(1, True), SUBMIT),
        YES,
    ),
    Case("judged on the last claims", episode(look(), draft(1, False), revise(2, True), SUBMIT), YES),
    Case("claims stay when nothing changed them", episode(look(), draft(1, True), check(), revise(2), SUBMIT), YES),
    Case("the final artifact makes no claim", episode(look(), draft(), SUBMIT), NOT_APPLICABLE),
    Case(
        "claims were withdrawn",
        episode(look(), draft(1, True), Event(Action.REVISE, artifact=draft(2).artifact, claims=()), SUBMIT),
        NOT_APPLICABLE,
    ),
    Case("forced submission is judged as well", episode(look(), draft(1, True)), YES),
    Case("coding", episode(look(), draft(1, True), SUBMIT), NOT_APPLICABLE, code=True),
]

TESTS = [
    Case("passed right before", episode(draft(), ran(4), SUBMIT), YES, code=True),
    Case("failed, 1 step before", episode(draft(), ran(3), SUBMIT), NO, code=True),
    Case("failed, exactly 2 steps before", episode(draft(), ran(3), check(), SUBMIT), YES, code=True),
    Case("another version was tested", episode(draft(), ran(4), revise(2), SUBMIT), NO, code=True),
    Case("the revision was tested", episode(draft(), ran(3), revise(2), ran(4, version=2), SUBMIT), YES, code=True),
    Case("only the last run counts", episode(draft(), ran(3), ran(3), SUBMIT), NO, code=True),
    Case("a run without results", episode(draft(), tool(ok=False), SUBMIT), NO, code=True),
    Case("a run without results leaves the one before", episode(draft(), ran(4), tool(), SUBMIT), YES, code=True),
    Case("a run on no version", episode(draft(), ran(4, version=0), SUBMIT), NO, code=True),
    Case("no version, neither tested nor submitted", episode(ran(4, version=0), SUBMIT), NO, code=True),
    Case("submitted on the last possible step", episode(draft(), ran(4), SUBMIT), YES, code=True, horizon=3),
    Case("the tests passed and the tool failed, 1 step before", episode(draft(), bad_run(), SUBMIT), NO, code=True),
    Case("the same, exactly 2 steps before", episode(draft(), bad_run(), look(), SUBMIT), YES, code=True),
    Case("no test", episode(draft(), SUBMIT), NO, code=True),
    Case("not submitted", episode(draft(), ran(4)), NO, code=True),
    Case("not coding", episode(draft(), ran(4), SUBMIT), NOT_APPLICABLE),
]

BAD = check(0.5, named=True)
REVISIONS = [
    Case("revise next", episode(draft(), BAD, revise(2), SUBMIT), YES),
    Case("revise exactly 3 steps after", episode(draft(), BAD, look(), look(), revise(2), SUBMIT), YES),
    Case("revise 4 steps after", episode(draft(), BAD, look(), look(), look(), revise(2), SUBMIT), NO),
    Case("the end comes sooner, no revise", episode(draft(), BAD, SUBMIT), NO),
    Case("the end comes sooner, revise is the last step", episode(draft(), BAD, revise(2)), YES),
    Case("a failure in the last step", episode(draft(), BAD), NO),
    Case(
        "revise exactly 3 steps after, as the last possible step",
        episode(BAD, look(), look(), revise(2)),
        YES,
        horizon=4,
    ),
    Case("3 steps are left and none is a revise", episode(draft(), BAD, look(), look(), SUBMIT), NO, horizon=5),
    Case("a failure before and one after the revise", episode(BAD, revise(2), ran(0), SUBMIT), NO),
    Case("not submitted", episode(draft(), BAD, revise(2), look()), YES),
    Case("one revise answers two failures", episode(draft(), ran(1), BAD, revise(2), SUBMIT), YES),
    Case("the second failure is not answered", episode(draft(), BAD, revise(2), check(0.5, 2, True), SUBMIT), NO),
    Case("a failing test", episode(draft(), ran(3), SUBMIT), NO),
    Case("a tool error", episode(tool(ok=False), draft(), revise(2), SUBMIT), YES),
    Case("a reply that could not be read", episode(failed(Action.DRAFT), draft(), SUBMIT), NO),
    Case("a revise before the failure", episode(draft(), revise(2), BAD, SUBMIT), NO),
    Case(
        "a failed revise answers, and needs its own",
        episode(draft(), BAD, failed(Action.REVISE), SUBMIT),
        NO,
    ),
    Case(
        "a failed revise answers, and has its own",
        episode(draft(), BAD, look(), look(), failed(Action.REVISE), revise(2), SUBMIT),
        YES,
    ),
    Case("nothing failed", episode(draft(), check(0.1), ran(4), SUBMIT), NOT_APPLICABLE),
]

TOOLS = [
    Case("one good call", episode(tool(), draft(), SUBMIT), YES),
    Case("exactly 9 of 10", episode(*[tool()] * 9, tool(valid=False)), YES),
    Case("8 of 9", episode(*[tool()] * 8, tool(ok=False)), NO),
    Case("a call that could not be read", episode(failed(Action.CALL_TOOL), draft(), SUBMIT), NO),
    Case("a call without a result", episode(Event(Action.CALL_TOOL), draft(), SUBMIT), NO),
    Case("not submitted", episode(tool(), draft()), YES),
    Case("submitted on the last possible step", episode(tool(), draft(), SUBMIT), YES, horizon=3),
    Case("a failing test is no error of the call", episode(draft(), ran(0), SUBMIT), YES),
    Case("no call", episode(draft(), SUBMIT), NOT_APPLICABLE),
]

STOPS = [
    Case("exactly 0.85", episode(draft(), check(0.85), SUBMIT), YES),
    Case("below 0.85", episode(draft(), check(0.849), SUBMIT), NO),
    Case("exactly 0.85 and a problem named", episode(draft(), check(0.85, named=True), SUBMIT), YES),
    Case("exactly 0.85, exactly 3 steps old", episode(draft(), check(0.85), look(), look(), SUBMIT), YES),
    Case("exactly 0.85, of the revision", episode(draft(), revise(2), check(0.85, 2), SUBMIT), YES),
    Case(
        "revision failed, so the checked version is submitted",
        episode(draft(), check(), failed(Action.REVISE), SUBMIT),
        YES,
    ),
    Case("a check of no version", episode(draft(), check(version=0), SUBMIT), YES, NO),
    Case("no version, neither checked nor submitted", episode(check(version=0), SUBMIT), YES, NO),
    Case("a check that ended in an error is none", episode(draft(), failed(Action.CHECK), SUBMIT), NO),
    Case("exactly 3 steps old", episode(draft(), check(), look(), look(), SUBMIT), YES),
    Case("4 steps old", episode(draft(), check(), look(), look(), look(), SUBMIT), NO),
    Case("one step before the last possible", episode(draft(), check(), SUBMIT), YES, horizon=4),
    Case("on the last possible step", episode(draft(), check(), SUBMIT), NO, horizon=3),
    Case("not submitted", episode(draft(), check()), NO),
    Case("no check", episode(draft(), SUBMIT), NO),
    Case("only the last check counts", episode(draft(), check(1.0), check(0.5), SUBMIT), NO),
    Case("the version before was sufficient", episode(draft(), check(), revise(2), SUBMIT), YES, NO),
    Case("setting without a check", episode(draft(), SUBMIT), NOT_APPLICABLE, facts={"has_check": False}),
]

THREE_BEFORE = episode(look(), look(), draft(), SUBMIT)
EARLY = [
    Case("poor, exactly a quarter of H before", THREE_BEFORE, YES, NO, horizon=12, facts={"quality": 0.49}),
    Case("poor, more than a quarter of H before", THREE_BEFORE, NO, horizon=11, facts={"quality": 0.49}),
    Case("Q exactly 0.5", THREE_BEFORE, NO, horizon=12, facts={"quality": 0.5}),
    Case("exactly half of the criteria missed", THREE_BEFORE, YES, NO, facts={"criteria": (0.49, 1.0)}),
    Case("a criterion of exactly 0.5 is not missed", THREE_BEFORE, NO, facts={"criteria": (0.5, 0.5)}),
    Case("less than half missed", THREE_BEFORE, NO, facts={"criteria": (0.0, 1.0, 1.0)}),
    Case("half missed, at H", THREE_BEFORE, NO, horizon=4, facts={"criteria": (0.0, 1.0), "quality": 0.5}),
    Case("half missed, one step before H", THREE_BEFORE, YES, NO, horizon=5, facts={"criteria": (0.0, 1.0)}),
    Case(
        "invalid: Q is 0 and no criterion was scored",
        THREE_BEFORE,
        YES,
        NO,
        horizon=12,
        facts={"quality": 0.0, "criteria": ()},
    ),
    Case("last pass rate below 0.5", episode(look(), draft(), ran(1), look(), SUBMIT), YES, code=True),
    Case("last pass rate exactly 0.5", episode(look(), draft(), ran(2), look(), SUBMIT), NO, code=True),
    Case("last pass rate below 0.5, at H", episode(look(), draft(), ran(1), SUBMIT), YES, code=True, horizon=4),
    Case("last pass rate below 0.5, not submitted", episode(draft(), ran(1)), NOT_APPLICABLE, code=True),
    Case("the last run counts", episode(draft(), ran(0), revise(2), ran(4, version=2), SUBMIT), NO, code=True),
    Case("low pass rate, not coding", episode(look(), draft(), ran(1), look(), SUBMIT), NO),
    Case("claims without evidence", episode(BLIND, draft(1, False), SUBMIT), YES),
    Case("claims without evidence, at H", episode(BLIND, draft(1, False), SUBMIT), YES, horizon=3),
    Case("claims, evidence came late", episode(draft(1, False), look(), SUBMIT), NO),
    Case("no claims, no evidence", episode(BLIND, draft(), SUBMIT), NO),
    Case(
        "claims without evidence where none is required",
        episode(BLIND, draft(1, False), SUBMIT),
        NO,
        facts={"requires_evidence": False},
    ),
    Case("not submitted", episode(BLIND, draft(1, False)), NOT_APPLICABLE, facts={"quality": 0.0}),
]

TABLE = {
    MaturityEvent.CHECK_BEFORE_SUBMIT: CHECKS,
    MaturityEvent.EVIDENCE_BEFORE_CLAIM: EVIDENCE,
    MaturityEvent.TEST_BEFORE_SUBMIT: TESTS,
    MaturityEvent.REVISION_AFTER_FAILURE: REVISIONS,
    MaturityEvent.VALID_TOOL_USE: TOOLS,
    MaturityEvent.STOP_WHEN_SUFFICIENT: STOPS,
    MaturityEvent.EARLY_SUBMIT: EARLY,
}
ROWS = [pytest.param(event, case, id=f"{event}: {case.why}") for event, cases in TABLE.items() for case in cases]


@pytest.mark.parametrize(("event", "case"), ROWS)
def test_paper_verdict(event: MaturityEvent, case: Case):
    assert verdict(case, event, MaturityConfig.paper()) == case.paper


@pytest.mark.parametrize(("event", "case"), ROWS)
def test_strict_verdict(event: MaturityEvent, case: Case):
    assert verdict(case, event, MaturityConfig.strict()) == (case.strict or case.paper)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_whole_table_at_once(preset: str):
    cases = [(list(TABLE).index(event), case) for event, listed in TABLE.items() for case in listed]
    found = at_once([(case.events, facts_of(case)) for _, case in cases], PRESETS[preset])
    expected = [(case.strict if preset == "strict" else None) or case.paper for _, case in cases]
    assert [verdicts[index] for (index, _), (_, verdicts) in zip(cases, found, strict=True)] == expected


def test_events_that_contradict_the_termination_are_refused():
    facts = EpisodeFacts(10, Termination.SUBMIT, tests_code=False, quality=1.0)
    with pytest.raises(InputError, match="last step is draft"):
        maturity([draft()], facts, MaturityConfig.paper())
    with pytest.raises(InputError, match="no step"):
        maturity([], facts, MaturityConfig.paper())


def test_more_steps_than_the_horizon_are_refused():
    facts = EpisodeFacts(1, Termination.HORIZON, tests_code=False)
    with pytest.raises(InputError, match="at most the horizon"):
        maturity([look(), look()], facts, MaturityConfig.strict())


def test_paper_says_when_quality_is_not_known():
    facts = EpisodeFacts(10, Termination.SUBMIT, tests_code=False)
    with pytest.raises(ConfigError, match="use preset strict"):
        maturity([draft(), SUBMIT], facts, MaturityConfig.paper())
    maturity([draft(), SUBMIT], facts, MaturityConfig.strict())
