"""What explaining can be told. Apart from `experiments.config`, which says what runs can be told."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.config import MISSING, SettingConfig

__all__ = ["ExplainConfig"]


@dataclass
class ExplainConfig:
    """Show what a controller learned, as a tree and as its differences from base: `python -m harness_mdp.explain`."""

    buffer: str = MISSING
    """Folder of the Delta table; the states of its episodes of phase collect are looked at, nothing is run or
    written."""
    policies: list[str] = MISSING
    """Folders of saved controllers, scripts and `random`; `policy=NAME` is short for `policies=[NAME]`."""
    setting: SettingConfig | None = None
    """Needed when the buffer holds several settings, or one of your own."""
    split: str = "train"
    """Episodes whose states are looked at: train, eval or all."""
    from_executor: str | None = None
    """Executor fingerprint; needed when the buffer holds more than one."""
    mix_executors: bool = False
    """Look at the states of all executors in the buffer together."""
    leaves: int = 12
    """Of the tree, at most: more are more faithful and harder to read."""
    rows: int = 20
    """Differences from base that are printed, the most visited ones first."""
    seed: int = 0
    """Of the plan that is asked for advantages where a controller has no values of its own."""
