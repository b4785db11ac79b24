"""Keys of `python -m experiments.statistics_proof`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["StatisticsProofConfig"]


@dataclass
class StatisticsProofConfig:
    """Check by simulation what the statistics promise: `python -m experiments.statistics_proof`."""

    repeats: int = 5000
    """Data sets for each coverage."""
    draws: int = 10_000
    """Resamples of tasks for each interval."""
    null_repeats: int = 5000
    """Data sets without a difference."""
    flips: int = 2000
    """Sign flips where they are not enumerated."""
    families: int = 2000
    """Random families of p-values."""
    seed: int = 0
    out: str | None = None
    """Markdown file in which the tables between the two `statistics_proof` comments are replaced."""
