"""What can be configured about off-policy estimates held against the truth."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness_mdp.settings import SETTINGS

__all__ = ["OpeTruthConfig"]


@dataclass
class OpeTruthConfig:
    """`python -m experiments.ope_truth`: what a buffer says of policies, and what they come to when run; simulated."""

    root: str = "runs/ope_truth"
    settings: list[str] = field(default_factory=lambda: sorted(SETTINGS))
    policies: list[str] = field(
        default_factory=lambda: [
            "random",
            "base",
            "tool_first",
            "more_evidence",
            "check_revise",
            "expert",
            "bc",
            "aw_linear",
            "plan",
        ]
    )
    """`random`, scripts, `expert`, and methods of learning."""
    profile: str = "medium"
    tasks: int = 100
    """Tasks to generate, of which four in five are training tasks: those are collected on, estimated and run."""
    rollouts: int = 20
    """Collected episodes a training task, by the portfolio."""
    truth_rollouts: int = 25
    """Fresh episodes a training task and policy: 80 tasks x 25 are 2,000."""
    seed: int = 0
    """Of collection, training and resamples."""
    truth_seed: int = 1_000
    """Of the fresh episodes; another than `seed`, or they would share draws with what was collected."""
    folds: int = 5
    """Fold controllers of a learner."""
    draws: int = 10_000
    """Resamples of tasks."""
    out: str | None = None
    """Markdown file in which the tables between the two `ope_truth` comments are replaced."""
