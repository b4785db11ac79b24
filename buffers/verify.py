"""Does every stored episode replay? Folds the events again and compares all that follows from them.

States, masks, features and base actions come from the same code as online (`mdp.advance`, `scripts.decision_point`),
so a difference means that a row was damaged, or made by other code than it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np

from buffers.replay import ReplayBuffer
from buffers.where import Where
from harness_mdp.hashing import text_hash
from harness_mdp.mdp import (
    N_ACTIONS,
    DecisionPoint,
    Episode,
    EvalStatus,
    Event,
    Policy,
    State,
    Step,
    ended,
    fold,
    start,
)
from harness_mdp.settings.protocol import Setting
from harness_mdp.settings.scripts import decision_point

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Mismatch", "Report", "verify", "verify_episode"]

SUM_TOLERANCE = 1e-9
"""Allowed distance of a sum of propensities from 1, and of a propensity or a return from the recomputed one."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One stored value that does not follow from the events."""

    episode_id: str
    t: int
    """Step, 1..H; 0 for a value of the whole episode."""
    what: str
    """`mask`, `base_action`, `features`, `propensities`, `policy`, `artifact`, `termination`, ..."""
    stored: str
    recomputed: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification found."""

    episodes: int
    steps: int
    mismatches: tuple[Mismatch, ...]
    asked_again: int = 0
    """Episodes whose behaviour policy could be rebuilt, so that its distribution was compared too."""

    @property
    def ok(self) -> bool:
        """Everything replays."""
        return not self.mismatches

    @property
    def damaged(self) -> int:
        """Episodes with at least one mismatch."""
        return len({mismatch.episode_id for mismatch in self.mismatches})

    def frame(self) -> pl.DataFrame:
        """The mismatches as rows: episode_id, t, what, stored, recomputed."""
        import polars as pl

        schema = {"episode_id": pl.String, "t": pl.Int64, "what": pl.String}
        schema |= {"stored": pl.String, "recomputed": pl.String}
        return pl.DataFrame([asdict(mismatch) for mismatch in self.mismatches], schema=schema)

    def summary(self) -> str:
        """One line for a person."""
        read = f"{self.episodes} episodes, {self.steps} steps"
        if self.ok:
            return f"{read}: everything replays"
        kinds = ", ".join(sorted({mismatch.what for mismatch in self.mismatches}))
        return f"{read}: {len(self.mismatches)} values of {self.damaged} episodes do not replay ({kinds})"


def verify(
    buffer: ReplayBuffer,
    open_setting: Callable[[str], Setting],
    *,
    policy_for: Callable[[Episode], Policy | None] | None = None,
    rescore: Callable[[Episode, Setting], Episode] | None = None,
    **where: Unpack[Where],
) -> Report:
    """Folds the episodes of `buffer`, a few hundred in memory at a time.

    Args:
        buffer: what to verify.
        open_setting: the setting by its name.
        policy_for: rebuilds the behaviour policy of an episode, to compare its distribution too; None where it cannot.
        rescore: computes maturity again (`scoring.maturity.score_episode`), to compare it too.
        where: only these episodes.

    Raises:
        ConfigError: an unknown setting.
        InputError, UnusableBuffer: the buffer cannot be read.
    """
    settings: dict[str, Setting] = {}
    episodes = steps = asked_again = 0
    found: list[Mismatch] = []
    for episode in buffer.episodes(**where):
        setting = settings.get(episode.setting) or settings.setdefault(episode.setting, open_setting(episode.setting))
        policy = policy_for(episode) if policy_for else None
        found.extend(verify_episode(episode, setting, policy))
        if rescore is not None:
            found.extend(_maturity(episode, rescore(episode, setting)))
        episodes += 1
        asked_again += policy is not None
        steps += len(episode.steps)
    return Report(episodes, steps, tuple(found), asked_again)


def verify_episode(episode: Episode, setting: Setting, policy: Policy | None = None) -> Iterator[Mismatch]:
    """Every value of `episode` that does not follow from its events."""
    identity = episode.episode_id
    made_by = (episode.setting_version, episode.feature_schema_id)
    installed = (setting.version, setting.schema.id)
    if made_by != installed:
        # Another version has other masks or features by design; what differs further says nothing.
        yield Mismatch(identity, 0, "setting_version", str(made_by), str(installed))
        return
    states = fold(episode.events, start(episode.horizon, episode.budgets))
    for index, (step, state) in enumerate(zip(episode.steps, states[:-1], strict=True)):
        for what, stored, recomputed in _step(step, index + 1, state, setting, policy):
            yield Mismatch(identity, index + 1, what, stored, recomputed)
        for what, stored, recomputed in _artifact(step.event, state, episode.artifacts):
            yield Mismatch(identity, index + 1, what, stored, recomputed)
    for what, stored, recomputed in _whole(episode, states):
        yield Mismatch(identity, 0, what, stored, recomputed)


_Difference = tuple[str, str, str]
"""(what, stored, recomputed)"""


def _step(step: Step, t: int, state: State, setting: Setting, policy: Policy | None) -> Iterator[_Difference]:
    point = decision_point(setting, state)
    if step.t != t:
        yield "t", str(step.t), str(t)
    if (early := ended(state)) is not None:
        yield "termination", "a further step", f"ended before by {early.value}"
    if not np.array_equal(step.mask, point.mask):
        yield "mask", _bits(step.mask), _bits(point.mask)
    if step.base_action is not point.base_action:
        yield "base_action", step.base_action.label, point.base_action.label
    if step.features.dtype != np.float32 or step.features.tobytes() != point.features.tobytes():
        yield "features", *_first_difference(step.features, point.features, setting.schema.names)
    if not point.mask[step.action]:
        yield "action", step.action.label, f"illegal, legal are {_bits(point.mask)}"
    yield from _propensities(step, point, policy)


def _propensities(step: Step, point: DecisionPoint, policy: Policy | None) -> Iterator[_Difference]:
    probs, shown = step.propensities, str(step.propensities.tolist())
    if probs.shape != (N_ACTIONS,) or not np.isfinite(probs).all() or (probs < 0.0).any():
        yield "propensities", shown, "7 numbers in [0, 1]"
        return
    if abs(float(probs.sum()) - 1.0) > SUM_TOLERANCE:
        yield "propensities", shown, f"sum 1, not {float(probs.sum())!r}"
    if (probs[~point.mask] != 0.0).any():
        yield "propensities", shown, f"0 on illegal actions, legal are {_bits(point.mask)}"
    if probs[step.action] <= 0.0:
        yield "propensities", shown, f"more than 0 on {step.action.label}, which was taken"
    if policy is not None:
        again = policy.probs(point)
        if not np.allclose(again, probs, rtol=0.0, atol=SUM_TOLERANCE):
            yield "policy", shown, str(again.tolist())


def _artifact(event: Event, state: State, texts: Mapping[str, str]) -> Iterator[_Difference]:
    """Version, hash and length of a new artifact; the version that a check or a tool names."""
    made = event.artifact
    if made is not None:
        if made.version != state.version + 1:
            yield "artifact", f"version {made.version}", f"version {state.version + 1}"
        text = texts.get(made.sha256)
        if text is None:
            yield "artifact", f"no text for {made.sha256}", "the text of every version"
        elif (text_hash(text), len(text)) != (made.sha256, made.chars):
            yield "artifact", f"{made.sha256}, {made.chars} characters", f"{text_hash(text)}, {len(text)} characters"
    if event.check is not None and event.check.version != state.version:
        yield "check", f"version {event.check.version}", f"version {state.version}"
    if event.tool is not None and event.tool.version not in (0, state.version):
        yield "tool", f"version {event.tool.version}", f"version {state.version}, or 0"


def _whole(episode: Episode, states: list[State]) -> Iterator[_Difference]:
    last = states[-1]
    termination = ended(last)
    if episode.termination is not termination:
        yield "termination", episode.termination.value, termination.value if termination else "it goes on"
    if len(episode.steps) > episode.horizon:
        yield "steps", str(len(episode.steps)), f"at most {episode.horizon}"
    final = last.artifact.sha256 if last.artifact else ""
    if episode.final_artifact != final:
        yield "final_artifact", episode.final_artifact, final
    versions = {event.artifact.sha256 for event in episode.events if event.artifact is not None}
    if unknown := sorted(set(episode.artifacts) - versions):
        yield "artifacts", ", ".join(unknown), "texts of versions only"
    if episode.tokens != last.tokens:
        yield "tokens", str(episode.tokens), str(last.tokens)
    if episode.cost_usd != last.cost_usd:
        yield "cost_usd", repr(episode.cost_usd), repr(last.cost_usd)
    yield from _return(episode)


def _return(episode: Episode) -> Iterator[_Difference]:
    """Q = Σ w s / Σ w of the stored rubric; 0 for an invalid submission."""
    weight = sum(weight for *_, weight in episode.rubric)
    if episode.eval_status is EvalStatus.INVALID:
        value = 0.0
    elif weight > 0.0:
        value = sum(weight * score for _, score, weight in episode.rubric) / weight
    else:
        yield "rubric", str(episode.rubric), "criteria with a weight, for a scored episode"
        return
    if not abs(episode.return_ - value) <= SUM_TOLERANCE:
        yield "return", repr(episode.return_), repr(value)


def _maturity(stored: Episode, again: Episode) -> Iterator[Mismatch]:
    """Presets and verdicts that `again` has; presets it does not compute are left alone."""
    presets = {preset for preset, *_ in again.maturity_events} | set(again.maturity)
    for preset in sorted(presets):
        before, after = stored.maturity.get(preset), again.maturity.get(preset)
        if before != after:
            yield Mismatch(stored.episode_id, 0, f"maturity_{preset}", repr(before), repr(after))
        events = [sorted(row for row in e.maturity_events if row[0] == preset) for e in (stored, again)]
        if events[0] != events[1]:
            yield Mismatch(stored.episode_id, 0, f"maturity_events_{preset}", str(events[0]), str(events[1]))


def _bits(mask: np.ndarray) -> str:
    return "".join("1" if legal else "0" for legal in mask.tolist())


def _first_difference(stored: np.ndarray, recomputed: np.ndarray, names: tuple[str, ...]) -> tuple[str, str]:
    if stored.shape != recomputed.shape or stored.dtype != recomputed.dtype:
        return f"{stored.shape} {stored.dtype}", f"{recomputed.shape} {recomputed.dtype}"
    at = int(np.flatnonzero(stored.view(np.uint32) != recomputed.view(np.uint32))[0])
    return f"{names[at]}={float(stored[at])!r}", f"{names[at]}={float(recomputed[at])!r}"
