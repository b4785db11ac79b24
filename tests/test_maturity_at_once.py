"""Scoring many episodes at once gives exactly what the seven rules say one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_mdp.errors import InputError
from harness_mdp.hashing import generator
from harness_mdp.mdp import Action, Artifact, CheckResult, Claim, Event, Status, Termination, ToolResult
from harness_mdp.scoring.maturity import PRESETS, EpisodeFacts, MaturityConfig, MaturityEvent
from tests.maturity_frames import at_once, one_by_one

SUBMIT = Event(Action.SUBMIT)
SHARES = (0.0, 0.25, 0.35, 0.5, 0.7, 0.85, 0.9, 1.0)
"""Values and thresholds alike, so that boundaries are met."""

shares = st.sampled_from(SHARES) | st.floats(0, 1)
tools = st.none() | st.builds(
    ToolResult,
    st.just("t"),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
    passed=st.integers(0, 3),
    total=st.integers(0, 4),
)
checks = st.none() | st.builds(
    CheckResult, shares, st.integers(0, 3), st.just(0), st.just(1), st.sampled_from([(), ("p",)])
)
events = st.builds(
    Event,
    st.sampled_from(list(Action)),
    st.sampled_from(list(Status)),
    evidence=st.sampled_from([(), ("e",), ("e", "f")]),
    tool=tools,
    check=checks,
    artifact=st.none() | st.builds(Artifact, st.integers(1, 3), st.just("h"), st.just(1)),
    claims=st.none() | st.lists(st.builds(Claim, st.just("c"), st.booleans()), max_size=4).map(tuple),
)


@st.composite
def runs(draw):
    done = draw(st.lists(events, max_size=8))
    termination = draw(st.sampled_from(list(Termination)))
    if termination is Termination.SUBMIT:
        done = [*done, SUBMIT]
    facts = EpisodeFacts(
        horizon=draw(st.integers(max(1, len(done)), len(done) + 8)),
        termination=termination,
        tests_code=draw(st.booleans()),
        has_check=draw(st.booleans()),
        requires_evidence=draw(st.booleans()),
        quality=draw(shares),
        criteria=tuple(draw(st.lists(shares, max_size=3))),
    )
    return done, facts


configs = st.builds(
    MaturityConfig,
    weights=st.dictionaries(st.sampled_from([event.value for event in MaturityEvent]), st.floats(0, 10)),
    check_of_submitted_version=st.booleans(),
    early_reads_quality=st.booleans(),
    failed_check_gap=st.integers(0, 4),
    claims_supported=shares,
    failed_test_gap=st.integers(0, 4),
    revision_window=st.integers(0, 4),
    valid_tool_share=shares,
    sufficient_score=shares,
    sufficient_age=st.integers(0, 4),
    early_quality=shares,
    early_share=shares,
    missed_criterion=shares,
    missed_share=shares,
    early_pass_rate=shares,
)


@settings(max_examples=80, deadline=None)
@given(episodes=st.lists(runs(), min_size=1, max_size=12), config=configs)
def test_any_events_under_any_config(episodes, config):
    assert at_once(episodes, config) == one_by_one(episodes, config)


def random_event(rng: np.random.Generator) -> Event:
    """Denser than hypothesis makes them: most steps have something to judge."""

    def share() -> float:
        return float(rng.choice(SHARES))

    def rarely(value: object) -> object:
        return value if rng.random() < 0.5 else None

    total = int(rng.integers(0, 5))
    tool = ToolResult("t", rng.random() < 0.9, rng.random() < 0.9, int(rng.integers(0, 4)), min(total, 3), total)
    check = CheckResult(share(), int(rng.integers(0, 4)), 0, 1, ("p",) * int(rng.integers(0, 3)))
    claims = tuple(Claim("c", bool(rng.random() < 0.7)) for _ in range(rng.integers(0, 11)))
    return Event(
        Action(int(rng.integers(0, 7))),
        Status.OK if rng.random() < 0.85 else Status.ERROR,
        evidence=("e",) * int(rng.integers(0, 2)),
        tool=rarely(tool),  # type: ignore[arg-type]
        check=rarely(check),  # type: ignore[arg-type]
        artifact=rarely(Artifact(int(rng.integers(1, 4)), "h", 1)),  # type: ignore[arg-type]
        claims=rarely(claims),  # type: ignore[arg-type]
    )


def random_run(rng: np.random.Generator) -> tuple[list[Event], EpisodeFacts]:
    done = [random_event(rng) for _ in range(rng.integers(0, 12))]
    termination = list(Termination)[rng.integers(0, 3)]
    if termination is Termination.SUBMIT:
        done.append(SUBMIT)
    horizon = len(done) + int(rng.integers(0, 12)) or 1
    criteria = tuple(float(rng.choice(SHARES)) for _ in range(rng.integers(0, 4)))
    code = bool(rng.random() < 0.5)
    return done, EpisodeFacts(horizon, termination, code, True, not code, float(rng.choice(SHARES)), criteria)


@pytest.mark.parametrize("preset", PRESETS)
def test_thousands_of_random_episodes(preset):
    rng = generator("maturity at once")
    episodes = [random_run(rng) for _ in range(3000)]
    found = at_once(episodes, PRESETS[preset])
    assert found == one_by_one(episodes, PRESETS[preset])
    for column in zip(*(verdicts for _, verdicts in found), strict=True):  # nothing was left untested
        assert {(True, True), (True, False)} <= set(column)


def test_the_order_of_other_episodes_does_not_matter():
    rng = generator("maturity at once", "order")
    episodes = [random_run(rng) for _ in range(50)]
    assert at_once(episodes[::-1], PRESETS["paper"])[::-1] == at_once(episodes, PRESETS["paper"])


def test_what_one_episode_refuses_is_refused_by_name():
    good = ([SUBMIT], EpisodeFacts(10, Termination.SUBMIT, False, quality=1.0))
    look = Event(Action.OBSERVE)
    with pytest.raises(InputError, match="episode 1: the last step is observe"):
        at_once([good, ([look], good[1])], PRESETS["strict"])
    with pytest.raises(InputError, match="episode 1: the last step is no step"):
        at_once([good, ([], good[1])], PRESETS["strict"])
    with pytest.raises(InputError, match="episode 0: 1 steps"):
        at_once([([SUBMIT], replace(good[1], horizon=0)), good], PRESETS["strict"])
