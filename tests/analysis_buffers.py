"""A small study for the analysis tests: collected, trained and evaluated once for all tests of a process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from experiments.config import PortfolioPolicyConfig, SettingConfig, SimulatedConfig, StudyConfig
from experiments.study import Study, run_study

_FOLDER = tempfile.TemporaryDirectory(prefix="harness-mdp-analysis-")


@cache
def study(setting: str = "research") -> Study:
    """8 tasks to learn from and 8 to evaluate on; two training seeds of behaviour cloning."""
    config = StudyConfig(
        setting=SettingConfig(name=setting, tasks=50, limit=8),
        executor=SimulatedConfig(profile="medium"),
        policy=PortfolioPolicyConfig(),
        root=str(Path(_FOLDER.name) / setting),
        rollouts=2,
        methods=["bc"],
        train_seeds=[0, 1],
        eval_rollouts=2,
        device="cpu",
    )
    return run_study(config, quiet=True)


def buffer(setting: str = "research") -> str:
    """Its buffer."""
    return str(study(setting).buffer)
