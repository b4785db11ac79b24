"""The collected steps that a command reads from a buffer, and their states."""

from __future__ import annotations

from typing import Protocol

from buffers import ReplayBuffer, TrainingArrays
from buffers.where import Narrower
from experiments.config import SettingConfig
from harness_mdp.errors import ConfigError, SchemaMismatch, UnusableBuffer
from harness_mdp.mdp import State, fold, start
from harness_mdp.settings import open_setting
from harness_mdp.settings.protocol import Setting

__all__ = ["collected_arrays", "collected_setting", "logged_states"]


class Selection(Protocol):
    """What the configurations of reading commands have in common."""

    buffer: str
    from_executor: str | None
    mix_executors: bool


class _OfOneSetting(Protocol):
    buffer: str
    setting: SettingConfig | None


def collected_setting(buffer: ReplayBuffer, config: _OfOneSetting) -> Setting:
    """The setting that was asked for, else the only one that `buffer` holds collected episodes of.

    Raises:
        ConfigError: there are none or several, or the setting is unknown.
    """
    if config.setting is not None:
        return open_setting(config.setting.name)
    held = sorted({setting for setting, phase, _, _ in buffer.stats.counts if phase == "collect"})
    if len(held) == 1:
        return open_setting(held[0])
    found = f"collected episodes of {', '.join(held)}" if held else "no collected episodes"
    raise ConfigError(f"{config.buffer} holds {found}; " + ("say setting=NAME" if held else "collect first"))


def collected_arrays(buffer: ReplayBuffer, setting: Setting, config: Selection, split: str = "train") -> TrainingArrays:
    """The collected steps that were asked for, of this version of the setting.

    Raises:
        UnusableBuffer: no such episodes, or several executors that were not asked for.
        SchemaMismatch: they were made with other features.
    """
    narrow = Narrower(setting_version=setting.version)
    if config.from_executor is not None:
        narrow["executor"] = config.from_executor
    try:
        arrays = buffer.tensors(setting.name, split=split, mixed_executors=config.mix_executors, **narrow)
    except UnusableBuffer as problem:
        if "the mixture" not in str(problem):
            raise
        raise UnusableBuffer(f"{problem}: from_executor=..., or mix_executors=true") from problem
    if arrays.feature_schema_id != setting.schema.id:
        raise SchemaMismatch(
            f"{config.buffer}: episodes have feature schema {arrays.feature_schema_id}, this installation's "
            f"{setting.name} (version {setting.version}) has {setting.schema.id}. Collect again with this version"
        )
    return arrays


def logged_states(buffer: ReplayBuffer, arrays: TrainingArrays) -> tuple[State, ...]:
    """The state of each of the n steps, folded again from the stored events."""
    found: dict[str, list[State]] = {}
    for episode in buffer.episodes(episode_id=list(arrays.episode_ids)):
        found[episode.episode_id] = fold(episode.events, start(episode.horizon, episode.budgets))[:-1]
    return tuple(state for identity in arrays.episode_ids for state in found[identity])
