"""Maturity scored again from what is stored: the configuration of a score, and what came of it, group by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import polars as pl

from buffers import ReplayBuffer
from experiments.config import ScoreConfig
from experiments.maturity_keys import MaturityPresetConfig
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json
from harness_mdp.scoring.maturity_config import PRESETS, MaturityConfig, MaturityEvent
from harness_mdp.settings import open_setting

__all__ = ["EventRate", "GroupScore", "Scoring", "maturity_config", "score", "stored_preset"]

_KEYS = {
    "check_of_submitted_version": "check_of_submitted_version",
    "failed_check_gap": "check_before_submit.min_gap",
    "claims_supported": "evidence_before_claim.supported_share",
    "failed_test_gap": "test_before_submit.min_gap",
    "revision_window": "revision_after_failure.window",
    "valid_tool_share": "valid_tool_use.valid_share",
    "sufficient_score": "stop_when_sufficient.score",
    "sufficient_age": "stop_when_sufficient.max_age",
    "early_reads_quality": "early_submit.reads_quality",
    "early_quality": "early_submit.quality",
    "early_share": "early_submit.step_share",
    "missed_criterion": "early_submit.criterion",
    "missed_share": "early_submit.missed_share",
    "early_pass_rate": "early_submit.pass_rate",
}
"""Field of `MaturityConfig` -> key of the group `maturity`."""

_WEIGHTS = {event: f"weights.{event.name.lower()}" for event in MaturityEvent}

_SEALED = ("early_quality", "early_share", "missed_criterion", "missed_share")
"""Only the two clauses of EarlySubmit on sealed values ask these."""


def maturity_config(keys: MaturityPresetConfig) -> MaturityConfig:
    """Thresholds and weights for the scorer.

    Raises:
        ConfigError: a value out of range, by its key; or label `strict` on scores that read sealed values.
    """
    fields: dict[str, Json] = {name: attrgetter(key)(keys) for name, key in _KEYS.items()}
    weights: dict[str, float] = {event.value: attrgetter(key)(keys) for event, key in _WEIGHTS.items()}
    for name, value in fields.items():  # one by one, so that the message can name the key
        _require(_KEYS[name], value, {name: value})
    for event, key in _WEIGHTS.items():
        _require(key, weights[event.value], {"weights": {event.value: weights[event.value]}})
    config = MaturityConfig(preset=keys.preset, weights=weights, **fields)
    if config.preset == "strict" and config.early_reads_quality:
        raise ConfigError(
            "maturity.early_submit.reads_quality=true under the label strict, which promises that nothing sealed is "
            "read; give the scores another label with maturity.preset=NAME"
        )
    return config


def _require(key: str, value: Json, field: dict[str, Json]) -> None:
    try:
        MaturityConfig(**field)
    except ConfigError as error:
        raise ConfigError(f"maturity.{key}={value}: {error}") from error


def stored_preset(keys: MaturityPresetConfig) -> str:
    """The preset of that configuration, whose scores every episode is stored with.

    Raises:
        ConfigError: it is none of the presets as they are.
    """
    config = maturity_config(keys)
    if config.preset not in PRESETS or config.hash != PRESETS[config.preset].hash:
        raise ConfigError(
            f"maturity {config.preset!r} with {', '.join(_changed(config)) or 'another label'}: only the presets "
            f"{', '.join(PRESETS)} are stored with an episode. Score again with `python -m harness_mdp.score`"
        )
    return config.preset


@dataclass(frozen=True, slots=True)
class EventRate:
    """How often an event fired in a group."""

    applicable: int
    """Episodes."""
    rate: float | None
    """Among them; None without any."""
    stored: float | None
    """The same of the verdicts that are stored with the episodes; None without any."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """One setting, policy and phase."""

    setting: str
    policy: str
    phase: str
    n: int
    """Episodes."""
    hms: float | None
    """Mean over the episodes that have one."""
    stored_hms: float | None
    """The same of the scores that are stored with the episodes."""
    differ: int | None
    """Episodes whose HMS is another than the stored one; None when none is stored."""
    events: tuple[EventRate, ...]
    """In the order of `MaturityEvent`."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """What `score` did and found."""

    config: MaturityConfig
    added: int
    """Episodes that had no score of this config before."""
    episodes: int
    stored_preset: str
    """The preset that is shown beside."""
    changed: Mapping[str, Json]
    """Key -> value where the config is not as that preset has it."""
    idle: Mapping[str, str]
    """Changed key -> why it has no effect."""
    groups: tuple[GroupScore, ...]
    written: Path


def score(config: ScoreConfig) -> Scoring:
    """Score every episode of a buffer under `config.maturity`, beside what is there; no executor is asked.

    Raises:
        ConfigError: a value out of range, or an unknown setting in the buffer.
        InputError: there is no buffer, or an episode contradicts itself.
        UnusableBuffer: no episodes, or a damaged file.
    """
    wanted = maturity_config(config.maturity)
    for name in config.settings:
        open_setting(name)
    buffer = ReplayBuffer(config.buffer)
    added = buffer.rescore(wanted)
    beside = wanted.preset if wanted.preset in PRESETS else _nearest(wanted)
    frame = _with_stored(buffer.rescores_df(config_hash=wanted.hash), beside)
    changed = _changed(wanted)
    unread = "maturity.early_submit.reads_quality is false, and only the clauses on sealed values ask it"
    idle = {} if wanted.early_reads_quality else {_KEYS[n]: unread for n in _SEALED if _KEYS[n] in changed}
    keys = ["setting", "policy", "phase"]
    groups = tuple(_group(rows) for rows in frame.partition_by(keys, maintain_order=True))
    return Scoring(wanted, added, frame.height, beside, changed, idle, groups, buffer.harness.rescores.path)


def _nearest(config: MaturityConfig) -> str:
    """The preset with which a config of another label shares what it reads."""
    return "paper" if config.early_reads_quality else "strict"


def _changed(config: MaturityConfig) -> dict[str, Json]:
    preset = PRESETS[config.preset if config.preset in PRESETS else _nearest(config)]
    fields = {key: getattr(config, n) for n, key in _KEYS.items() if getattr(config, n) != getattr(preset, n)}
    return fields | {
        key: config.weight(event) for event, key in _WEIGHTS.items() if config.weight(event) != preset.weight(event)
    }


def _with_stored(frame: pl.DataFrame, preset: str) -> pl.DataFrame:
    """Adds `stored_hms` and `stored_<event>`; null where the episode has no such score or it was not applicable."""
    verdict = pl.element().struct
    stored = [
        pl.col("maturity_events")
        .list.eval(
            verdict.field("fired").filter(
                (verdict.field("preset") == preset)
                & (verdict.field("event") == event.value)
                & verdict.field("applicable")
            )
        )
        .list.first()
        .alias(f"stored_{event.value}")
        for event in MaturityEvent
    ]
    column = f"maturity_{preset}"
    hms = pl.col(column) if column in frame.columns else pl.lit(None, pl.Float64)
    return frame.sort("setting", "phase", "policy").with_columns(*stored, stored_hms=hms)


def _group(rows: pl.DataFrame) -> GroupScore:
    setting, policy, phase = rows.select("setting", "policy", "phase").row(0)
    stored = rows["stored_hms"].is_not_null().any()
    return GroupScore(
        setting=setting,
        policy=policy,
        phase=phase,
        n=rows.height,
        hms=_mean(rows["hms"]),
        stored_hms=_mean(rows["stored_hms"]),
        differ=int(rows.select(pl.col("hms").ne_missing(pl.col("stored_hms")).sum()).item()) if stored else None,
        events=tuple(
            EventRate(
                applicable=rows[event.value].count(),
                rate=_mean(rows[event.value]),
                stored=_mean(rows[f"stored_{event.value}"]),
            )
            for event in MaturityEvent
        ),
    )


def _mean(values: pl.Series) -> float | None:
    """Mean of what is not null, a truth as 1; None of nothing."""
    known = values.drop_nulls().cast(pl.Float64)
    return None if known.is_empty() else float(known.to_numpy().mean())
