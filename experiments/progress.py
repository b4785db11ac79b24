"""What a person sees while episodes run: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness_mdp.mdp import Episode, EvalStatus

__all__ = ["EpisodeProgress", "Tally"]

PLAIN_EVERY_S = 5.0
WIDE = 170
"""Columns of a terminal that has room for a bar beside the figures."""


@dataclass
class Tally:
    """Running totals over the episodes of one command."""

    episodes: int = 0
    returns: float = 0.0
    invalid: int = 0
    missing: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0

    def add(self, episode: Episode) -> None:
        """Book a finished episode."""
        self.episodes += 1
        self.returns += episode.return_
        self.invalid += episode.eval_status is EvalStatus.INVALID
        self.tokens += episode.tokens
        unknown = self.cost_usd is None or episode.cost_usd is None
        self.cost_usd = None if unknown else (self.cost_usd or 0.0) + (episode.cost_usd or 0.0)

    def line(self, seconds: float) -> str:
        """Episodes/s, mean return, tokens, cost, invalid and infra_missing, in one line of at most 80 columns."""
        mean = f"{self.returns / self.episodes:.3f}" if self.episodes else "-"
        cost = "cost unknown" if self.cost_usd is None else f"${self.cost_usd:.2f}"
        rate = self.episodes / seconds if seconds > 0 else 0.0
        return (
            f"{rate:.1f}/s  return {mean}  {self.tokens:,} tokens  {cost}  "
            f"{self.invalid} invalid  {self.missing} missing"
        )


class EpisodeProgress:
    """Context manager that reports a tally on stderr. Nothing here is a decision, so it may read the clock."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self.tally = Tally()
        self.total = 0
        self._label = label
        self._quiet = quiet
        self._began = self._last = time.monotonic()
        console = Console(stderr=True)
        self._bar: Progress | None = None
        if console.is_terminal and not quiet:
            wide = [BarColumn(), TimeRemainingColumn()] if console.width >= WIDE else []
            self._bar = Progress(
                TextColumn("{task.description}"),
                *wide[:1],
                MofNCompleteColumn(),
                *wide[1:],
                TextColumn("{task.fields[line]}"),
                console=console,
            )
            self._task = self._bar.add_task(label, total=None, line="")

    def __enter__(self) -> EpisodeProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self.tally.episodes and not self._quiet:
            self._plain()

    def episode(self, episode: Episode) -> None:
        """A finished episode."""
        self.tally.add(episode)
        self._show()

    def failure(self) -> None:
        """An attempt that failed for reasons outside the agent."""
        self.tally.missing += 1
        self._show()

    def _show(self) -> None:
        done = self.tally.episodes + self.tally.missing
        if self._bar is not None:
            line = self.tally.line(time.monotonic() - self._began)
            self._bar.update(self._task, total=self.total, completed=done, line=line)
        elif not self._quiet and time.monotonic() - self._last >= PLAIN_EVERY_S:
            self._plain()

    def _plain(self) -> None:
        self._last = time.monotonic()
        done = self.tally.episodes + self.tally.missing
        line = self.tally.line(self._last - self._began)
        sys.stderr.write(f"{self._label}: {done}/{self.total}  {line}\n")
        sys.stderr.flush()
