"""What quality costs: tokens, steps and money of each arm, and which arms nothing dominates."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

import numpy as np
import pandas as pd
import polars as pl

from analysis.comparison import compare
from analysis.evaluations import Sources, evaluation_episodes, finished
from analysis.main_table import BASE
from analysis.statistics import Floats, bootstrap_t, resample_counts
from harness_mdp.errors import ConfigError

__all__ = ["COSTS", "cost_frontier", "on_frontier"]

COSTS = {"tokens": "tokens", "steps": "n_steps", "usd": "cost_usd"}
"""Name in the table -> column of an episode."""


def cost_frontier(sources: Sources, reference: str = BASE, *, draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Quality beside the mean cost of an episode; tasks weigh equally.

    Args:
        sources: see `evaluation_episodes`.
        reference: the arm that must be there, as the arms are compared on its pairs.
        draws: resamples of tasks.
        seed: of resamples.

    Returns:
        Intervals of a cost that is the same in all tasks reach to 0 and to the dearest episode of the setting at most.
        One row a setting and arm: `setting arm quality quality_low quality_high`; `<cost> <cost>_low <cost>_high
        pareto_<cost>` for tokens, steps and usd, NaN and False where a cost is not known for every episode, or not
        stored; `n_tasks n_episodes simulated`. `pareto_<cost>`: no other arm of the setting is at least as good at
        most as dear, and better or cheaper.

    Raises:
        ConfigError: no cost is stored.
        HarnessError: as `evaluation_episodes` and `compare`.
    """
    episodes = evaluation_episodes(sources)
    known = [column for column in COSTS.values() if column in episodes.columns]
    if not known:
        raise ConfigError(f"the episodes have none of the columns {', '.join(COSTS.values())}; expected at least one")
    comparison = compare(episodes, reference, outcomes=["quality"], draws=draws, seed=seed)
    done = finished(episodes)
    if "setting" not in done.columns:
        done = done.with_columns(setting=pl.lit(""))

    @cache
    def counts(n: int) -> Floats:
        return resample_counts(n, draws, seed)

    found: list[dict[str, object]] = []
    for row in pl.from_pandas(comparison.rows).iter_rows(named=True):
        here = done.filter((pl.col("setting") == row["setting"]) & (pl.col("arm") == row["arm"]))
        entry: dict[str, object] = {
            "setting": row["setting"],
            "arm": row["arm"],
            "quality": row["mean"],
            "quality_low": row["mean_low"],
            "quality_high": row["mean_high"],
        }
        for name, column in COSTS.items():
            entry |= _mean(name, _by_task(here, column), _largest(done, row["setting"], column), counts)
        found.append(entry | {"n_tasks": row["n_tasks"], "n_episodes": len(here), "simulated": comparison.simulated})
    return _with_frontiers(pl.DataFrame(found)).to_pandas()


def on_frontier(quality: Floats, cost: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(k,) which of k arms no other dominates; an arm of unknown cost is not on it and dominates none.

    Args:
        quality: (k,) more is better.
        cost: (k,) less is better; NaN is unknown.
    """
    better, cheaper = quality[:, None] >= quality, cost[:, None] <= cost
    strictly = (quality[:, None] > quality) | (cost[:, None] < cost)
    return ~(better & cheaper & strictly).any(axis=0) & ~np.isnan(cost)


def _by_task(episodes: pl.DataFrame, column: str) -> Floats | None:
    """(n,) task means; None where the cost of an episode is unknown."""
    if column not in episodes.columns or episodes[column].null_count():
        return None
    means = episodes.group_by("task_id").agg(pl.col(column).cast(pl.Float64).mean()).sort("task_id")
    return means[column].to_numpy()


def _largest(episodes: pl.DataFrame, setting: str, column: str) -> float:
    """The dearest episode of a setting: the range of a cost that has no other end."""
    if column not in episodes.columns:
        return np.nan
    most = episodes.filter(pl.col("setting") == setting)[column].cast(pl.Float64).max()
    return np.nan if most is None else float(cast("float", most))


def _mean(name: str, values: Floats | None, most: float, counts: Callable[[int], Floats]) -> dict[str, object]:
    if values is None:
        return {name: np.nan, f"{name}_low": np.nan, f"{name}_high": np.nan}
    interval = bootstrap_t(values, counts(len(values)), support=(0.0, most))
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _with_frontiers(table: pl.DataFrame) -> pl.DataFrame:
    settings = table.partition_by("setting", maintain_order=True)
    for name in COSTS:
        settings = [
            rows.with_columns(
                pl.Series(f"pareto_{name}", on_frontier(rows["quality"].to_numpy(), rows[name].to_numpy()))
            )
            for rows in settings
        ]
    costs = [column for n in COSTS for column in (n, f"{n}_low", f"{n}_high", f"pareto_{n}")]
    first = ["setting", "arm", "quality", "quality_low", "quality_high"]
    return pl.concat(settings).select(*first, *costs, "n_tasks", "n_episodes", "simulated")
