"""What was collected: how good, how varied, how much there is to learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from analysis.report.sources import Source
from controllers.slack import Slack, measure_slack
from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import ACTIONS, EvalStatus

__all__ = ["Collected", "collected_of"]


@dataclass(frozen=True, slots=True)
class Collected:
    """The collected episodes of one setting, policy and executor in one buffer."""

    source: int
    setting: str
    policy: str
    executor: str
    episodes: int
    tasks: int
    invalid: int
    mean_return: float
    """Tasks weigh equally."""
    slack: Slack
    tokens: float
    """Mean an episode."""
    taken: dict[str, float]
    """Structural action -> mean times an episode."""


def collected_of(sources: Sequence[Source], steps: Sequence[pl.DataFrame]) -> tuple[Collected, ...]:
    """One entry a setting, policy and executor, in order of source and setting.

    Raises:
        UnusableBuffer: a single task was collected and nothing else is there.
    """
    found = [_summary(index, group, steps[index]) for index, source in enumerate(sources) for group in _groups(source)]
    if found and not any((s.episodes["phase"] == "eval").any() for s in sources) and all(c.tasks < 2 for c in found):
        raise UnusableBuffer(
            f"{sources[0].path}: the buffer holds episodes of one task only, and every figure of a report is a mean "
            "over tasks with an interval over tasks. Collect two tasks or more (20 or more to mean something)"
        )
    return tuple(found)


def _groups(source: Source) -> list[pl.DataFrame]:
    rows = source.episodes.filter(pl.col("phase") != "eval")
    return rows.partition_by("setting", "policy", "executor", maintain_order=True)


def _summary(index: int, rows: pl.DataFrame, steps: pl.DataFrame) -> Collected:
    tasks = rows["task_hash"].rank("dense").to_numpy().astype(np.int64)
    taken = dict(steps.join(rows, on="episode_id", how="semi")["action"].value_counts().iter_rows())
    per_task = rows.group_by("task_hash").agg(pl.col("return").mean())
    return Collected(
        source=index,
        setting=str(rows["setting"][0]),
        policy=str(rows["policy"][0]),
        executor=str(rows["executor"][0]),
        episodes=len(rows),
        tasks=len(per_task),
        invalid=int((rows["eval_status"] == EvalStatus.INVALID.value).sum()),
        mean_return=float(per_task["return"].to_numpy().mean()),
        slack=measure_slack(rows["return"].to_numpy(), tasks),
        tokens=float(rows["tokens"].to_numpy().mean()),
        taken={action.label: taken.get(int(action), 0) / len(rows) for action in ACTIONS},
    )
