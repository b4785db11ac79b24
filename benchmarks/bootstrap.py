"""Intervals over tasks by 10,000 resamples, beside `scipy.stats.bootstrap`, for 8 settings x 4 policies.

`python -m benchmarks.bootstrap`. Ours is bootstrap-t, which also needs a standard error in each resample; scipy's
`percentile` needs none, its default `BCa` jackknifes besides. The last line is the whole comparison of those arms
(matching, quality and maturity, means and differences, sign flips, Holm) against the limit of two seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from statistics import median
from time import perf_counter

import numpy as np
import polars as pl
from scipy.stats import bootstrap

from analysis.comparison import compare
from analysis.statistics import bootstrap_t, resample_counts
from benchmarks.table import REPEATS, Line, Report, text

SETTINGS, POLICIES, TASKS, ROLLOUTS, DRAWS = 8, 4, 20, 9, 10_000
LIMIT = 2.0
"""Seconds on two cores."""


def measure() -> Report:
    """Seconds for all 32 intervals, and for the whole comparison."""
    rng = np.random.default_rng(0)
    success = rng.beta(1, 1, (SETTINGS, 1, TASKS, 1))
    values = (rng.random((SETTINGS, POLICIES, TASKS, ROLLOUTS)) < success).astype(np.float64)
    means = values.mean(axis=3)
    episodes = as_episodes(values)

    def ours() -> object:
        return [
            [bootstrap_t(arm, counts, support=(0, 1)) for arm in setting]
            for seed, setting in enumerate(means)
            for counts in [resample_counts(TASKS, DRAWS, seed)]
        ]

    def peer(method: str) -> object:
        return [
            bootstrap((arm,), np.mean, n_resamples=DRAWS, method=method, vectorized=True, rng=np.random.default_rng(0))
            for setting in means
            for arm in setting
        ]

    jobs: dict[str, Callable[[], object]] = {
        "ours": ours,
        "percentile": lambda: peer("percentile"),
        "BCa": lambda: peer("BCa"),
        "compare": lambda: compare(episodes, "policy 0", draws=DRAWS),
    }
    spent: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(REPEATS + 1):  # the first round warms up and does not count
        for name, job in jobs.items():
            began = perf_counter()
            job()
            spent[name].append(perf_counter() - began)
    middle = {name: median(seconds[1:]) for name, seconds in spent.items()}
    return Report(
        title="bootstrap",
        peer="scipy.stats.bootstrap",
        setup=f"{SETTINGS} settings, {POLICIES} policies, {TASKS} tasks, {ROLLOUTS} rollouts, {DRAWS:,} resamples of "
        f"tasks; the peer of the last line is the limit of {LIMIT:g} s; median of {REPEATS}",
        lines=(
            Line("32 intervals, beside percentile", "s", middle["ours"], middle["percentile"], None),
            Line("32 intervals, beside BCa", "s", middle["ours"], middle["BCa"], None),
            Line("the whole comparison, beside the limit", "s", middle["compare"], LIMIT, 1.0),
        ),
    )


def as_episodes(values: np.ndarray) -> pl.DataFrame:
    """The values (settings, policies, tasks, rollouts) as a frame of evaluation episodes."""
    rows = [
        {
            "setting": f"setting {s}",
            "arm": f"policy {a}",
            "task_id": f"task {k}",
            "task_hash": f"{s}-{k}",
            "rollout": r,
            "executor": "benchmark",
            "seed": 0,
            "eval_status": "scored",
            "return": values[s, a, k, r],
            "maturity": values[s, a, k, r] - values[s, 0, k, 0] / 2,
        }
        for s, a, k, r in product(*map(range, values.shape))
    ]
    return pl.DataFrame(rows)


if __name__ == "__main__":
    print(text(measure()))
