"""What an action can lead to, and with which chance: the events that `acting.act` reports, without an executor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from harness_mdp.mdp import Action, Artifact, CheckResult, Event, State, ToolResult, advance
from harness_mdp.settings.tabular.setting import LOOKUP, missing_figures
from harness_mdp.settings.tabular.tasks import draft_text, missing_problem
from harness_mdp.settings.tabular.world import (
    BRIEF,
    EXAMPLE,
    FIGURES,
    LEVELS,
    NOTES,
    RECORD,
    draft_chances,
    evidence_id,
    named_chances,
    revision_chances,
)

__all__ = ["TOLD", "Outcome", "as_level", "following", "outcomes"]

TOLD = "standard"
"""The difficulty that states are enumerated under; `as_level` gives the same state of a task of another."""

_CHARS = tuple(
    len(draft_text({name: None if place < missing else 1000 for place, name in enumerate(FIGURES)}))
    for missing in range(len(FIGURES) + 1)
)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One thing that an action can lead to."""

    event: Event
    chance: npt.NDArray[np.float64]
    """(3,) by difficulty."""


def outcomes(state: State, action: Action) -> list[Outcome]:
    """What the legal `action` can lead to in `state`; for each difficulty the chances sum to 1.

    Which of two equal figures is missing or named, and hashes, which no policy reads, are those of one case for all.
    """
    match action:
        case Action.OBSERVE:
            new = [name for name in (BRIEF, EXAMPLE) if evidence_id(name, TOLD) not in state.evidence][:1]
            return [_sure(Event(action, evidence=_ids(*new)))]
        case Action.CALL_TOOL:
            new = [] if evidence_id(RECORD, TOLD) in state.evidence else [RECORD, NOTES]
            return [_sure(Event(action, evidence=_ids(*new), tool=ToolResult(LOOKUP, valid=True, ok=True)))]
        case Action.DRAFT:
            at_hand = tuple(each.rpartition("-")[0] for each in state.evidence)
            return _written(state, action, np.stack([draft_chances(level, at_hand) for level in LEVELS]))
        case Action.REVISE:
            chances = revision_chances(missing_figures(state), state.open_problems)
            return _written(state, action, np.tile(chances, (len(LEVELS), 1)))
        case Action.CHECK:
            missing = missing_figures(state)
            chances = named_chances(missing)
            return [
                Outcome(Event(action, check=_verdict(state, named)), np.full(len(LEVELS), chances[named]))
                for named in range(missing + 1)
            ]
        case Action.SUBMIT:
            return [_sure(Event(action, note=f"submitted version {state.version}"))]
        case Action.RETRIEVE:
            raise ValueError("retrieve is not offered in tabular")


def following(state: State, event: Event) -> State:
    """The state after `event`; evidence in one order, so that two ways to the same things at hand meet."""
    after = advance(state, event)
    return replace(after, evidence=tuple(sorted(after.evidence))) if event.evidence else after


def as_level(state: State, level: str) -> State:
    """The same state in a task of difficulty `level`."""
    if not state.evidence or level == TOLD:
        return state
    names = (each.rpartition("-")[0] for each in state.evidence)
    return replace(state, evidence=tuple(evidence_id(name, level) for name in names))


def _ids(*names: str) -> tuple[str, ...]:
    return tuple(evidence_id(name, TOLD) for name in names)


def _sure(event: Event) -> Outcome:
    return Outcome(event, np.ones(len(LEVELS)))


def _written(state: State, action: Action, chances: npt.NDArray[np.float64]) -> list[Outcome]:
    """A new version with 0, 1 or 2 figures missing; `chances` is (3 difficulties, 3)."""
    return [
        Outcome(Event(action, artifact=Artifact(state.version + 1, "", chars)), chances[:, missing])
        for missing, chars in enumerate(_CHARS)
    ]


def _verdict(state: State, named: int) -> CheckResult:
    """Of the self-review, which is the only item of the check."""
    passed = int(named == 0)
    problems = tuple(missing_problem(name) for name in FIGURES[:named])
    return CheckResult(float(passed), state.version, passed, 1, problems)
