"""How far maturity depends on the thresholds of EarlySubmit: scored again for each.

The clauses that read these thresholds read Q or the criteria, so they exist in preset `paper` only; `strict`, which
reads neither, stands beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import polars as pl

from analysis.comparison import compare
from analysis.evaluations import Sources, evaluation_episodes, open_buffers
from analysis.main_table import BASE
from analysis.rejudging import judged
from harness_mdp.errors import ConfigError
from harness_mdp.scoring.maturity import MaturityConfig, MaturityEvent

__all__ = ["THRESHOLDS", "early_submit_sensitivity"]

THRESHOLDS: Mapping[str, Sequence[float]] = {
    "early_share": (0.15, 0.25, 0.35, 0.45),
    "missed_share": (0.25, 0.5, 0.75),
}
"""Field of `MaturityConfig` -> values, with the preset's (0.25 and 0.5) among them. `early_share` is the share of H
below which a poor submission is early, `missed_share` the share of missed criteria from which any is."""


def early_submit_sensitivity(
    sources: Sources,
    thresholds: Mapping[str, Sequence[float]] = THRESHOLDS,
    reference: str = BASE,
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Maturity of every arm beside `reference` under each threshold of EarlySubmit, and under preset `strict`.

    One threshold moves at a time, from preset `paper`. Nothing is written: stored events are judged again in memory.

    Args:
        sources: buffers, one or several; a frame of episodes does not hold events.
        thresholds: values of fields of `MaturityConfig`.
        reference: the arm that differences are taken to.
        draws: resamples of tasks.
        seed: of resamples and sign flips.

    Returns:
        One row a setting, threshold, value and arm: `setting preset threshold value arm mean mean_low mean_high delta
        ci_low ci_high p early_submit_rate n_tasks n_episodes simulated`. `threshold` is empty and `value` NaN for
        `strict`. `early_submit_rate` is over the episodes that submitted.

    Raises:
        ConfigError: no threshold, an unknown one, or a value out of range.
        HarnessError: as `evaluation_episodes` and `compare`.
    """
    cells = [(name, value) for name, values in thresholds.items() for value in values]
    if not cells:
        raise ConfigError("no threshold to score with; give for example {'early_share': (0.25, 0.35)}")
    if unknown := sorted(set(thresholds) - _OF_EARLY_SUBMIT):
        raise ConfigError(
            f"{', '.join(unknown)}: no threshold of EarlySubmit; expected one of {', '.join(sorted(_OF_EARLY_SUBMIT))}"
        )
    buffers = open_buffers(sources)
    episodes = evaluation_episodes(buffers)
    paper = MaturityConfig.paper()
    configs = [(name, value, replace(paper, **{name: value})) for name, value in cells]
    tables = [
        _table(judged(buffers, episodes, config), config, reference, draws, seed).with_columns(
            threshold=pl.lit(name), value=pl.lit(value, pl.Float64)
        )
        for name, value, config in (*configs, ("", float("nan"), MaturityConfig.strict()))
    ]
    shown = ["setting", "preset", "threshold", "value", "arm", "mean", "mean_low", "mean_high", "delta", "ci_low"]
    table = pl.concat(tables).select(*shown, "ci_high", "p", "early_submit_rate", "n_tasks", "n_episodes", "simulated")
    return pl.concat(table.partition_by("setting", maintain_order=True)).to_pandas()


_OF_EARLY_SUBMIT = frozenset({"early_share", "early_quality", "missed_criterion", "missed_share", "early_pass_rate"})


def _table(episodes: pl.DataFrame, config: MaturityConfig, reference: str, draws: int, seed: int) -> pl.DataFrame:
    comparison = compare(episodes, reference, outcomes=["maturity"], preset=config.preset, draws=draws, seed=seed)
    early = pl.col(MaturityEvent.EARLY_SUBMIT.value).cast(pl.Float64).mean().alias("early_submit_rate")
    rates = episodes.group_by("setting", "arm").agg(early)
    rows = pl.from_pandas(comparison.rows).join(rates, on=["setting", "arm"], how="left", maintain_order="left")
    return rows.with_columns(preset=pl.lit(config.preset), simulated=pl.lit(comparison.simulated))
