"""Which run an episode belongs to, and the record of how it was made."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from buffers import ReplayBuffer
from experiments.config import CollectConfig, EvaluateConfig
from harness_mdp.hashing import Json, digest

__all__ = ["git_commit", "record_run", "run_name", "without_credentials"]

_NOT_THE_WORK = ("buffer", "out", "concurrency", "dry_run", "limits", "maturity", "events")
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


def record_run(
    buffer: ReplayBuffer, run: str, config: CollectConfig | EvaluateConfig, plan: Mapping[str, Json] | None = None
) -> None:
    """Write the run's manifest beside the episodes: configuration as passed and as resolved, versions, commit.

    `plan` says which episodes an evaluation is made of, since an episode keeps the run that first made it.
    """
    resolved = {"config": asdict(config), "git_commit": git_commit()} | ({"plan": plan} if plan else {})
    buffer.harness.write_run(run, passed=without_credentials(sys.argv[1:]), resolved=without_credentials(resolved))


def without_credentials(value: Json) -> Json:
    """`value` with `user:password@` cut out of every URL in it."""
    match value:
        case str():
            return re.sub(r"(?<=://)[^/@\s]+@", "", value)
        case list():
            return [without_credentials(item) for item in value]
        case dict():
            return {key: without_credentials(item) for key, item in value.items()}
        case _:
            return value


def git_commit() -> str | None:
    """Commit of the checkout that this code runs from; None outside of one."""
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
