"""Report: a buffer, or all buffers beneath a folder, as one page that needs no network."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

from analysis.report import MadeBy, Page, build_page
from buffers.side import installed_versions
from experiments.manifest import git_commit, without_credentials
from experiments.report_config import ReportConfig
from harness_mdp.errors import ConfigError
from harness_mdp.scoring.maturity_config import PRESETS

__all__ = ["report"]

_MEGABYTE = 1_000_000


def report(config: ReportConfig) -> Page:
    """Make the page and write it to `config.out`, whole or not at all.

    Raises:
        ConfigError: a key that cannot be.
        HarnessError: the buffer cannot be reported, with what is wrong and what to do.
    """
    out = _expect_page(config)
    made_by = MadeBy(
        passed=without_credentials(sys.argv[1:]),
        resolved=without_credentials(asdict(config)),
        versions=installed_versions(),
        git_commit=git_commit(),
    )
    page = build_page(
        config.buffer,
        made_by=made_by,
        rule=config.rule,
        preset=config.preset,
        runs=config.runs,
        details_bytes=int(config.details_mb * _MEGABYTE),
    )
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        draft.write_text(page.html, encoding="utf-8", errors="backslashreplace")
        draft.replace(out)
    except OSError as problem:
        draft.unlink(missing_ok=True)
        raise ConfigError(f"out={out}: the page cannot be written ({problem.strerror or problem})") from problem
    return page


def _expect_page(config: ReportConfig) -> Path:
    """Where the page goes, found fit before any work is done."""
    if config.preset not in PRESETS:
        raise ConfigError(f"preset={config.preset}; expected {' or '.join(PRESETS)}")
    if not 0 <= config.details_mb <= 1000:
        raise ConfigError(f"details_mb={config.details_mb}; expected 0 to 1000")
    out = Path(config.out)
    if out.suffix not in (".html", ".htm"):
        raise ConfigError(f"out={out}; expected a file that ends in .html")
    if out.is_dir():
        raise ConfigError(f"out={out} is a folder; expected a file")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigError(f"out={out}: its folder cannot be made ({problem})") from problem
    if not os.access(out.parent, os.W_OK):
        raise ConfigError(f"out={out}: no permission to write into {out.parent}")
    return out
