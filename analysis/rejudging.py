"""Maturity of stored episodes under another configuration, in memory: analysis writes nothing into a buffer."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from buffers import ReplayBuffer
from buffers.maturity import judge_rows
from harness_mdp.scoring.maturity import MaturityConfig, MaturityEvent
from harness_mdp.settings import open_setting

__all__ = ["judged"]

_COLUMNS = ("episode_id", "setting", "horizon", "termination", "return", "rubric", "steps")


def judged(buffers: Sequence[ReplayBuffer], episodes: pl.DataFrame, config: MaturityConfig) -> pl.DataFrame:
    """`episodes` with `maturity_<preset>` as `config` has it, and one column a maturity event.

    Args:
        buffers: that hold their steps.
        episodes: with `episode_id`; those in none of the buffers get nulls.
        config: thresholds and weights.

    Raises:
        ConfigError: a setting that is not installed.
        InputError: an episode whose events contradict its termination or its horizon.
    """
    wanted = episodes["episode_id"].drop_nulls().unique()
    scores: list[pl.DataFrame] = []
    for buffer in buffers:
        rows = buffer.scan().select(_COLUMNS).filter(pl.col("episode_id").is_in(wanted.implode())).collect()
        if len(rows):
            scores.append(judge_rows(rows.to_arrow(), config, open_setting))
    events = [event.value for event in MaturityEvent]
    column = f"maturity_{config.preset}"
    bare = episodes.drop([column, *events, "maturity_events"], strict=False)
    found = pl.concat(scores).rename({"hms": column}).unique("episode_id", maintain_order=True)
    return bare.join(found, on="episode_id", how="left", maintain_order="left")
