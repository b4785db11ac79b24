"""How the process did shift: each arm of an evaluation against the policy that collected, or against another arm."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

from analysis.evaluations import is_simulated
from analysis.frame import INFRA_MISSING, Frame
from analysis.shift import MEANS, STATISTICS, ShiftIntervals, process_statistics, task_sums
from analysis.statistics import Floats, Ints, ratio_task_values
from buffers import ReplayBuffer
from harness_mdp.errors import ConfigError

__all__ = ["BEHAVIOUR", "behaviour_episodes", "beside_predicted", "realised_shifts"]

BEHAVIOUR = "behaviour"
"""The reference when it is the policy that collected."""


def behaviour_episodes(buffer: ReplayBuffer, episodes: Frame) -> tuple[pl.DataFrame | None, str]:
    """The collected episodes that an evaluation is to be held against, and what has to be said about them.

    Those on the evaluated tasks where each of these has some; else all that the same executor gave in the setting,
    with a remark; None where there are none.

    Args:
        buffer: where was collected.
        episodes: of an evaluation.
    """
    evaluated = _polars(episodes)
    settings, executors = (evaluated[name].unique().sort().to_list() for name in ("setting", "executor"))
    collected = buffer.episodes_df(phase="collect", setting=settings, executor=executors)
    if collected.is_empty():
        return None, "the buffer holds no collected episodes of this executor, so shifts are told against an arm"
    tasks = evaluated["task_hash"].unique()
    same = collected.filter(pl.col("task_hash").is_in(tasks.implode()))
    if same["task_hash"].n_unique() == len(tasks):
        return same, ""
    return collected, (
        f"the behaviour policy was not run on all evaluated tasks; shifts are against its {len(collected)} collected "
        f"episodes of {collected['task_hash'].n_unique()} tasks, so they hold the difference between the tasks too"
    )


def realised_shifts(
    episodes: Frame,
    reference: Frame | str = "base",
    *,
    preset: str = "strict",
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """What moved between the reference and each arm.

    Args:
        episodes: of an evaluation, one row an episode with its `arm`; `infra_missing` ones are left out.
        reference: the behaviour policy's episodes (see `behaviour_episodes`), on the same tasks or on others; or the
            name of an arm.
        preset: of maturity; the same as in the prediction.
        level: of the intervals.
        draws: resamples of tasks.
        seed: of the resamples.

    Returns:
        One row a setting, arm and statistic: `setting arm reference statistic rate reference_rate realised low high
        n_tasks n_applicable n_applicable_reference note simulated`. Quality and maturity weigh tasks equally, events
        are rates among applicable episodes; `n_tasks` counts the tasks of either side. Tasks are resampled with all
        they have on both sides: a task of both makes a paired difference, tasks of one side alone an unpaired one.

    Raises:
        ConfigError: no finished episode, no such arm, or no reference in a setting.
        HarnessError: as `analysis.frame.evaluation_frame`.
    """
    own = _polars(episodes).filter(pl.col("eval_status") != INFRA_MISSING)
    arms: list[str] = own["arm"].unique(maintain_order=True).to_list()
    if isinstance(reference, str):
        name, other = reference, own.filter(pl.col("arm") == reference)
        arms = [arm for arm in arms if arm != reference]
    else:
        name, other = BEHAVIOUR, _polars(reference)
    intervals = ShiftIntervals(level, draws, seed)
    rows: list[dict[str, object]] = []
    for setting in own["setting"].unique(maintain_order=True):
        base = other.filter(pl.col("setting") == setting)
        if base.is_empty():
            raise ConfigError(f"setting {setting} has no finished episodes of the reference {name}")
        for arm in arms:
            here = own.filter((pl.col("setting") == setting) & (pl.col("arm") == arm))
            if len(here):
                about = {"setting": setting, "arm": arm, "reference": name}
                rows += [about | row for row in _rows(here, base, preset, intervals)]
    if not rows:
        raise ConfigError(f"there are no finished episodes of an arm to hold against {name}")
    return pd.DataFrame(rows).assign(simulated=is_simulated(own))


def beside_predicted(realised: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """`realised_shifts` with a column `predicted_<by>` for each weighting, NaN where nothing was predicted.

    Args:
        realised: of `realised_shifts`.
        predicted: rows of `predicted_shifts` with a column `arm`; several of an arm (training seeds) are averaged.
    """
    joined, told = pl.from_pandas(realised), pl.from_pandas(predicted)
    for by in told["by"].unique(maintain_order=True):
        own = told.filter(pl.col("by") == by).group_by("arm", "statistic")
        mean = own.agg(pl.col("predicted").cast(pl.Float64).fill_nan(None).mean().alias(f"predicted_{by}"))
        joined = joined.join(mean, on=["arm", "statistic"], how="left", maintain_order="left")
    return joined.to_pandas()


def _polars(frame: Frame) -> pl.DataFrame:
    return frame if isinstance(frame, pl.DataFrame) else pl.from_pandas(frame)


def _rows(own: pl.DataFrame, base: pl.DataFrame, preset: str, intervals: ShiftIntervals) -> list[dict[str, object]]:
    """The statistics of one setting and arm."""
    held = pl.concat([frame.select("task_id", "task_hash") for frame in (own, base)])
    tasks = held.unique().sort("task_id", "task_hash").with_row_index("place")  # the order in which `compare` resamples
    task = held.join(tasks, on=held.columns, how="left", maintain_order="left")["place"].to_numpy().astype(np.int64)
    n_tasks = len(tasks)
    sides = [
        (process_statistics(own, preset), task[: len(own)]),
        (process_statistics(base, preset), task[len(own) :]),
    ]
    rows: list[dict[str, object]] = []
    for index, name in enumerate(STATISTICS):
        (rate, n_own), (reference_rate, n_base) = (
            _task_values(name, statistics[:, index], at, n_tasks) for statistics, at in sides
        )
        row: dict[str, object] = {
            "statistic": name,
            "rate": float(rate.mean()),
            "reference_rate": float(reference_rate.mean()),
            "realised": float((rate - reference_rate).mean()),
            "low": np.nan,
            "high": np.nan,
            "n_tasks": n_tasks,
            "n_applicable": n_own,
            "n_applicable_reference": n_base,
        }
        if n_own and n_base:
            row |= intervals.of(rate - reference_rate, name)
        else:
            row["note"] = "never applicable" if n_own == n_base else "never applicable on one side"
        rows.append(row)
    return rows


def _task_values(name: str, values: Floats, task: Ints, n_tasks: int) -> tuple[Floats, int]:
    """(n_tasks,) values whose mean is the statistic, and the number of episodes that have it.

    A task without any has the mean itself, so that it moves nothing and lends no precision.
    """
    known = ~np.isnan(values)
    total = task_sums(values[known], task[known], n_tasks)
    count = task_sums(np.ones(int(known.sum())), task[known], n_tasks)
    if name in MEANS:
        total, count = total / np.maximum(count, 1.0), (count > 0).astype(np.float64)
    return ratio_task_values(total, count), int(known.sum())
