"""Runs the real commands in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without a key for a model, and with `extra`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "HYDRA_"))}
    return {**kept, **(extra or {})}


def start(module: str, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None):
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=cwd or ROOT,
        env=environment({"PYTHONPATH": str(ROOT), **(env or {})}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def command(
    module: str, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, expect: int = 0
) -> tuple[str, str]:
    """(stdout, stderr) of `python -m module arguments`; fails unless it exits with `expect`."""
    process = start(module, *arguments, env=env, cwd=cwd)
    out, err = process.communicate(timeout=300)
    assert process.returncode == expect, f"exit code {process.returncode}, expected {expect}\n{out}\n{err}"
    return out, err
