"""Export: the configured selection of a buffer, written for other programs."""

from __future__ import annotations

from buffers import ReplayBuffer, Where
from buffers.export import FORMATS, Exported
from buffers.export import export as write
from experiments.config import SettingConfig
from experiments.export_config import ExportConfig
from harness_mdp.errors import ConfigError
from harness_mdp.settings import open_setting

__all__ = ["export"]

_CHOICES = {"format": FORMATS, "phase": ("collect", "eval", "import"), "split": ("train", "eval")}


def export(config: ExportConfig) -> Exported:
    """Write the configured episodes to `config.out`.

    Raises:
        HarnessError: with what is wrong and what to do; nothing is left at `config.out`.
    """
    for name, choices in _CHOICES.items():
        value: str | None = getattr(config, name)
        if value is not None and value not in choices:
            raise ConfigError(f"{name}={value}; expected one of {', '.join(choices)}")
    for name in config.settings:
        open_setting(name)
    newest = ReplayBuffer(config.buffer)
    # Pinned, so that a collection that goes on meanwhile cannot make the card and the episodes differ.
    buffer = ReplayBuffer(config.buffer, version=newest.version)
    return write(buffer, config.format, config.out, **_selection(config))


def _selection(config: ExportConfig) -> Where:
    where = Where()
    if config.setting is not None:
        where["setting"] = _stored_name(config.setting)
    if config.phase is not None:
        where["phase"] = config.phase
    if config.split is not None:
        where["split"] = config.split
    return where


def _stored_name(setting: SettingConfig) -> str:
    """The name in the rows, which for `MODULE:CLASS` is the setting's own."""
    return open_setting(setting.name).name if ":" in setting.name else setting.name
