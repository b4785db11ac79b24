"""HMS as a number: weights, signs, what is not applicable, presets, and re-scoring of finished episodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_mdp.errors import ConfigError
from harness_mdp.mdp import (
    Action,
    Artifact,
    Budgets,
    CheckResult,
    Claim,
    Episode,
    EvalStatus,
    Event,
    Status,
    Step,
    Termination,
    ToolResult,
)
from harness_mdp.scoring.maturity import (
    EpisodeFacts,
    MaturityConfig,
    MaturityEvent,
    maturity,
    score_episode,
)

DRAFT = Event(Action.DRAFT, artifact=Artifact(1, "0" * 64, 10))
CHECK = Event(Action.CHECK, check=CheckResult(1.0, 1, 1, 1))
SUBMIT = Event(Action.SUBMIT)
GOOD = EpisodeFacts(10, Termination.SUBMIT, tests_code=False, quality=1.0, criteria=(1.0,))
PAPER = MaturityConfig.paper()


def test_check_before_submit_is_two_of_three():
    # applicable: CheckBeforeSubmit and StopWhenSufficient fire, EarlySubmit does not: (1 + 1 - 0) / 3
    assert maturity([DRAFT, CHECK, SUBMIT], GOOD, PAPER).hms == pytest.approx(2 / 3)


def test_straight_submit_of_a_poor_draft_is_negative():
    facts = replace(GOOD, quality=0.0)
    assert maturity([DRAFT, SUBMIT], facts, PAPER).hms == pytest.approx(-1 / 3)
    assert maturity([DRAFT, SUBMIT], facts, MaturityConfig.strict()).hms == 0


def test_weights_count():
    config = MaturityConfig(weights={"CheckBeforeSubmit": 3.0, "StopWhenSufficient": 0.0})
    assert maturity([DRAFT, CHECK, SUBMIT], GOOD, config).hms == pytest.approx(3 / 4)


def test_nothing_applicable_is_no_score_rather_than_zero():
    facts = EpisodeFacts(1, Termination.HORIZON, tests_code=False, has_check=False)
    score = maturity([Event(Action.OBSERVE)], facts, PAPER)
    assert score.hms is None
    assert not any(applicable for _, applicable, _ in score.verdicts)


def test_strict_reads_nothing_sealed():
    events = [DRAFT, CHECK, SUBMIT]
    scores = {
        maturity(events, replace(GOOD, quality=quality, criteria=criteria), MaturityConfig.strict())
        for quality in (None, 0.0, 1.0)
        for criteria in ((), (0.0, 0.0))
    }
    assert len(scores) == 1


def test_hash_follows_thresholds_weights_and_nothing_else():
    assert PAPER.hash == MaturityConfig(weights={"EarlySubmit": 1.0}).hash
    hashes = {
        PAPER.hash,
        MaturityConfig.strict().hash,
        replace(PAPER, early_share=0.35).hash,
        MaturityConfig(weights={"EarlySubmit": 2.0}).hash,
    }
    assert len(hashes) == 4
    assert PAPER.hash == MaturityConfig.named("paper").hash


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": {"EarlySubmits": 1.0}}, "unknown event 'EarlySubmits'"),
        ({"weights": {"EarlySubmit": -1.0}}, "at least 0"),
        ({"weights": {"EarlySubmit": float("nan")}}, "finite"),
        ({"sufficient_score": 85.0}, r"is 85.0; expected 0 to 1 \(field sufficient_score of"),
        ({"revision_window": -1}, r"is -1 steps; expected at least 0 \(field revision_window of"),
    ],
)
def test_bad_config_is_refused_by_name(change: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        MaturityConfig(**change)  # type: ignore[arg-type]


def test_unknown_preset_names_the_known_ones():
    with pytest.raises(ConfigError, match="paper, strict"):
        MaturityConfig.named("lenient")


claims = st.none() | st.lists(st.builds(Claim, st.just("c"), st.booleans()), max_size=3).map(tuple)
tools = st.none() | st.builds(
    ToolResult,
    st.just("t"),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
    passed=st.integers(0, 2),
    total=st.integers(2, 4) | st.just(0),
)
checks = st.none() | st.builds(
    CheckResult,
    st.floats(0, 1),
    st.integers(0, 3),
    st.just(0),
    st.just(1),
    st.sampled_from([(), ("p",)]),
)
steps = st.builds(
    Event,
    st.sampled_from(list(Action)),
    st.sampled_from(list(Status)),
    evidence=st.sampled_from([(), ("e",)]),
    tool=tools,
    check=checks,
    artifact=st.none() | st.builds(Artifact, st.integers(1, 3), st.just("h"), st.just(1)),
    claims=claims,
)


@settings(max_examples=200, deadline=None)
@given(
    events=st.lists(steps, max_size=9),
    submit=st.booleans(),
    code=st.booleans(),
    quality=st.floats(0, 1),
    preset=st.sampled_from(["paper", "strict"]),
    weights=st.dictionaries(st.sampled_from([event.value for event in MaturityEvent]), st.floats(0, 10)),
)
def test_hms_stays_in_range_whatever_happened(events, submit, code, quality, preset, weights):
    termination = Termination.SUBMIT if submit else Termination.BUDGET
    facts = EpisodeFacts(10, termination, tests_code=code, quality=quality, criteria=(quality,))
    config = replace(MaturityConfig.named(preset), weights=weights)
    score = maturity([*events, SUBMIT] if submit else events, facts, config)
    assert score.hms is None or -1 <= score.hms <= 1
    assert all(applicable or not fired for _, applicable, fired in score.verdicts)


@dataclass(frozen=True)
class Coding:
    tests_code: bool = True


def finished(*events: Event) -> Episode:
    rows = tuple(
        Step(t, event, np.zeros(3, np.float32), np.ones(7, bool), event.action, event.action, np.full(7, 1 / 7))
        for t, event in enumerate(events, start=1)
    )
    return Episode(
        episode_id="e",
        run="r",
        phase="eval",
        setting="coding",
        setting_version=1,
        feature_schema_id="f",
        task_id="t",
        task_hash="h",
        template="x",
        split="eval",
        difficulty="easy",
        executor="x",
        policy="base",
        policy_fingerprint="p",
        seed=0,
        rollout=0,
        horizon=10,
        budgets=Budgets(),
        eval_status=EvalStatus.SCORED,
        termination=Termination.SUBMIT,
        return_=0.25,
        rubric=(("a", 1.0, 1.0), ("b", 0.0, 3.0)),
        steps=rows,
    )


def test_an_episode_is_scored_under_the_presets_asked_for():
    configs = [MaturityConfig.paper(), MaturityConfig.strict()]
    scored = score_episode(finished(DRAFT, CHECK, SUBMIT), Coding(), configs)
    # coding: check 1, test 0, stop 1, early 1 (Q 0.25 after 2 of 10 steps) in paper, 0 in strict; four applicable
    assert scored.maturity == {"paper": pytest.approx(1 / 4), "strict": pytest.approx(2 / 4)}
    assert ("paper", "EarlySubmit", True, True) in scored.maturity_events
    assert ("strict", "EarlySubmit", True, False) in scored.maturity_events
    assert len(scored.maturity_events) == 14


def test_re_scoring_replaces_one_preset_and_keeps_the_rest():
    first = score_episode(finished(DRAFT, CHECK, SUBMIT), Coding(), [MaturityConfig.paper(), MaturityConfig.strict()])
    again = score_episode(first, Coding(), [replace(MaturityConfig.paper(), early_share=0.1, missed_share=0.9)])
    assert again.maturity == {"paper": pytest.approx(2 / 4), "strict": first.maturity["strict"]}
    assert len(again.maturity_events) == 14
    assert again.steps is first.steps
