"""What an export can be told. Apart from `experiments.config`, which says what experiments can."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.config import MISSING, SettingConfig

__all__ = ["ExportConfig"]


@dataclass
class ExportConfig:
    """Write episodes for other programs, beside their dataset card: `python -m harness_mdp.export`."""

    buffer: str = MISSING
    """Folder of the Delta table."""
    format: str = MISSING
    """`parquet` (flat tables), `minari` (a dataset for learners) or `atif` (one trajectory document an episode)."""
    out: str = MISSING
    """Folder to make; nothing that exists is overwritten."""
    setting: SettingConfig | None = None
    """Only episodes of this setting; null is all of them."""
    phase: str | None = None
    """Only this phase: collect, eval or import."""
    split: str | None = None
    """Only this split: train or eval."""
    settings: list[str] = field(default_factory=list[str])
    """MODULE:CLASS of settings in the buffer that are neither ours nor registered (minari folds with them)."""
