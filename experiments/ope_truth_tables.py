"""Estimates beside the truth as Markdown: a table for each setting, and what they come to together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from analysis.ope import SupportVerdict
from experiments.markdown import table

__all__ = ["Estimated", "TruthCell", "rank_correlation", "truth_tables"]


@dataclass(frozen=True, slots=True)
class Estimated:
    """One estimate of one policy's value."""

    estimator: str
    value: float | None
    """None where the log gives no number at all."""
    low: float | None
    high: float | None
    shown: bool
    """Not withheld for want of support."""

    def covers(self, truth: float) -> bool:
        """Whether the truth lies in the interval."""
        return self.low is not None and self.high is not None and self.low <= truth <= self.high


@dataclass(frozen=True, slots=True)
class TruthCell:
    """What the buffer says of one policy, and what it comes to when run on the same tasks."""

    policy: str
    verdict: SupportVerdict
    by_weights: SupportVerdict
    ess: float
    """Episodes."""
    best: str | None
    """Estimator to quote; None on insufficient support."""
    estimates: tuple[Estimated, ...]
    truth: float
    truth_se: float
    """For these very tasks: rollouts vary, tasks do not."""
    truth_episodes: int
    buffer_mean: float
    """Mean return of what was collected."""

    def estimate(self, name: str) -> Estimated | None:
        """The estimate by `name`, also where it is withheld."""
        return next((each for each in self.estimates if each.estimator == name), None)

    @property
    def quoted(self) -> Estimated | None:
        """The best estimate, if one is shown."""
        return None if self.best is None else self.estimate(self.best)


def truth_tables(settings: Mapping[str, Sequence[TruthCell]]) -> str:
    """Markdown of all settings, each with at least one policy."""
    parts = ["Simulated throughout.", ""]
    for name, cells in settings.items():
        said = f"buffer mean {cells[0].buffer_mean:.3f}, truth from {cells[0].truth_episodes:,} fresh episodes a policy"
        parts += [f"### `{name}`, simulated: {said}", "", _setting_table(cells), ""]
    parts += ["### Summary, simulated", "", _summary(settings), ""]
    parts += ["### By estimator, all settings, simulated", "", _by_estimator(settings), ""]
    return "\n".join(parts)


def rank_correlation(pairs: Iterable[tuple[float | None, float]]) -> float | None:
    """Spearman's rank correlation of (estimate, truth); None below three pairs, or where one side does not vary."""
    known = np.array([(value, truth) for value, truth in pairs if value is not None], dtype=np.float64).reshape(-1, 2)
    if len(known) < 3 or (np.ptp(known, axis=0) == 0).any():
        return None
    ranks = rankdata(known, axis=0)  # ties share the mean of their ranks
    return float(np.corrcoef(ranks[:, 0], ranks[:, 1])[0, 1])


def _setting_table(cells: Sequence[TruthCell]) -> str:
    rows: list[list[str]] = []
    for cell in sorted(cells, key=lambda cell: cell.truth):
        by = "weights" if cell.verdict is cell.by_weights else "cells"
        refused = cell.verdict is SupportVerdict.INSUFFICIENT
        quoted, model = cell.quoted, cell.estimate("model")
        rows.append(
            [
                f"`{cell.policy}`",
                "insufficient" if refused else f"{cell.verdict.value} ({by})",
                f"{cell.ess:.0f}",
                "refused" if quoted is None else f"`{quoted.estimator}` {_number(quoted)}",
                f"{cell.truth:.3f} ({cell.truth_se:.3f})",
                "-" if quoted is None else ("yes" if quoted.covers(cell.truth) else "no"),
                "-" if model is None else _number(model),
            ]
        )
    header = ["policy", "verdict", "ESS", "best estimate [95%]", "truth (SE)", "covered", "`model`, shown or not"]
    return table(header, rows)


def _number(estimate: Estimated) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _summary(settings: Mapping[str, Sequence[TruthCell]]) -> str:
    rows: list[list[str]] = []
    best_ranks: list[float] = []
    model_ranks: list[float] = []
    for name, cells in settings.items():
        best = rank_correlation((cell.quoted.value, cell.truth) for cell in cells if cell.quoted is not None)
        model = rank_correlation(
            (one.value, cell.truth) for cell in cells if (one := cell.estimate("model")) is not None
        )
        best_ranks += [] if best is None else [best]
        model_ranks += [] if model is None else [model]
        rows.append([f"`{name}`", *_counts(cells), _rank(best), _rank(model)])
    every = [cell for cells in settings.values() for cell in cells]
    means = [
        f"{_rank(float(np.mean(ranks)))} (mean of {len(ranks)})" if ranks else "-"
        for ranks in (best_ranks, model_ranks)
    ]
    rows.append(["all", *_counts(every), *means])
    header = [
        "setting",
        "policies",
        "supported, weak, insufficient",
        "refused",
        "intervals shown that cover",
        "rank correlation, shown",
        "rank correlation, `model` of all",
    ]
    return table(header, rows)


def _counts(cells: Sequence[TruthCell]) -> list[str]:
    verdicts = [sum(cell.verdict is verdict for cell in cells) for verdict in SupportVerdict]
    shown = [cell.quoted.covers(cell.truth) for cell in cells if cell.quoted is not None]
    refused = (len(cells) - len(shown)) / len(cells)
    return [str(len(cells)), ", ".join(map(str, verdicts)), f"{refused:.0%}", _share(shown)]


def _by_estimator(settings: Mapping[str, Sequence[TruthCell]]) -> str:
    pairs = [
        (estimate, cell.truth)
        for cells in settings.values()
        for cell in cells
        for estimate in cell.estimates
        if estimate.value is not None
    ]
    rows: list[list[str]] = []
    for name in dict.fromkeys(estimate.estimator for estimate, _ in pairs):
        row = [f"`{name}`"]
        for shown in (True, False):
            own = [(one, truth) for one, truth in pairs if one.estimator == name and one.shown is shown]
            errors = np.array([(one.value or 0.0) - truth for one, truth in own])
            row += [_share([one.covers(truth) for one, truth in own]), f"{errors.mean():+.3f}" if own else "-"]
            row.append(f"{np.sqrt((errors**2).mean()):.3f}" if own else "-")
        rows.append(row)
    header = ["estimator"]
    for words in ("shown", "withheld"):
        header += [f"{words}: interval covers", "mean error", "root mean square"]
    return table(header, rows)


def _share(covers: Sequence[bool]) -> str:
    return f"{sum(covers)} of {len(covers)}" if covers else "-"


def _rank(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"
