"""The statistics of an evaluation, as pure functions of arrays and seeds (DESIGN section 10).

The unit is the task: tasks weigh equally, whatever their number of episodes, and tasks are what is resampled.
Nothing here knows arms, episodes or tables; `analysis.comparison` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from harness_mdp.hashing import generator

__all__ = [
    "Degeneracy",
    "Interval",
    "bootstrap_t",
    "holm",
    "ratio_task_values",
    "resample_counts",
    "sign_flip_p",
    "task_means",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXACT_UP_TO = 20
"""Sign flips of at most this many nonzero task means are enumerated: 2^19 sums, some 10 ms."""

# A spread is zero when it is below what rounding alone leaves behind.
_ROUNDING = 1e-9


class Degeneracy(StrEnum):
    """Why an interval is not what it looks like."""

    NONE = ""
    ZERO_VARIANCE = "zero variance"
    """All tasks have the same value: the interval is that point, and says nothing about other tasks."""
    OPEN_END = "open end"
    """So many resamples have zero variance that one end is not bounded by the data but by the value range."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over tasks and its confidence interval."""

    mean: float
    low: float
    high: float
    degeneracy: Degeneracy = Degeneracy.NONE


def task_means(values: Floats, tasks: Ints, n_tasks: int) -> Floats:
    """Mean value per task.

    Args:
        values: (m,) one per episode or pair.
        tasks: (m,) task index in 0 .. n_tasks - 1.
        n_tasks: n; every task needs at least one value.

    Returns:
        (n,)

    Raises:
        ValueError: a task has no value.
    """
    counts = np.bincount(tasks, minlength=n_tasks)
    if len(counts) != n_tasks or not counts.all():
        raise ValueError(f"{int((counts == 0).sum())} of {n_tasks} tasks have no value")
    return np.bincount(tasks, weights=values, minlength=n_tasks) / counts


def resample_counts(n: int, draws: int, seed: int) -> Floats:
    """How often each of n tasks is drawn in each of `draws` resamples of n tasks: (draws, n), rows sum to n.

    A statistic of the resamples is then one matrix product, and one matrix serves all arms of a setting.
    """
    drawn = generator("bootstrap", seed, n, draws).integers(n, size=(draws, n))
    drawn += np.arange(draws)[:, None] * n
    return np.bincount(drawn.ravel(), minlength=draws * n).reshape(draws, n).astype(np.float64)


def bootstrap_t(
    values: Floats,
    counts: Floats,
    *,
    level: float = 0.95,
    support: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """Mean of task values with a bootstrap-t interval (equal-tailed).

    With m and se the mean and its standard error, and t* = (m* - m) / se* over the resamples, the interval is
    [m - q_hi(t*)·se, m - q_lo(t*)·se] (Efron and Tibshirani 1993, chapter 12), cut to `support`.

    Zero variance. All values equal: the interval is the point, flagged. A *resample* of equal values has
    se* = 0 and counts as t* = ±inf by the sign of m* - m, which is the limit of ever smaller noise. Where those
    reach a quantile, that end of the interval is the end of `support`, flagged as an open end. Leaving such
    resamples out would be narrower and wrong: with gains in 2 % of episodes, 20 tasks x 9 rollouts, the interval
    would cover 0.69 of the time instead of 0.96.

    Args:
        values: (n,) one per task, n at least 2.
        counts: (draws, n) of `resample_counts`.
        level: confidence level in (0, 1).
        support: the values a mean can take at all, e.g. (-1, 1) for a difference of returns.

    Raises:
        ValueError: fewer than two tasks, or counts of another n.
    """
    n = len(values)
    if n < 2 or counts.shape[1:] != (n,):
        raise ValueError(f"{n} task values and counts of shape {counts.shape}; expected n >= 2 and (draws, n)")
    mean = float(values.mean())
    centred = values - mean
    scale = float(np.abs(values).max())
    if float(np.abs(centred).max()) <= _ROUNDING * scale:
        return Interval(mean, mean, mean, Degeneracy.ZERO_VARIANCE)
    error = float(values.std(ddof=1)) / np.sqrt(n)
    shift = counts @ centred / n
    variance = np.maximum(counts @ centred**2 / n - shift**2, 0.0) * n / (n - 1)
    flat = variance <= (_ROUNDING * scale) ** 2 + _ROUNDING * float(centred @ centred) / n
    t = np.where(flat, np.copysign(np.inf, shift), shift / np.sqrt(np.where(flat, 1.0, variance) / n))
    t[flat & (np.abs(shift) <= _ROUNDING * scale)] = 0.0
    # Order statistics, not interpolation: infinities stay infinities. Rounded, as 1 - 0.95 is not 0.05.
    tail = round((1 - level) / 2, 12)
    q_low, q_high = np.quantile(t, [tail, 1 - tail], method="inverted_cdf")
    degeneracy = Degeneracy.NONE if np.isfinite(q_low) and np.isfinite(q_high) else Degeneracy.OPEN_END
    low, high = (float(end) for end in np.clip([mean - q_high * error, mean - q_low * error], *support))
    return Interval(mean, low, high, degeneracy)


def sign_flip_p(values: Floats, *, draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided p of "the mean is 0" under independent sign flips of the task values.

    Tasks with value 0 do not matter. With at most 20 others all sign patterns are enumerated and p is exact;
    else p = (1 + flips at least as extreme) / (1 + draws) (Phipson and Smyth 2010), never 0.

    Args:
        values: (n,) one per task.
        draws: Monte Carlo flips, where they are not enumerated.
        seed: of those flips.
    """
    moved = values[values != 0]
    if len(moved) == 0:
        return 1.0
    # The same sum reached in another order must count as equally extreme.
    observed = abs(float(moved.sum())) - _ROUNDING * float(np.abs(moved).sum())
    if len(moved) <= EXACT_UP_TO:
        sums = moved[:1].astype(np.float64)  # the other half of the patterns mirrors these
        for value in moved[1:]:
            sums = np.concatenate([sums + value, sums - value])
        return float(np.mean(np.abs(sums) >= observed))
    signs = generator("sign flips", seed, len(moved), draws).integers(2, size=(draws, len(moved)), dtype=np.int8)
    sums = (2.0 * signs - 1.0) @ moved
    return float((1 + np.count_nonzero(np.abs(sums) >= observed)) / (1 + draws))


def holm(p: Floats) -> Floats:
    """Holm's step-down adjusted p-values of one family: (k,), NaN stays NaN and counts for nothing."""
    adjusted = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted


def ratio_task_values(numerator: Floats, denominator: Floats) -> Floats:
    """Task values whose mean is the pooled ratio r = Σ numerator / Σ denominator and whose spread is its error.

    The linearised ratio, v_k = r + (numerator_k - r · denominator_k) / mean(denominator), so that a rate among
    applicable episodes, or a difference of two, goes through `bootstrap_t` like any task mean.

    Args:
        numerator: (n,) per task, e.g. episodes where an event fired.
        denominator: (n,) per task, e.g. episodes where it was applicable; some may be 0.

    Returns:
        (n,); all NaN when the denominators sum to 0.
    """
    total = float(denominator.sum())
    if total == 0:
        return np.full(len(numerator), np.nan)
    ratio = float(numerator.sum()) / total
    return ratio + (numerator - ratio * denominator) * len(denominator) / total
