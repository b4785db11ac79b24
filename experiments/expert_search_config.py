"""What the search for an expert's plan can be told."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.config import MISSING, SettingConfig

__all__ = ["ExpertSearchConfig"]


@dataclass
class ExpertSearchConfig:
    """Search the plan of a setting's hand-written expert on training tasks: `python -m experiments.expert_search`."""

    setting: SettingConfig = MISSING
    profile: str = "medium"
    """Skill of the simulated executor."""
    rollouts: int = 4
    """Episodes of each training task and plan."""
    seed: int = 0
    """Of the executor's draws."""
    margin: float = 0.002
    """A plan has to be so much better to replace one that does without."""
    written_only: bool = False
    """Only value the plan that is written down, base and check_revise, and search nothing."""
