"""`verify`: what was logged replays; whatever is changed afterwards is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from buffers import ReplayBuffer
from buffers.verify import verify, verify_episode
from harness_mdp.mdp import Action, Artifact, Episode, EvalStatus, Event, Termination
from harness_mdp.scoring.maturity import score_episode
from tests.episodes import MADE_UP, Behaviour, MadeUpSetting, episode, episodes


def open_made_up(name: str) -> MadeUpSetting:
    assert name == "made_up"
    return MADE_UP


def rescore(stored: Episode, setting: MadeUpSetting) -> Episode:
    return score_episode(stored, setting)


def test_everything_that_was_logged_replays(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    made = [rescore(e, MADE_UP) for e in episodes(120)]
    buffer.append(made)
    report = verify(buffer, open_made_up, policy_for=lambda _: Behaviour(), rescore=rescore)
    assert report.mismatches == ()
    assert report.ok
    assert (report.episodes, report.steps) == (120, sum(len(e.steps) for e in made))
    assert "everything replays" in report.summary()
    assert report.frame().height == 0


def long_episode() -> Episode:
    """One with a new version, a check, a tool and an error, not ended by budget."""
    return next(
        e
        for e in (episode(i) for i in range(500))
        if {Action.CHECK, Action.REVISE, Action.CALL_TOOL} <= {s.action for s in e.steps}
        and e.termination is Termination.SUBMIT
        and e.return_ > 0
    )


def with_step(made: Episode, index: int, **changes) -> Episode:
    steps = list(made.steps)
    steps[index] = replace(steps[index], **changes)
    return replace(made, steps=tuple(steps))


def with_event(made: Episode, index: int, **changes) -> Episode:
    return with_step(made, index, event=replace(made.steps[index].event, **changes))


def nudged(made: Episode) -> Episode:
    """One feature of one step moved by one unit in the last place."""
    features = made.steps[1].features.copy()
    features[0] = np.nextafter(features[0], np.float32(2.0))
    return with_step(made, 1, features=features)


def flipped(made: Episode) -> Episode:
    mask = made.steps[0].mask.copy()
    mask[Action.CHECK] ^= True
    return with_step(made, 0, mask=mask)


def spread(made: Episode, probs: list[float]) -> Episode:
    return with_step(made, 0, propensities=np.array(probs))


def first_version(made: Episode) -> int:
    return next(i for i, s in enumerate(made.steps) if s.event.artifact is not None)


def renumbered(made: Episode) -> Episode:
    at = first_version(made)
    artifact = made.steps[at].event.artifact
    return with_event(made, at, artifact=Artifact(7, artifact.sha256, artifact.chars))


def checked_other(made: Episode) -> Episode:
    at = next(i for i, s in enumerate(made.steps) if s.event.check is not None)
    return with_event(made, at, check=replace(made.steps[at].event.check, version=9))


def ran_on_other(made: Episode) -> Episode:
    at = next(i for i, s in enumerate(made.steps) if s.event.tool is not None)
    return with_event(made, at, tool=replace(made.steps[at].event.tool, version=9))


DAMAGES = {
    "features": nudged,
    "mask": flipped,
    "base_action": lambda e: with_step(e, 0, base_action=Action.DRAFT),
    "action": lambda e: with_step(e, 0, action=Action.SUBMIT, event=Event(Action.SUBMIT)),
    "propensities": lambda e: spread(e, [0.0] * 6 + [1.0]),
    "policy": lambda e: spread(e, [0.6, 0.2, 0.0, 0.2, 0.0, 0.0, 0.0]),
    "t": lambda e: with_step(e, 2, t=2),
    "termination": lambda e: replace(e, termination=Termination.HORIZON),
    "steps": lambda e: replace(e, horizon=1),
    "artifact": renumbered,
    "check": checked_other,
    "tool": ran_on_other,
    "artifacts": lambda e: replace(e, artifacts={**e.artifacts, "0" * 64: "never a version"}),
    "final_artifact": lambda e: replace(e, final_artifact="0" * 64),
    "tokens": lambda e: replace(e, tokens=e.tokens + 1),
    "cost_usd": lambda e: replace(e, cost_usd=None),
    "return": lambda e: replace(e, return_=e.return_ / 2),
    "rubric": lambda e: replace(e, rubric=()),
    "setting_version": lambda e: replace(e, setting_version=2),
    "maturity_paper": lambda e: replace(e, maturity={"paper": 2.0}),
    "maturity_events_paper": lambda e: replace(
        e, maturity_events=tuple((p, n, a, not f) for p, n, a, f in e.maturity_events)
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_changed_value_is_found_and_named(tmp_path, what):
    good = rescore(long_episode(), MADE_UP)
    bad = DAMAGES[what](good)
    buffer = ReplayBuffer(tmp_path)
    buffer.append([replace(good, episode_id="good"), replace(bad, episode_id="bad")])
    # A damaged history cannot be judged, so maturity is asked again only where it is the damage.
    again = rescore if what.startswith("maturity") else None
    report = verify(buffer, open_made_up, policy_for=lambda _: Behaviour(), rescore=again)
    assert not report.ok
    assert set(report.frame()["episode_id"]) == {"bad"}
    assert what in report.frame()["what"].to_list()
    assert what in report.summary()
    assert report.damaged == 1


@pytest.mark.parametrize(
    "probs",
    [
        [0.5, 0.2, 0.0, 0.2, 0.0, 0.0, 0.0],
        [0.4, 0.2, 0.2, 0.2, 0.0, 0.0, 0.0],
        [1.2, 0.0, 0.0, -0.2, 0.0, 0.0, 0.0],
        [float("nan"), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ],
    ids=["sums to 0.9", "illegal", "negative", "nan"],
)
def test_no_distribution_over_the_legal_actions(probs):
    found = list(verify_episode(spread(long_episode(), probs), MADE_UP))
    assert {m.what for m in found} == {"propensities"}


def test_a_taken_action_needs_a_positive_propensity():
    made = long_episode()
    legal = [0.0 if Action(i) is made.steps[0].action else 1.0 for i in (0, 1, 3)]
    probs = np.zeros(7)
    probs[[0, 1, 3]] = np.array(legal) / sum(legal)
    (found,) = verify_episode(with_step(made, 0, propensities=probs), MADE_UP)
    assert (found.t, found.what) == (1, "propensities")
    assert "which was taken" in found.recomputed


def test_an_invalid_episode_returns_zero():
    made = replace(long_episode(), eval_status=EvalStatus.INVALID, rubric=(), return_=0.0)
    assert list(verify_episode(made, MADE_UP)) == []
    (found,) = verify_episode(replace(made, return_=0.5), MADE_UP)
    assert found.what == "return"


def test_only_the_episodes_asked_for_are_folded(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append([*episodes(4), *episodes(3, run="b", executor="b")])
    assert verify(buffer, open_made_up, run="b").episodes == 3
