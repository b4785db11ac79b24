"""The Harness Maturity Score: how an episode was worked on, whatever came of it. Never a reward.

HMS = Σ sign·weight·fired over applicable events / Σ|weight| of applicable events, in [-1, 1] (DESIGN section 9).
A pure function of what is stored, so that re-scoring a buffer needs no executor and no task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypedDict

from harness_mdp.mdp import Episode, Event
from harness_mdp.scoring.maturity_config import PRESETS, MaturityConfig, MaturityEvent
from harness_mdp.scoring.maturity_events import RULES, EpisodeFacts, trace

__all__ = [
    "PRESETS",
    "EpisodeFacts",
    "FactsOfSetting",
    "MaturityConfig",
    "MaturityEvent",
    "MaturityScore",
    "SettingFacts",
    "episode_facts",
    "maturity",
    "score_episode",
    "setting_facts",
]


class SettingFacts(Protocol):
    """The part of a setting that HMS reads; every `Setting` has it."""

    @property
    def tests_code(self) -> bool:
        """TestBeforeSubmit applies, EvidenceBeforeClaim does not, and claims need no evidence."""
        ...


class FactsOfSetting(TypedDict):
    """The fields of `EpisodeFacts` that the setting decides."""

    tests_code: bool
    has_check: bool
    requires_evidence: bool


@dataclass(frozen=True, slots=True)
class MaturityScore:
    """HMS of one episode and what it is made of."""

    hms: float | None
    """In [-1, 1]; None when no event with a weight was applicable: nothing was judged, which is not 0."""
    verdicts: tuple[tuple[MaturityEvent, bool, bool], ...]
    """(event, applicable, fired), all seven, in the order of the table; what is not applicable has not fired."""


def maturity(events: Sequence[Event], facts: EpisodeFacts, config: MaturityConfig) -> MaturityScore:
    """Judge one episode.

    Args:
        events: of all steps, in order.
        facts: of the episode and its setting.
        config: thresholds and weights.

    Raises:
        InputError: events that contradict the termination or the horizon.
        ConfigError: the config reads Q and `facts` has none.
    """
    run = trace(events, facts)
    verdicts: list[tuple[MaturityEvent, bool, bool]] = []
    earned = possible = 0.0
    for event, rule in RULES.items():
        fired = rule(run, facts, config)
        verdicts.append((event, fired is not None, bool(fired)))
        if fired is not None:
            possible += config.weight(event)
            earned += event.sign * config.weight(event) * fired
    return MaturityScore(earned / possible if possible > 0 else None, tuple(verdicts))


def setting_facts(setting: SettingFacts) -> FactsOfSetting:
    """Every setting has a check; where code is tested, claims need no evidence."""
    return {"tests_code": setting.tests_code, "has_check": True, "requires_evidence": not setting.tests_code}


def episode_facts(episode: Episode, setting: SettingFacts) -> EpisodeFacts:
    """The facts of a finished episode."""
    return EpisodeFacts(
        horizon=episode.horizon,
        termination=episode.termination,
        quality=episode.return_,
        criteria=tuple(score for _, score, _ in episode.rubric),
        **setting_facts(setting),
    )


def score_episode(
    episode: Episode, setting: SettingFacts, configs: Iterable[MaturityConfig] = (PRESETS["paper"],)
) -> Episode:
    """The same episode with HMS and verdicts of `configs`; scores under other presets stay as they are.

    A preset whose HMS is None has verdicts and no entry in `maturity`.
    """
    scores = {config.preset: maturity(episode.events, episode_facts(episode, setting), config) for config in configs}
    kept = {preset: hms for preset, hms in episode.maturity.items() if preset not in scores}
    kept_events = tuple(row for row in episode.maturity_events if row[0] not in scores)
    return replace(
        episode,
        maturity=kept | {preset: score.hms for preset, score in scores.items() if score.hms is not None},
        maturity_events=kept_events
        + tuple(
            (preset, event.value, applicable, fired)
            for preset, score in scores.items()
            for event, applicable, fired in score.verdicts
        ),
    )
