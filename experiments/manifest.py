"""Which run an episode belongs to, and the record of how it was made."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from buffers import ReplayBuffer
from experiments.config import CollectConfig, EvaluateConfig
from harness_mdp.hashing import Json, digest

__all__ = ["provenance", "record_run", "run_name"]

_PACKAGES = ("harness-mdp", "torch", "numpy", "polars", "deltalake", "scikit-learn", "d3rlpy", "openai", "hydra-core")
_NOT_THE_WORK = ("buffer", "out", "concurrency", "dry_run", "limits")
"""Keys that do not change which episodes there are."""


def run_name(phase: str, config: CollectConfig | EvaluateConfig) -> str:
    """`collect-…`: phase and 8 hex digits over the part of the configuration that decides which episodes run.

    The path of benchmark files counts by its last part, so that the same work elsewhere has the same name.
    """
    values = {key: value for key, value in asdict(config).items() if key not in _NOT_THE_WORK}
    path = values["setting"]["path"]
    values["setting"] = {**values["setting"], "path": Path(path).name if path else None}
    values["executor"] = {key: value for key, value in values["executor"].items() if key != "base_url"}
    return f"{phase}-{digest(values, 8)}"


def record_run(buffer: ReplayBuffer, run: str, config: CollectConfig | EvaluateConfig) -> None:
    """Write the run's manifest beside the episodes: configuration as resolved and as passed, versions, commit."""
    buffer.write_manifest(run, {"run": run, "config": asdict(config), "passed": sys.argv[1:], **provenance()})


def provenance() -> dict[str, Json]:
    """Versions of Python and packages, platform, and the git commit of the checkout if there is one."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "git_commit": _commit(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
