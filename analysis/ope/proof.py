"""Estimators against the truth: many independent logs of a process whose values are known (DESIGN section 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.ope.estimators import ESTIMATORS, Estimator, Models
from analysis.ope.evaluation import REFITS
from analysis.ope.intervals import Terms, interval
from analysis.ope.logged import Logged
from analysis.ope.support import SupportVerdict, measure_support
from analysis.statistics import resample_counts
from controllers.data import Floats

__all__ = ["Proof", "prove"]


@dataclass(frozen=True, slots=True)
class Proof:
    """One estimator of one target in many independent logs."""

    estimator: str
    exact: float
    n_logs: int
    bias: float
    """Mean of the estimates minus the exact value."""
    bias_error: float
    """Standard error of that mean; `bias / bias_error` beyond 3 is a bias and no accident."""
    spread: float
    """Standard deviation of the estimates."""
    verdicts: Mapping[SupportVerdict, int]
    """Logs by verdict."""
    coverage: float
    """Share of the supported logs whose interval holds the exact value; NaN without any."""
    width: float
    """Mean width of those intervals."""

    @property
    def errors(self) -> float:
        """Bias in standard errors; 0 where nothing varies and nothing is off."""
        return self.bias / self.bias_error if self.bias_error > 0 else 0.0 if abs(self.bias) < 1e-9 else np.inf

    @property
    def n_supported(self) -> int:
        """Logs with the verdict `supported`."""
        return self.verdicts.get(SupportVerdict.SUPPORTED, 0)


def prove(
    logs: Iterable[Logged],
    exact: float,
    estimators: Sequence[Estimator] = tuple(ESTIMATORS.values()),
    *,
    level: float = 0.95,
    draws: int = 1000,
    refits: int = 200,
    fit: Callable[[Logged], Models] = Models,
) -> list[Proof]:
    """Every estimator on every log, beside the exact value.

    Args:
        logs: independent, of one target, all with the same number of tasks.
        exact: the target's value.
        estimators: which.
        level: of the intervals.
        draws: resamples of tasks for intervals.
        refits: those in which a model is fitted again, at most `REFITS`.
        fit: makes the models of a log.
    """
    values: list[list[float]] = []
    holds: list[list[tuple[bool, float]]] = []
    verdicts: list[SupportVerdict] = []
    counts: Floats | None = None
    for log in logs:
        if counts is None:
            counts = resample_counts(log.n_tasks, draws, 0)
        models, fewer = fit(log), counts[: min(refits, REFITS)]
        verdicts.append(measure_support(log, models.abstract).verdict)
        made = [estimator(models, fewer) for estimator in estimators]
        values.append([each.value for each in made])
        found = [interval(each, counts if isinstance(each, Terms) else fewer, level=level) for each in made]
        holds.append([(each.low <= exact <= each.high, each.high - each.low) for each in found])
    supported = np.array([verdict is SupportVerdict.SUPPORTED for verdict in verdicts])
    tally = {verdict: verdicts.count(verdict) for verdict in SupportVerdict}
    estimates, ends = np.array(values), np.array(holds, dtype=np.float64)[supported]
    n = len(estimates)
    return [
        Proof(
            estimator=estimator.name,
            exact=exact,
            n_logs=n,
            bias=float(estimates[:, k].mean()) - exact,
            bias_error=float(estimates[:, k].std(ddof=1)) / float(np.sqrt(n)),
            spread=float(estimates[:, k].std(ddof=1)),
            verdicts=tally,
            coverage=float(ends[:, k, 0].mean()) if len(ends) else np.nan,
            width=float(ends[:, k, 1].mean()) if len(ends) else np.nan,
        )
        for k, estimator in enumerate(estimators)
    ]
