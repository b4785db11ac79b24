"""Arms compared on matched pairs: quality and maturity apart, never one without its n and interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from analysis.frame import evaluation_frame
from analysis.matching import MatchedArm, match
from analysis.statistics import (
    Interval,
    bootstrap_t,
    holm,
    ratio_task_values,
    resample_counts,
    sign_flip_p,
    task_means,
)
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.scoring.maturity import MaturityEvent

__all__ = ["EVENT_TASKS", "OUTCOMES", "Comparison", "Outcome", "compare"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Something episodes are compared by."""

    name: str
    column: str
    support: tuple[float, float]
    """Range of its values."""

    @property
    def difference_support(self) -> tuple[float, float]:
        """Range of a difference of two."""
        low, high = self.support
        return (low - high, high - low)


EVENT_TASKS = 5
"""In so many tasks (all, where there are fewer) an event has to be applicable for its rate to get an interval."""

OUTCOMES = (Outcome("quality", "return", (0.0, 1.0)), Outcome("maturity", "maturity", (-1.0, 1.0)))


@dataclass(frozen=True, eq=False)
class Comparison:
    """What an evaluation says, as tables."""

    rows: pd.DataFrame
    """One row per setting, outcome and arm: `setting arm outcome mean mean_low mean_high reference_mean delta
    ci_low ci_high p p_holm n_tasks n_episodes n_invalid n_infra_missing degenerate note manifest`. `mean` weighs
    tasks equally; `delta` = `mean` - `reference_mean`, the reference on the same pairs; the reference's own row has
    NaN from `delta` to `p_holm`. `p_holm` is over the settings, for each (arm, outcome). `degenerate` says that an
    end of an interval rests on how often tasks could differ instead of on their spread, and `note` which and why."""
    events: pd.DataFrame
    """Maturity events as rates among applicable episodes: `setting arm event rate rate_low rate_high
    reference_rate delta ci_low ci_high n_tasks n_applicable n_applicable_reference degenerate note`; empty without
    stored verdicts. An event that was applicable in fewer than `EVENT_TASKS` tasks of an arm has no interval there,
    and `note` says so."""
    reference: str
    arms: tuple[str, ...]
    """In the order given."""
    preset: str
    """Maturity preset."""
    simulated: bool
    """Some episode was made with a simulated executor."""
    level: float
    draws: int
    seed: int


