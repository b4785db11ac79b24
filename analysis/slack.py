"""What a buffer could teach at most, against what was gained: slack on the collected tasks, gain on held-out ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

from analysis.comparison import compare
from analysis.evaluations import Sources, evaluation_episodes, open_buffers
from analysis.main_table import BASE
from buffers import ReplayBuffer
from controllers.slack import measure_slack
from harness_mdp.errors import UnusableBuffer

__all__ = ["slack_against_gain"]


def slack_against_gain(sources: Sources, reference: str = BASE, *, draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Slack of the collected training episodes beside the gain in quality of each arm, setting by setting.

    Slack is the mean over tasks of the best return less the mean return. The best of several rollouts is partly luck
    of the executor, so slack bounds from above what reweighting those episodes can give.

    Args:
        sources: buffers that hold both collected and evaluation episodes, one or several.
        reference: the arm that gains are taken to.
        draws: resamples of tasks.
        seed: of resamples and sign flips.

    Returns:
        One row a setting and arm but the reference: `setting arm slack n_tasks_collected n_episodes_collected
        n_tasks_contrast gain ci_low ci_high p n_tasks simulated`. `n_tasks_contrast` counts the collected tasks whose
        rollouts differ in return.

    Raises:
        UnusableBuffer: a buffer without collected episodes, or with those of several executors in one setting.
        HarnessError: as `evaluation_episodes` and `compare`.
    """
    buffers = open_buffers(sources)
    comparison = compare(evaluation_episodes(buffers), reference, outcomes=["quality"], draws=draws, seed=seed)
    gains = pl.from_pandas(comparison.rows).filter(pl.col("arm") != reference)
    slack = pl.DataFrame([row for buffer in buffers for row in _slack(buffer)])
    joined = gains.join(slack, on="setting", how="inner", maintain_order="left")
    if joined.is_empty():
        raise UnusableBuffer(
            f"episodes were collected in {', '.join(slack['setting'])} and evaluated in "
            f"{', '.join(gains['setting'].unique())}; slack and gain need the same setting"
        )
    about = ["slack", "n_tasks_collected", "n_episodes_collected", "n_tasks_contrast"]
    table = joined.select("setting", "arm", *about, pl.col("delta").alias("gain"), "ci_low", "ci_high", "p", "n_tasks")
    return table.with_columns(simulated=pl.lit(comparison.simulated)).to_pandas()


def _slack(buffer: ReplayBuffer) -> list[dict[str, object]]:
    """One row a setting."""
    collected = buffer.read(["setting", "executor", "task_hash", "return"], phase="collect", split="train")
    if collected.is_empty():
        raise UnusableBuffer(f"{buffer.path}: no collected training episodes, so there is no slack. Collect first")
    rows: list[dict[str, object]] = []
    for episodes in collected.sort("setting").partition_by("setting", maintain_order=True):
        setting, executors = episodes["setting"][0], episodes["executor"].unique().sort().to_list()
        if len(executors) > 1:
            raise UnusableBuffer(
                f"{buffer.path}: setting {setting} was collected with {len(executors)} executors "
                f"({'; '.join(executors)}), whose luck is not one slack. Collect each into a buffer of its own"
            )
        tasks = episodes["task_hash"].rank("dense").to_numpy().astype(np.int64)
        found = measure_slack(episodes["return"].cast(pl.Float64).to_numpy(), tasks)
        rows.append(
            {
                "setting": setting,
                "slack": found.slack,
                "n_tasks_collected": found.n_tasks,
                "n_episodes_collected": found.n_episodes,
                "n_tasks_contrast": found.n_contrast,
            }
        )
    return rows
