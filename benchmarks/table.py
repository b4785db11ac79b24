"""A measured line, ours beside a peer in the same run, and the machine that it was measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

__all__ = ["REPEATS", "Line", "Report", "machine", "markdown", "text"]

REPEATS = 5
"""Runs of each side, in turn; the median counts. A run before them warms up and does not count."""

LIBRARIES = ("openai", "d3rlpy", "torch", "deltalake", "polars", "numpy")


@dataclass(frozen=True)
class Line:
    """One quantity of ours and of the peer, in the same unit."""

    name: str
    unit: str
    ours: float
    peer: float
    goal: float | None
    """The ratio that was aimed at; None for a line that is told beside the others."""
    more_is_better: bool = False
    """True for a rate, False for a time or a size."""

    @property
    def ratio(self) -> float:
        """How many times faster or smaller than the peer; above 1 is better than the peer."""
        return self.ours / self.peer if self.more_is_better else self.peer / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        return None if self.goal is None else self.ratio >= self.goal

    @property
    def cells(self) -> tuple[str, ...]:
        """name, unit, ours, peer, ratio, goal, met"""
        goal = "" if self.goal is None else f"{self.goal:g}x"
        met = {None: "", True: "yes", False: "NO"}[self.met]
        return (self.name, self.unit, _number(self.ours), _number(self.peer), f"{self.ratio:.2f}x", goal, met)


@dataclass(frozen=True)
class Report:
    """The lines of one benchmark."""

    title: str
    peer: str
    """What stands beside ours."""
    setup: str
    """Sizes and versions, one sentence."""
    lines: tuple[Line, ...]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


_HEADER = ("", "unit", "ours", "peer", "ratio", "goal", "met")


def text(report: Report) -> str:
    """The report as lines of a terminal."""
    rows = [_HEADER, *(line.cells for line in report.lines)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEADER))]
    aligned = (
        [cell.ljust(w) if k < 2 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    )
    table = "\n".join("  ".join(row).rstrip() for row in aligned)
    return f"{report.title}, beside {report.peer}\n{report.setup}\n{table}\n"


def markdown(reports: Sequence[Report]) -> str:
    """All reports as one Markdown table, with a sentence for each on how it was set up."""
    rows = ["| line | unit | ours | peer | ratio | goal | met |", "|---|---|--:|--:|--:|--:|---|"]
    for report in reports:
        rows.append(f"| **{report.title}**, beside {report.peer} | | | | | | |")
        rows.extend("| " + " | ".join(line.cells) + " |" for line in report.lines)
    setups = [f"- {report.title}: {report.setup}" for report in reports]
    return "\n".join([*rows, "", *setups])


def machine() -> str:
    """CPU model, cores, memory, Python and library versions: what a figure depends on and no more."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{_cpu_model()}, {cores} cores, {_memory_gib():.0f} GiB memory; "
        f"{platform.system()}, Python {platform.python_version()}; {versions}"
    )


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
