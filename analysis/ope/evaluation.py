"""One target policy on one log: every estimate with its interval, and whether the log supports it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.ope.estimators import ESTIMATORS, Estimator, Models, RestsOn
from analysis.ope.intervals import IntervalKind, Refitted, Terms, interval, mean_terms
from analysis.ope.logged import Logged
from analysis.ope.support import Support, SupportRules, SupportVerdict, measure_support
from analysis.statistics import Interval, resample_counts
from harness_mdp.errors import UnusableBuffer

__all__ = ["REFITS", "Estimate", "PolicyValue", "estimate_policy"]

REFITS = 1000
"""Resamples in which a model is fitted again; quantiles of so many are good to about a tenth of a standard error."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The value of a target by one estimator."""

    estimator: str
    rests_on: RestsOn
    value: Interval
    gain: Interval
    """The same minus the behaviour policy's mean return on the same tasks: what differs between tasks cancels.
    0 for the behaviour policy itself."""
    ess: float | None
    """Episodes; None for an estimator without weights."""
    largest_share: float | None
    """Of one episode in the sum of weights."""
    withheld: str
    """Why the number is not to be used; empty where it may be."""


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """What the log says of one target policy: its value on the log's tasks, tasks weighing equally."""

    support: Support
    behaviour: Interval
    """Mean return of the log."""
    estimates: tuple[Estimate, ...]
    """All of them, also those to be withheld."""
    level: float
    """Of the intervals."""

    @property
    def shown(self) -> tuple[Estimate, ...]:
        """The estimates that the log supports; empty on `insufficient support`."""
        return tuple(estimate for estimate in self.estimates if not estimate.withheld)

    @property
    def best(self) -> Estimate | None:
        """The one number to quote, if any: doubly robust where weights carry it, else the model of abstract states.

        A verdict by cells speaks of the cells of that model. Held against the truth in eight settings (simulated,
        docs/ope.md), fitted Q evaluation was twice as far off there.
        """
        shown = {estimate.estimator: estimate for estimate in self.shown}
        return next((shown[name] for name in ("dr", "wis", "model", "fqe") if name in shown), None)


def estimate_policy(
    log: Logged,
    estimators: Sequence[Estimator] = tuple(ESTIMATORS.values()),
    *,
    models: Models | None = None,
    rules: SupportRules | None = None,
    kind: IntervalKind | None = None,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    value_range: tuple[float, float] = (-np.inf, np.inf),
) -> PolicyValue:
    """Every estimate of the target of `log`, and the support verdict.

    Args:
        log: n steps of at least two tasks.
        estimators: which.
        models: of `log`, to configure them or to share them between calls.
        rules: margins of the verdict.
        kind: of the intervals, see `intervals.interval`.
        level: of the intervals.
        draws: resamples of tasks; a model is fitted again in the first `REFITS` of them.
        seed: of the resamples.
        value_range: values that a policy can have at all, e.g. (0, 1); intervals are cut to them.

    Raises:
        UnusableBuffer: a single task, of which no resample tells anything.
    """
    if log.n_tasks < 2:
        raise UnusableBuffer(
            f"{log.n_episodes} episodes of one task: intervals resample tasks and need two (20 or more to mean "
            "something). Collect on more tasks"
        )
    fits = models or Models(log)
    support = measure_support(log, fits.abstract, rules)
    counts = resample_counts(log.n_tasks, draws, seed)
    returns = log.per_task(log.returns)
    low, high = value_range
    itself = np.array_equal(log.target, log.behaviour)
    weights = (support.ess, support.largest_share)
    estimates: list[Estimate] = []
    for estimator in estimators:
        made = estimator(fits, counts[:REFITS])
        used = counts if isinstance(made, Terms) else counts[:REFITS]
        by_weights = estimator.rests_on is RestsOn.WEIGHTS
        estimates.append(
            Estimate(
                estimator=estimator.name,
                rests_on=estimator.rests_on,
                value=interval(made, used, kind=_kind(made, kind), level=level, support=value_range),
                gain=Interval(0.0, 0.0, 0.0)
                if itself
                else interval(
                    _less(made, returns, used),
                    used,
                    kind=_kind(made, kind),
                    level=level,
                    support=(low - high, high - low),
                ),
                ess=weights[0] if by_weights else None,
                largest_share=weights[1] if by_weights else None,
                withheld=_withheld(estimator.rests_on, support),
            )
        )
    behaviour = interval(mean_terms(returns), counts, level=level, support=value_range)
    return PolicyValue(support, behaviour, tuple(estimates), level)


def _kind(made: Terms | Refitted, kind: IntervalKind | None) -> IntervalKind | None:
    return None if isinstance(made, Refitted) and kind is IntervalKind.BOOTSTRAP_T else kind


def _less(made: Terms | Refitted, returns: np.ndarray, counts: np.ndarray) -> Terms | Refitted:
    """The estimate minus the mean return, in the log and in every resample."""
    if isinstance(made, Terms):
        return made.less(returns)
    return Refitted(made.value - float(returns.mean()), made.draws - counts @ returns / counts.sum(axis=1))


def _withheld(rests_on: RestsOn, support: Support) -> str:
    """A number is given where what carries it is supported; a model may lean on weights that are."""
    if support.verdict is SupportVerdict.INSUFFICIENT:
        return "insufficient support"
    if rests_on is RestsOn.WEIGHTS and support.by_weights is SupportVerdict.INSUFFICIENT:
        return "too few effective episodes"
    return ""