def compare(
    episodes: pd.DataFrame | pl.DataFrame,
    reference: str = "base",
    *,
    arms: Sequence[str] | None = None,
    outcomes: Sequence[str] = ("quality", "maturity"),
    preset: str = "paper",
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare the arms of an evaluation with `reference`, setting by setting.

    Args:
        episodes: one row an episode, see `analysis.frame.evaluation_frame`.
        reference: the arm that differences are taken to.
        arms: which, in which order; all, in order of appearance, if None. The reference comes first.
        outcomes: names of `OUTCOMES`; without `maturity` there are no event rates either.
        preset: maturity preset.
        level: of the intervals.
        draws: resamples of tasks.
        seed: of resamples and sign flips.

    Raises:
        ConfigError: no episodes, a missing column, an unknown arm.
        UnusableBuffer: arms that are not matched, more than 5 % missing, a single task.
        InputError: a row that contradicts itself.
    """
    frame = evaluation_frame(episodes, preset=preset)
    present: list[str] = frame["arm"].unique(maintain_order=True).to_list()
    order = list(dict.fromkeys([reference, *(arms or present)]))
    if unknown := [arm for arm in order if arm not in present]:
        raise ConfigError(
            f"no episodes of arm {', '.join(unknown)}; there are episodes of {', '.join(present)}. "
            "Choose among these, or evaluate the missing one too"
        )
    frame = frame.filter(pl.col("arm").is_in(order))

    @cache
    def counts(n: int) -> Floats:
        return resample_counts(n, draws, seed)

    estimator = _Estimator(counts, level, draws, seed)
    rows: list[dict[str, object]] = []
    events: list[dict[str, object]] = []
    for setting in frame["setting"].unique(maintain_order=True):
        table = frame.filter(pl.col("setting") == setting)
        here = set(table["arm"])
        if reference not in here:
            raise ConfigError(
                f"setting {setting} has no episodes of the reference arm {reference}. Evaluate it there too, or leave "
                "the setting out"
            )
        try:
            matched = match(table, [arm for arm in order if arm in here], reference)
            for outcome in OUTCOMES:
                if outcome.name in outcomes and table[outcome.column].is_not_null().any():
                    rows += [{"setting": setting} | estimator.outcome_row(arm, outcome, reference) for arm in matched]
            for arm in matched if "maturity" in outcomes else ():
                events += [{"setting": setting} | row for row in estimator.event_rows(arm, reference)]
        except UnusableBuffer as problem:
            raise UnusableBuffer(f"setting {setting}: {problem}") from problem
    result = pd.DataFrame(rows)
    for _, family in result.groupby(["arm", "outcome"], sort=False):
        result.loc[family.index, "p_holm"] = holm(family["p"].to_numpy(dtype=np.float64))
    return Comparison(
        rows=result,
        events=pd.DataFrame(events),
        reference=reference,
        arms=tuple(order),
        preset=preset,
        simulated=bool(frame["executor"].cast(pl.String).str.starts_with("simulated").any()),
        level=level,
        draws=draws,
        seed=seed,
    )


@dataclass(frozen=True)
class _Estimator:
    """Turns a matched arm into rows; holds what all arms share."""

    counts: Callable[[int], Floats]
    level: float
    draws: int
    seed: int

    def interval(self, values: Floats, support: tuple[float, float]) -> Interval:
        return bootstrap_t(values, self.counts(len(values)), level=self.level, support=support)

    def outcome_row(self, arm: MatchedArm, outcome: Outcome, reference: str) -> dict[str, object]:
        pairs = arm.complete(outcome.column)
        own, base = (_by_task(pairs, outcome.column + side) for side in ("", "_reference"))
        compared = arm.name != reference
        mean = self.interval(own, outcome.support)
        delta = self.interval(own - base, outcome.difference_support) if compared else _NOTHING
        p = sign_flip_p(own - base, draws=self.draws, seed=self.seed) if compared else np.nan
        return {
            "arm": arm.name,
            "outcome": outcome.name,
            "mean": mean.mean,
            "mean_low": mean.low,
            "mean_high": mean.high,
            "reference_mean": float(base.mean()),
            "delta": delta.mean,
            "ci_low": delta.low,
            "ci_high": delta.high,
            "p": p,
            "p_holm": p,
            "n_tasks": len(own),
            "n_episodes": len(pairs),
            "n_invalid": arm.invalid,
            "n_infra_missing": arm.infra_missing,
            **_degenerate({"mean": mean, "delta": delta}),
            "manifest": arm.manifest,
        }

    def event_rows(self, arm: MatchedArm, reference: str) -> list[dict[str, object]]:
        pairs = arm.complete("return")
        if not pairs["verdicts"].list.len().sum():
            return []
        own, base = _rates(pairs, "verdicts"), _rates(pairs, "verdicts_reference")
        compared = arm.name != reference
        return [self._event_row(arm.name, event.value, own, base, compared) for event in MaturityEvent]

    def _event_row(self, arm: str, event: str, own: _Rates, base: _Rates, compared: bool) -> dict[str, object]:
        rates, base_rates = own[event], base[event]
        rate = self.event_interval(rates.values, (0.0, 1.0), rates.n_tasks)
        fewest = min(rates.n_tasks, base_rates.n_tasks) if compared else 0
        delta = self.event_interval(rates.values - base_rates.values, (-1.0, 1.0), fewest)
        few = [n for n in (rates.n_tasks, fewest) if n and self.too_few(rates.values, n)]
        notes = [f"applicable in {n} task{'s' if n > 1 else ''} only" for n in few[-1:]]
        return {
            "arm": arm,
            "event": event,
            "rate": rate.mean,
            "rate_low": rate.low,
            "rate_high": rate.high,
            "reference_rate": float(base_rates.values.mean()),
            "delta": delta.mean,
            "ci_low": delta.low,
            "ci_high": delta.high,
            "n_tasks": len(rates.values),
            "n_applicable": rates.n_episodes,
            "n_applicable_reference": base_rates.n_episodes,
            **_degenerate({"rate": rate, "delta": delta}, *notes),
        }

    def event_interval(self, values: Floats, support: tuple[float, float], n_tasks: int) -> Interval:
        """Of an event that was applicable in `n_tasks` tasks; without ends where those are too few."""
        if not n_tasks:
            return _NOTHING
        if self.too_few(values, n_tasks):
            return Interval(float(values.mean()), np.nan, np.nan)
        return self.interval(values, support)

    @staticmethod
    def too_few(values: Floats, n_tasks: int) -> bool:
        """One episode that could have fired and did not is no rate of 0: its spread over tasks is 0 all the same."""
        return n_tasks < min(EVENT_TASKS, len(values))


_NOTHING = Interval(np.nan, np.nan, np.nan)


@dataclass(frozen=True, eq=False, slots=True)
class _Rate:
    values: Floats
    """(n,) linearised rate per task."""
    n_episodes: int
    """In which the event was applicable."""
    n_tasks: int


_Rates = dict[str, _Rate]
"""By event."""


def _by_task(pairs: pl.DataFrame, column: str) -> Floats:
    """(n,) task means; tasks in sorted order, the same for every column of the same pairs."""
    names, tasks = np.unique(pairs["task_id"].to_numpy(), return_inverse=True)
    return task_means(pairs[column].to_numpy(), tasks.astype(np.int64), len(names))


def _rates(pairs: pl.DataFrame, column: str) -> _Rates:
    verdicts = pairs.select("task_id", column).explode(column).unnest(column).filter("applicable")
    names = pairs.select("task_id").unique().sort("task_id")
    rates: _Rates = {}
    for event in MaturityEvent:
        told = verdicts.filter(pl.col("event") == event.value).group_by("task_id")
        sums = told.agg(pl.col("fired").sum().alias("fired"), pl.len().alias("applicable"))
        per_task = names.join(sums, on="task_id", how="left", maintain_order="left").fill_null(0)
        fired, applicable = (per_task[name].to_numpy().astype(np.float64) for name in ("fired", "applicable"))
        values = ratio_task_values(fired, applicable)
        rates[event.value] = _Rate(values, int(applicable.sum()), int(np.count_nonzero(applicable)))
    return rates


def _degenerate(intervals: Mapping[str, Interval], *notes: str) -> dict[str, object]:
    found = [f"{name}: {interval.degeneracy}" for name, interval in intervals.items() if interval.degeneracy]
    return {"degenerate": bool(found), "note": "; ".join([*found, *notes])}
