"""The formalism: masks by the table, states by folding events, endings."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from harness_mdp.features import FeatureSchema, features
from harness_mdp.mdp import (
    Action,
    Artifact,
    Budgets,
    CheckResult,
    Claim,
    Event,
    EventError,
    LegalRules,
    Needs,
    State,
    Status,
    Termination,
    ToolResult,
    advance,
    ended,
    fold,
    legal_mask,
    start,
)

DRAFTED = Event(Action.DRAFT, artifact=Artifact(1, "a" * 64, 40))
SCHEMA = FeatureSchema("toy", 1, ("a", "b", "c", "d"))
NO_FLAGS = (False, False, False, False)


def legal(rules: LegalRules, *events: Event) -> set[str]:
    mask = legal_mask(rules, fold(events, start(10))[-1])
    return {action.label for action in Action if mask[action]}


def feature(state: State, name: str, flags: tuple[bool, bool, bool, bool] = NO_FLAGS) -> float:
    return float(features(state, flags)[SCHEMA.names.index(name)])


@pytest.mark.parametrize(
    ("retrieve", "needs", "events", "expected"),
    [
        (False, Needs.ARTIFACT, (), {"observe", "draft"}),
        (True, Needs.ARTIFACT, (), {"observe", "retrieve", "draft"}),
        (False, Needs.ARTIFACT, (DRAFTED,), {"observe", "call_tool", "draft", "check", "revise", "submit"}),
        (True, Needs.NOTHING, (), {"observe", "retrieve", "call_tool", "draft"}),
        (True, Needs.RETRIEVED, (), {"observe", "retrieve", "draft"}),
        (True, Needs.RETRIEVED, (Event(Action.OBSERVE, evidence=("q",)),), {"observe", "retrieve", "draft"}),
        (
            True,
            Needs.RETRIEVED,
            (Event(Action.RETRIEVE, evidence=("doc-1",)),),
            {"observe", "retrieve", "call_tool", "draft"},
        ),
        (True, Needs.RETRIEVED, (Event(Action.RETRIEVE),), {"observe", "retrieve", "draft"}),
    ],
)
def test_legal_mask_follows_the_table(
    retrieve: bool, needs: Needs, events: tuple[Event, ...], expected: set[str]
) -> None:
    assert legal(LegalRules(retrieve, needs), *events) == expected


def test_the_mask_at_the_last_step_is_not_special() -> None:
    rules = LegalRules(False, Needs.ARTIFACT)
    nearly = fold([DRAFTED], start(2))[-1]
    fresh = fold([DRAFTED], start(10))[-1]
    assert (legal_mask(rules, nearly) == legal_mask(rules, fresh)).all()


def test_a_parse_failure_is_a_step_that_leaves_the_artifact_as_it_was() -> None:
    failed = Event(Action.REVISE, Status.ERROR, EventError.PARSE, prompt_tokens=7, completion_tokens=3)
    before = fold([DRAFTED], start(10))[-1]
    after = advance(before, failed)
    assert after.artifact == before.artifact
    assert after.revisions == 0
    assert (after.steps, after.tokens, after.executor_errors) == (2, 10, 1)
    assert after.count(Action.REVISE) == 1


def test_a_new_version_is_unchecked_and_its_problems_are_unknown() -> None:
    check = Event(Action.CHECK, check=CheckResult(0.5, 1, 1, 2, ("the sum is off",)))
    revised = Event(Action.REVISE, artifact=Artifact(2, "b" * 64, 44))
    checked = fold([DRAFTED, check], start(10))[-1]
    assert checked.version_checked
    assert checked.open_problems == 1
    after = advance(checked, revised)
    assert not after.version_checked
    assert after.open_problems == 0
    assert after.last_check == check.check
    assert after.revisions == 1


def test_evidence_counts_as_new_until_the_next_version_is_written() -> None:
    events = [Event(Action.OBSERVE, evidence=("a",)), Event(Action.RETRIEVE, evidence=("b", "c")), DRAFTED]
    states = fold([*events, Event(Action.OBSERVE, evidence=("d",))], start(10))
    assert [state.evidence_new for state in states] == [0, 1, 3, 0, 1]
    assert states[-1].evidence == ("a", "b", "c", "d")
    assert states[-1].retrieved == 2


def test_a_tool_result_is_unread_until_the_next_version_is_written() -> None:
    failing = ToolResult("tests", valid=True, ok=True, version=1, passed=1, total=3, problems=("f(1)", "f(2)"))
    states = fold([DRAFTED, Event(Action.CALL_TOOL, tool=failing), DRAFTED], start(10))
    assert [state.unread_tool for state in states] == [False, False, True, False]
    assert feature(states[2], "last_tool_status") == -1.0
    assert feature(states[2], "open_problems") == pytest.approx(0.4)


def test_a_tool_that_ran_on_no_version_leaves_open_problems_as_they_were() -> None:
    check = Event(Action.CHECK, check=CheckResult(0.5, 1, 1, 2, ("the sum is off",)))
    looked_up = Event(Action.CALL_TOOL, tool=ToolResult("calculator", valid=True, ok=True))
    assert fold([DRAFTED, check, looked_up], start(10))[-1].open_problems == 1


def test_steps_without_progress_are_counted_from_the_last_progress() -> None:
    check = Event(Action.CHECK, check=CheckResult(1.0, 1, 1, 1))
    nothing = Event(Action.OBSERVE)
    states = fold([nothing, nothing, DRAFTED, check, check, nothing], start(10))
    assert [state.stalled for state in states] == [0, 1, 2, 0, 0, 1, 2]


def test_an_unknown_price_stays_unknown() -> None:
    paid = Event(Action.OBSERVE, cost_usd=0.5)
    unknown = Event(Action.OBSERVE, cost_usd=None)
    assert fold([paid, unknown, paid], start(10))[-1].cost_usd is None
    assert fold([paid, paid], start(10, Budgets(usd=4.0)))[-1].cost_usd == 1.0


@pytest.mark.parametrize(
    ("events", "budgets", "expected"),
    [
        ((DRAFTED,), Budgets(), None),
        ((DRAFTED, Event(Action.SUBMIT)), Budgets(), Termination.SUBMIT),
        ((DRAFTED, DRAFTED, DRAFTED), Budgets(), Termination.HORIZON),
        ((DRAFTED, DRAFTED, Event(Action.SUBMIT)), Budgets(), Termination.SUBMIT),
        ((Event(Action.DRAFT, prompt_tokens=60, completion_tokens=40),), Budgets(tokens=100), Termination.BUDGET),
        ((Event(Action.DRAFT, prompt_tokens=60, completion_tokens=39),), Budgets(tokens=100), None),
        ((Event(Action.DRAFT, cost_usd=0.2),), Budgets(usd=0.2), Termination.BUDGET),
        ((Event(Action.DRAFT, cost_usd=None),), Budgets(usd=0.2), None),
    ],
)
def test_what_ends_an_episode(events: tuple[Event, ...], budgets: Budgets, expected: Termination | None) -> None:
    assert ended(fold(events, start(3, budgets))[-1]) is expected


def test_features_are_named_float32_and_finite_from_the_first_state_on() -> None:
    vector = features(start(10), NO_FLAGS)
    assert vector.dtype == np.float32
    assert vector.shape == (len(SCHEMA),) == (len(SCHEMA.names),)
    assert np.isfinite(vector).all()
    assert feature(start(10), "check_score") == -1.0
    assert feature(start(10), "steps_left") == 1.0


def test_features_tell_the_last_action_flags_and_support() -> None:
    claims = (Claim("x is 3", True), Claim("y is 4", False))
    state = fold([Event(Action.DRAFT, artifact=Artifact(1, "a", 40), claims=claims)], start(10))[-1]
    assert feature(state, "last_draft") == 1.0
    assert feature(state, "last_observe") == 0.0
    assert feature(state, "claims_supported") == 0.5
    assert feature(state, "flag_c", (False, False, True, False)) == 1.0


def test_the_schema_id_changes_with_names_setting_and_version() -> None:
    ids = {
        SCHEMA.id,
        FeatureSchema("toy", 2, ("a", "b", "c", "d")).id,
        FeatureSchema("toy", 1, ("a", "b", "c", "e")).id,
        FeatureSchema("other", 1, ("a", "b", "c", "d")).id,
    }
    assert len(ids) == 4
    assert FeatureSchema("toy", 1, ("a", "b", "c", "d")).id == SCHEMA.id


def test_a_schema_needs_four_distinct_flags() -> None:
    with pytest.raises(ValueError, match="4 distinct"):
        FeatureSchema("toy", 1, ("a", "a", "b", "c"))


def test_no_event_field_could_carry_a_sealed_value() -> None:
    """The information rule by type: what an event can hold is listed here, and a return is not among it."""
    names = {field.name for field in fields(Event)}
    assert names == {
        "action",
        "status",
        "error",
        "evidence",
        "tool",
        "check",
        "artifact",
        "claims",
        "note",
        "calls",
        "prompt_tokens",
        "completion_tokens",
        "cost_usd",
        "seconds",
    }


def test_a_horizon_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        start(0)
