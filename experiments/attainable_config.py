"""What can be configured about the attainable gain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from experiments.config import SettingConfig

__all__ = ["AttainableConfig"]

MISSING: Any = "???"


@dataclass
class AttainableConfig:
    """`python -m experiments.attainable setting=NAME`: the best reachable value, and every share; simulated."""

    setting: SettingConfig = MISSING
    """One of the eight settings, its tasks generated as they are by default."""
    root: str = "runs/attainable"
    """Where buffers and values are kept; a second run does only what is missing."""
    profile: str = "medium"
    """Skill of the simulated executor."""
    seed: int = 0
    """Of the first collection and of training."""
    growing: str = "aw_linear"
    """Learner of the long growing batch."""
    rounds: int = 6
    """Rounds of it."""
    recheck: float = 0.2
    """Share of submissions that a check replaces in all rounds but the first."""
    rollouts: int = 20
    """Episodes per training task and round; the learners of the table have the first round's."""
    methods: list[str] = field(
        default_factory=lambda: ["bc", "aw", "aw_step", "aw_planned", "aw_linear", "a_learning", "linear_q", "plan"]
    )
    eval_rollouts: int = 250
    """Episodes per evaluation task: with 20 tasks 5,000 a figure, paired with base."""
    out: str | None = None
    """Markdown file in which the table between the two `attainable` comments is replaced."""
