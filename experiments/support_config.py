"""What the support command can be told. Apart from `experiments.config`, which says what runs can."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.config import MISSING, SettingConfig

__all__ = ["SupportConfig"]


@dataclass
class SupportConfig:
    """Which sensible state-action pairs lack data, and what would bring it: `python -m harness_mdp.support`."""

    buffer: str = MISSING
    """Folder of the Delta table; its episodes of phase collect are read, nothing is run or written there."""
    policies: list[str] = field(default_factory=list[str])
    """Saved controllers (folders) whose actions count as sensible and may join a mixture, beside all scripts of the
    setting; `policy=DIR` is short for `policies=[DIR]`."""
    setting: SettingConfig | None = None
    """Needed when the buffer holds several settings, or one of your own."""
    split: str = "train"
    """Episodes to look at: train, eval or all."""
    from_executor: str | None = None
    """Executor fingerprint; needed when the buffer holds more than one."""
    mix_executors: bool = False
    """Take all executors in the buffer together."""
    visits: int = 20
    """A pair with fewer logged steps lacks data ..."""
    tasks: int = 5
    """... and so does one from fewer tasks."""
    proposed: float = 0.05
    """A policy proposes what it does in at least this share of a cluster's states."""
    cheap: float = 0.25
    """Tokens of a cheap action as a share of those of a draft: legal and cheap is sensible too; 0 leaves those out."""
    rollouts: int = 20
    """The most episodes a task that the suggestion may collect."""
    rows: int = 20
    """Pairs that are printed."""
    out: str | None = None
    """All pairs as Parquet or JSON, by its ending: one row a pair, mixtures nested."""
