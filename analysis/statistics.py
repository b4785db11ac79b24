"""The statistics of an evaluation, as pure functions of arrays and seeds (DESIGN section 10).

The unit is the task: tasks weigh equally, whatever their number of episodes, and tasks are what is resampled.
Nothing here knows arms, episodes or tables; `analysis.comparison` does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from harness_mdp.hashing import generator

__all__ = [
    "Degeneracy",
    "Interval",
    "bootstrap_t",
    "bootstrap_t_rows",
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

_ROWS_AT_ONCE = 64
"""Rows of values whose resamples are in memory together: 5 MB an array at 10,000 draws."""


class Degeneracy(StrEnum):
    """Why an interval rests on less than its tasks' spread."""

    NONE = ""
    ZERO_VARIANCE = "zero variance"
    """All tasks have the same value: both ends come from how often others could differ, and how far."""
    OPEN_END = "open end"
    """So many resamples have zero variance that the ends are unlike, and one may come from how often others could
    differ, and how far."""


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
    """Mean of task values with a symmetric bootstrap-t interval, cut to `support`.

    With m and se the mean and its standard error, and t* = (m* - m) / se* over the resamples, the interval is
    m ± q(|t*|)·se (Hall 1988, Efron and Tibshirani 1993, chapter 12). Equal tails, m - q_hi(t*)·se to m - q_lo(t*)·se,
    are no wider and cover 0.91 of the time at 20 tasks where most differences are 0 and the others go both ways,
    because a few tasks tell little about skew; symmetric, 0.93 or more on all data tried (docs/analysis.md).

    Where the spread is missing. A *resample* of equal values has se* = 0 and counts as t* = ±inf by the sign of
    m* - m, the limit of ever smaller noise. Where those reach the quantile, the tails are taken apart; and where they
    reach the quantile of a tail, or all values are equal, the spread bounds nothing, and that end is

        c + u·(h - c),

    with c the commonest value on this side of the mean, h the end of `support`, and u the Clopper-Pearson bound, at
    the level of one tail, of the share of tasks beyond c (k of n tasks seen). It is wide and holds for whatever is
    distributed in `support`; the interval is flagged. The point that equal values seem to call for is no interval:
    with a gain in 1 of 10 tasks it covers 0.88 at 20 tasks.

    Args:
        values: (n,) one per task, n at least 2.
        counts: (draws, n) of `resample_counts`.
        level: confidence level in (0, 1).
        support: the values a mean can take at all, e.g. (-1, 1) for a difference of returns.

    Raises:
        ValueError: fewer than two tasks, or counts of another n.
    """
    return bootstrap_t_rows(values[None], counts, level=level, support=support)[0]


def bootstrap_t_rows(
    values: Floats,
    counts: Floats,
    *,
    level: float = 0.95,
    support: tuple[float, float] = (-np.inf, np.inf),
) -> list[Interval]:
    """`bootstrap_t` of each row of `values` (r, n); the resamples of all rows in a few matrix products.

    Raises:
        ValueError: as `bootstrap_t`.
    """
    n = values.shape[1]
    if n < 2 or counts.shape[1:] != (n,):
        raise ValueError(f"{n} task values and counts of shape {counts.shape}; expected n >= 2 and (draws, n)")
    tail = round((1 - level) / 2, 12)  # 1 - 0.95 is not 0.05
    blocks = range(0, len(values), _ROWS_AT_ONCE)
    return [
        interval
        for at in blocks
        for interval in _intervals(values[at : at + _ROWS_AT_ONCE], counts, tail=tail, support=support)
    ]


def _intervals(values: Floats, counts: Floats, *, tail: float, support: tuple[float, float]) -> list[Interval]:
    n = values.shape[1]
    mean = values.mean(axis=1)
    scale = np.abs(values).max(axis=1)
    centred = values - mean[:, None]
    equal = np.abs(centred).max(axis=1) <= _ROUNDING * scale
    error = values.std(axis=1, ddof=1) / np.sqrt(n)
    q_low, q_high, q_both = _quantiles_of_t(centred, counts, scale, tail)
    symmetric = np.isfinite(q_both)
    q_low, q_high = np.where(symmetric, -q_both, q_low), np.where(symmetric, q_both, q_high)
    ends = np.stack([mean - q_high * error, mean - q_low * error], axis=1)
    found: list[Interval] = []
    rows = zip(values, mean.tolist(), equal.tolist(), symmetric.tolist(), ends.tolist(), strict=True)
    for row, at, no_spread, whole, (low, high) in rows:
        degeneracy = Degeneracy.NONE if whole else Degeneracy.OPEN_END
        if no_spread:
            degeneracy, low, high = Degeneracy.ZERO_VARIANCE, -np.inf, np.inf
        low = low if np.isfinite(low) else -_bound_by_frequency(-row, -support[0], tail)
        high = high if np.isfinite(high) else _bound_by_frequency(row, support[1], tail)
        # Linearised rates may lie outside the support, their mean never does.
        found.append(Interval(at, min(max(support[0], low), at), max(min(support[1], high), at), degeneracy))
    return found


def _quantiles_of_t(centred: Floats, counts: Floats, scale: Floats, tail: float) -> tuple[Floats, Floats, Floats]:
    """Quantiles `tail` and 1 - `tail` of t* and 1 - 2 `tail` of |t*|, (r,) each, of r rows of centred values (r, n)."""
    draws, n = counts.shape
    shift = centred @ counts.T / n
    variance = np.maximum(centred**2 @ counts.T / n - shift**2, 0.0) * n / (n - 1)
    spread = np.sum(centred**2, axis=1) / n
    flat = variance <= ((_ROUNDING * scale) ** 2 + _ROUNDING * spread)[:, None]
    t = np.where(flat, np.copysign(np.inf, shift), shift / np.sqrt(np.where(flat, 1.0, variance) / n))
    t[flat & (np.abs(shift) <= (_ROUNDING * scale)[:, None])] = 0.0
    # Order statistics, not interpolation: infinities stay infinities.
    ranks = [max(math.ceil(round(share * draws, 6)) - 1, 0) for share in (tail, 1 - tail, 1 - 2 * tail)]
    size = np.abs(t)
    t.partition(ranks[:2], axis=1)
    size.partition(ranks[2], axis=1)
    return t[:, ranks[0]], t[:, ranks[1]], size[:, ranks[2]]


def _bound_by_frequency(values: Floats, most: float, tail: float) -> float:
    """Upper bound of the mean of what is at most `most`, from how many values exceed the commonest one."""
    scale, n = float(np.abs(values).max()) or 1.0, len(values)
    levels, sizes = np.unique((values / scale).round(9), return_counts=True)
    below = levels <= float(values.mean()) / scale + _ROUNDING
    commonest = np.argmax(sizes[below])
    common, beyond = scale * float(levels[commonest]), int(sizes[commonest + 1 :].sum())
    share = float(betaincinv(beyond + 1, n - beyond, 1 - tail)) if beyond < n else 1.0
    return common + share * (most - common)


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
