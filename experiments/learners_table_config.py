"""What can be configured about the table of learners."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness_mdp.settings import SETTINGS

__all__ = ["LearnersTableConfig"]


@dataclass
class LearnersTableConfig:
    """`python -m experiments.learners_table`: value and share of the attainable gain of every learner, simulated."""

    root: str = "runs/learners"
    """Where buffers and values are kept; a second run does only what is missing."""
    settings: list[str] = field(default_factory=lambda: sorted(SETTINGS))
    """One column each."""
    behaviours: list[str] = field(default_factory=lambda: ["portfolio", "paper"])
    """One table each: `portfolio` (the default one), `even` (a portfolio with less base), `paper` (base, ε = 0.25)."""
    seeds: int = 5
    """Collections, with seeds `first_seed` and following."""
    first_seed: int = 0
    on: str = "eval"
    """Tasks that policies are run on: `eval`, or `train`, where each of four folds is held out in turn; by this
    learners and their settings are chosen."""
    methods: list[str] = field(
        default_factory=lambda: [
            "bc",
            "aw",
            "aw_step",
            "aw_planned",
            "aw_linear",
            "a_learning",
            "linear_q",
            "plan",
            "one_step",
            "fitted_q",
            "cql",
            "bcq",
            "sac",
            "double_dqn",
            "nfq",
        ]
    )
    """Learners, each with changes to its preset if any: `"aw_linear prior=behaviour linear.relative=0"`."""
    guarded: list[str] = field(default_factory=lambda: ["aw_linear"])
    """Learners that are also run under the guard `advantage`."""
    growing: str | None = "aw_linear"
    """Learner of the two rounds of growing batch; null leaves them out."""
    rechecks: list[float] = field(default_factory=lambda: [0.0, 0.2])
    """Growing batches by the share of submissions that a check replaces in later rounds."""
    profile: str = "medium"
    """Skill of the simulated executor."""
    rollouts: int = 20
    """Episodes per training task."""
    eval_rollouts: int = 50
    """Episodes per evaluation task and collection: 20 tasks x 50 x 5 seeds are 5,000 paired episodes a figure."""
    out: str | None = None
    """Markdown file in which the tables between the two comments that bear the name `place` are replaced."""
    place: str = "learners_table"
    """Name of those comments."""
