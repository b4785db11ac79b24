"""Keys of `python -m experiments.convergence`."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ConvergenceConfig"]


@dataclass
class ConvergenceConfig:
    """Do the learners reach the exact values as data grow? `python -m experiments.convergence out=docs/tabular.md`."""

    sizes: list[int] = field(default_factory=lambda: [100, 400, 1600, 6400, 25_600])
    """Episodes of a buffer."""
    behaviours: list[str] = field(default_factory=lambda: ["scripts", "optimum"])
    """Who collects, one table each: half uniform over the legal actions, half `scripts` or the `optimum`."""
    methods: list[str] = field(default_factory=lambda: ["plan", "fitted_q", "one_step"])
    """Of these three."""
    seeds: int = 2
    """Independent buffers of each size."""
    rollouts: int = 20
    """Episodes of a task; difficulties in the shares of the setting."""
    presets_up_to: int = 6400
    """Buffers of up to so many episodes are also learned from with the presets, which do not grow; 0: none."""
    out: str | None = None
    """Markdown file in which what stands between the two `convergence_scripts` comments, and the two
    `convergence_optimum` comments, is replaced."""
