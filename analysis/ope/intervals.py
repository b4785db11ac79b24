r"""Intervals of off-policy estimates by resampling tasks, all resamples at once.

Every estimator that weighs episodes is a sum of ratios of sums over tasks,

.. math::

    \hat V = \sum_j \frac{\sum_k N_{kj}}{\sum_k D_{kj}}, \qquad
    v_k = \sum_j \frac{N_{kj} - \hat R_j D_{kj}}{\bar D_j}, \qquad
    \mathrm{se}^2 = \frac{1}{K (K-1)} \sum_k v_k^2

(one column with D = 1 is a mean, one with D = the weights is weighted importance sampling). The linearisation v is
computed anew in each resample, so that the symmetric bootstrap-t (`statistics.bootstrap_t`) has its own standard
error there. An estimator that is fitted again in every resample has draws and no such error.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from analysis.statistics import Degeneracy, Interval, bootstrap_t
from controllers.data import Bools, Floats

__all__ = ["IntervalKind", "Refitted", "Terms", "interval", "mean_terms"]

_ROUNDING = 1e-9


class IntervalKind(StrEnum):
    """How resamples become an interval."""

    BOOTSTRAP_T = "bootstrap_t"
    """Studentised, symmetric; for estimators with a standard error of their own."""
    PERCENTILE = "percentile"
    """Quantiles of the resampled values."""
    BASIC = "basic"
    """Twice the estimate minus those quantiles: corrects a shift of the resamples once, not twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """An estimate as a sum of J ratios of sums over tasks."""

    numerator: Floats
    """(K, J)"""
    denominator: Floats
    """(K, J)"""

    @property
    def value(self) -> float:
        """The estimate; NaN where a denominator is 0."""
        return float(_ratios(self.numerator.sum(axis=0), self.denominator.sum(axis=0)).sum())

    def less(self, others: Floats) -> Terms:
        """The difference of this estimate and the mean of `others` (K,) over the same tasks."""
        return Terms(
            np.column_stack([self.numerator, -others]), np.column_stack([self.denominator, np.ones(len(others))])
        )


@dataclass(frozen=True, slots=True, eq=False)
class Refitted:
    """An estimate whose model was fitted again in every resample."""

    value: float
    draws: Floats
    """(B,) estimate in each resample of tasks."""


def mean_terms(values: Floats) -> Terms:
    """The mean of task values (K,)."""
    return Terms(values[:, None], np.ones((len(values), 1)))


def interval(
    estimate: Terms | Refitted,
    counts: Floats,
    *,
    kind: IntervalKind | None = None,
    level: float = 0.95,
    support: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """The interval of an estimate, from resamples of tasks.

    Args:
        estimate: K tasks, K at least 2.
        counts: (B, K) of `statistics.resample_counts`; the resamples that `Refitted` was fitted in.
        kind: None for bootstrap-t where the estimate allows it, else percentile.
        level: in (0, 1).
        support: values that a policy's value can have at all; the interval is cut to them, the estimate is not.

    Raises:
        ValueError: bootstrap-t of an estimate without standard errors.
    """
    tail = round((1 - level) / 2, 12)
    if isinstance(estimate, Terms) and kind in (None, IntervalKind.BOOTSTRAP_T):
        return _bootstrap_t(estimate, counts, level, support)
    if kind is IntervalKind.BOOTSTRAP_T:
        raise ValueError("an estimate that is fitted again in every resample has no standard error for bootstrap-t")
    draws = estimate.draws if isinstance(estimate, Refitted) else _resampled(estimate, counts)[0]
    value = estimate.value
    draws = draws[np.isfinite(draws)]
    if len(draws) == 0 or not np.isfinite(value):
        return Interval(value, *support, Degeneracy.OPEN_END)
    low, high = np.quantile(draws, [tail, 1 - tail])
    if kind is IntervalKind.BASIC:
        low, high = 2 * value - high, 2 * value - low
    return _cut(value, float(low), float(high), support)


def _bootstrap_t(terms: Terms, counts: Floats, level: float, support: tuple[float, float]) -> Interval:
    if (terms.denominator == 1.0).all():
        return bootstrap_t(terms.numerator.sum(axis=1), counts, level=level, support=support)
    n = len(terms.numerator)
    value = terms.value
    if not np.isfinite(value):
        return Interval(value, *support, Degeneracy.OPEN_END)
    own = _influence(terms, np.ones((1, n)))[0]
    error = float(np.sqrt(np.square(own).sum() / (n * (n - 1))))
    draws, variance, undefined = _resampled(terms, counts)
    shift = np.where(undefined, 0.0, draws - value)
    flat = variance <= (_ROUNDING * error) ** 2
    t = np.where(flat, np.inf, np.abs(shift) / np.sqrt(np.where(flat, 1.0, variance)))
    # A resample without any weight says nothing: it counts as far off. Order statistics keep infinities.
    size = float(np.quantile(np.where(undefined, np.inf, t), round(level, 12), method="inverted_cdf"))
    if undefined.mean() > 1 - level:
        return Interval(value, min(support[0], value), max(support[1], value), Degeneracy.OPEN_END)
    scale = max(abs(value), float(np.abs(terms.numerator).max()))
    if error <= _ROUNDING * scale or not np.isfinite(size):
        return bootstrap_t(value + own, counts, level=level, support=support)  # which knows what little spread means
    return _cut(value, value - size * error, value + size * error, support)


def _cut(value: float, low: float, high: float, support: tuple[float, float]) -> Interval:
    """The interval within `support`, but never without the estimate, which may lie outside."""
    return Interval(value, min(max(low, support[0]), value), max(min(high, support[1]), value))


def _resampled(terms: Terms, counts: Floats) -> tuple[Floats, Floats, Bools]:
    """Estimate (B,), its squared standard error (B,), and where a denominator is 0 (B,), in each resample."""
    n = len(terms.numerator)
    numerator, denominator = counts @ terms.numerator, counts @ terms.denominator
    undefined: Bools = (denominator <= 0).sum(axis=1) > 0
    draws = _ratios(numerator, np.where(denominator > 0, denominator, 1.0)).sum(axis=1)
    variance = (counts * np.square(_influence(terms, counts))).sum(axis=1) / (n * (n - 1))
    return np.where(undefined, np.nan, draws), variance, undefined


def _influence(terms: Terms, counts: Floats) -> Floats:
    """(B, K) the linearisation v of each resample."""
    denominator = counts @ terms.denominator
    safe = np.where(denominator > 0, denominator, 1.0)
    ratios = (counts @ terms.numerator) / safe
    scale = counts.sum(axis=1, keepdims=True) / safe
    values: Floats = scale @ terms.numerator.T - (scale * ratios) @ terms.denominator.T
    return values


def _ratios(numerator: Floats, denominator: Floats) -> Floats:
    zero = denominator == 0
    quotients: Floats = np.where(zero, np.nan, numerator / np.where(zero, 1.0, denominator))
    return quotients
