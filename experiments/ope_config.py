"""What off-policy evaluation can be told, and its proof. Apart from `experiments.config`, which says what runs can."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.config import MISSING, SettingConfig

__all__ = ["OpeConfig", "OpeProofConfig"]


@dataclass
class OpeConfig:
    """Estimate policies from a buffer, and say whether it supports that: `python -m harness_mdp.ope`."""

    buffer: str = MISSING
    """Folder of the Delta table; its episodes of phase collect are read, nothing is run or written there."""
    policies: list[str] = MISSING
    """Scripts, `random`, `behaviour` (the policy that collected) and folders of saved controllers;
    `policy=NAME` is short for `policies=[NAME]`."""
    setting: SettingConfig | None = None
    """Needed when the buffer holds several settings, or one of your own."""
    split: str = "train"
    """Episodes to estimate from: train, eval or all."""
    from_executor: str | None = None
    """Executor fingerprint; needed when the buffer holds more than one."""
    mix_executors: bool = False
    """Estimate from all executors in the buffer together."""
    level: float = 0.95
    """Of the intervals."""
    draws: int = 10_000
    """Resamples of tasks for intervals; models are fitted again in the first 1000."""
    seed: int = 0
    """Seed of resamples and folds."""
    require_support: bool = False
    """Exit with code 3 when a policy has insufficient support."""
    out: str | None = None
    """Results as Parquet or JSON, by its ending: one row a policy, estimates and actions nested."""


@dataclass
class OpeProofConfig:
    """Prove the estimators on the setting with known values: `python -m experiments.ope_proof`."""

    buffers: int = 2000
    """Independent buffers."""
    tasks: int = 40
    """Tasks of a buffer, their difficulty drawn anew in each."""
    rollouts: int = 20
    """Episodes of a task."""
    behaviour: str = "portfolio"
    """Policy that collects: portfolio, paper (base, ε = 0.25), random or a script."""
    targets: list[str] = field(default_factory=lambda: ["behaviour", "base", "half_check_revise", "check_revise"])
    """Policies to value: `behaviour`, scripts, `random`, and `half_NAME`: half of the behaviour, half of NAME."""
    step_cost: float = 0.02
    """Every step costs this much of the return, so that rewards before the last differ from none."""
    draws: int = 1000
    """Resamples of tasks for intervals."""
    refits: int = 200
    """Of them, those in which models are fitted again."""
    folds: int = 2
    """Of tasks, for fitted Q; `harness_mdp.ope` has 5, which uses more of the data and takes three times as long."""
    seed: int = 0
    """Of the buffers."""
    out: str | None = None
    """Markdown file in which the table between the two `ope_proof` comments is replaced."""
