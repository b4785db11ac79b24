"""What can be configured of a report."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.config import MISSING

__all__ = ["ReportConfig"]


@dataclass
class ReportConfig:
    """A buffer as one self-contained page: `python -m harness_mdp.report`."""

    buffer: str = MISSING
    """Folder of the Delta table, or a folder with several of them beneath."""
    out: str = "report.html"
    """The page; replaced if it is there."""
    rule: str = "check_revise"
    """The arm that a learned controller has to beat."""
    preset: str = "paper"
    """Preset of the Harness Maturity Score in the tables: `paper` or `strict`."""
    runs: list[str] = field(default_factory=list[str])
    """Only the evaluations of these runs; empty means all."""
    details_mb: float = 8.0
    """At most so many megabytes of steps and artifacts; episodes beyond are listed but cannot be opened."""
