"""Does working more maturely go with better results? The pooled correlation says yes too easily.

Settings differ in both, and so do policies: pooled over them, maturity and quality move together even where within one
setting and one policy they do not (in the paper 0.456 pooled, 0.183 within settings). So every correlation stands
beside those within, each with an interval over tasks, and none is taken with a maturity that reads Q.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import polars as pl

from analysis.correlation import correlation_within
from analysis.evaluations import Sources, evaluation_episodes, finished, is_simulated, open_buffers, require_tasks
from analysis.rejudging import judged
from analysis.statistics import Ints
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.scoring.maturity import PRESETS, MaturityConfig

__all__ = ["SCOPES", "maturity_against_quality", "maturity_and_quality"]

SCOPES: dict[str, tuple[str, ...]] = {
    "pooled": (),
    "within setting": ("setting",),
    "within policy": ("arm",),
    "within setting and policy": ("setting", "arm"),
    "within setting, policy and task": ("setting", "arm", "task_id"),
}
"""What a correlation takes out: the means of these groups."""

_STRICT = PRESETS["strict"]


def maturity_and_quality(sources: Sources, config: MaturityConfig = _STRICT) -> pl.DataFrame:
    """The finished episodes with `setting`, `arm`, `task_id`, `quality` and `maturity`: what the correlations read.

    Args:
        sources: see `evaluation_episodes`; buffers for another configuration than the preset, which is stored.
        config: of maturity.

    Raises:
        ConfigError: a config that reads Q, or a frame without scores of the preset.
        UnusableBuffer: no episode has both.
        HarnessError: as `evaluation_episodes`.
    """
    if config.early_reads_quality:
        raise ConfigError(
            f"maturity {config.preset!r} reads quality in EarlySubmit, so that quality would be correlated with "
            "itself; use preset strict, or a config with early_reads_quality=False"
        )
    episodes = evaluation_episodes(sources)
    column = f"maturity_{config.preset}"
    if config.hash != _STRICT.hash:
        episodes = judged(open_buffers(sources), episodes, config)
    if column not in episodes.columns:
        raise ConfigError(
            f"the episodes have no column {column}; expected the columns of a buffer's episodes_df(), for episodes "
            "that were stored with their maturity"
        )
    if "setting" not in episodes.columns:
        episodes = episodes.with_columns(setting=pl.lit(""))
    done = finished(episodes).select(
        "setting",
        "arm",
        "task_id",
        "executor",
        quality=pl.col("return").cast(pl.Float64),
        maturity=pl.col(column).cast(pl.Float64),
    )
    known = done.filter(pl.col("maturity").is_not_null() & pl.col("maturity").is_not_nan())
    if known.is_empty():
        raise UnusableBuffer(f"none of {len(done)} episodes has a maturity of preset {config.preset}: no event applied")
    return known


def maturity_against_quality(
    sources: Sources, config: MaturityConfig = _STRICT, *, level: float = 0.95, draws: int = 2_000, seed: int = 0
) -> pd.DataFrame:
    """Correlation of maturity and quality: pooled, within settings, within policies, and in each of them alone.

    Args:
        sources: see `evaluation_episodes`.
        config: of maturity; it may not read Q.
        level: of the intervals.
        draws: resamples of tasks, drawn within their setting.
        seed: of the resamples.

    Returns:
        One row a scope, then one a setting, a policy, and each policy in each setting: `scope setting arm r low high
        n_tasks n_episodes note simulated`; `setting` and `arm` are empty where a row is about all. Tasks weigh
        equally. r is NaN, and `note` says so, where one of the two does not vary; the interval alone where it does
        not in more than a twentieth of the resamples.

    Raises:
        HarnessError: as `maturity_and_quality`; UnusableBuffer also for a setting with a single task.
    """
    table = maturity_and_quality(sources, config)
    for rows in table.partition_by("setting"):
        require_tasks(rows, f"setting {rows['setting'][0]}" if rows["setting"][0] else "the episodes")
    simulated = is_simulated(table)
    found = [
        {"scope": scope, "setting": setting, "arm": arm} | _row(rows, within, level, draws, seed)
        for scope, setting, arm, rows, within in _parts(table)
    ]
    return pd.DataFrame(found).assign(simulated=simulated)


def _parts(table: pl.DataFrame) -> Iterator[tuple[str, str, str, pl.DataFrame, Sequence[str]]]:
    settings = table["setting"].unique(maintain_order=True).to_list()
    arms = table["arm"].unique(maintain_order=True).to_list()
    for scope, within in SCOPES.items():
        yield scope, "", "", table, within
    for setting in settings:
        yield "setting", setting, "", table.filter(pl.col("setting") == setting), ()
    for arm in arms:
        yield "policy", "", arm, table.filter(pl.col("arm") == arm), ("setting",)
    for setting in settings:
        for arm in arms:
            rows = table.filter((pl.col("setting") == setting) & (pl.col("arm") == arm))
            if rows["task_id"].n_unique() > 1:
                yield "setting and policy", setting, arm, rows, ()


def _row(rows: pl.DataFrame, within: Sequence[str], level: float, draws: int, seed: int) -> dict[str, object]:
    task = _index(rows, ("setting", "task_id"))
    found = correlation_within(
        rows["maturity"].to_numpy(),
        rows["quality"].to_numpy(),
        group=_index(rows, within),
        task=task,
        stratum=_index(rows, ("setting",)),
        level=level,
        draws=draws,
        seed=seed,
    )
    note = ""
    if np.isnan(found.r):
        flat = [name for name in ("maturity", "quality") if rows[name].n_unique() == 1]
        note = f"{' and '.join(flat) or 'one of the two'} does not vary"
    elif found.undefined > 0:
        note = f"undefined in {found.undefined:.1%} of the resamples"
    return {
        "r": found.r,
        "low": found.low,
        "high": found.high,
        "n_tasks": int(task.max()) + 1,
        "n_episodes": len(rows),
        "note": note,
    }


def _index(rows: pl.DataFrame, columns: Sequence[str]) -> Ints:
    """(m,) dense index of the combinations of `columns`, from 0."""
    if not columns:
        return np.zeros(len(rows), dtype=np.int64)
    return (rows.select(pl.struct(columns).rank("dense")).to_series().to_numpy() - 1).astype(np.int64)
