"""What a command says at its end: episodes by status, mean return, slack, action coverage, where things are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import polars as pl

from buffers import ReplayBuffer
from controllers.slack import measure_slack
from harness_mdp.mdp import ACTIONS, EvalStatus

__all__ = ["BufferSummary", "summarise"]


@dataclass(frozen=True)
class BufferSummary:
    """Figures over a set of episodes of one buffer."""

    episodes: int
    tasks: int
    scored: int
    invalid: int
    mean_return: float
    """Tasks weigh equally."""
    slack: float | None
    """As training measures it (`measure_slack`); None when no task has two episodes."""
    mean_steps: float
    tokens: int
    cost_usd: float | None
    coverage: dict[str, float]
    """Structural action -> share of the steps where it was legal that took it."""


def summarise(buffer: ReplayBuffer, ids: Collection[str]) -> BufferSummary | None:
    """Figures over the episodes of `ids` that are in the buffer; None when there are none."""
    if not buffer.exists:
        return None
    columns = ["task_hash", "eval_status", "return", "tokens", "cost_usd", "steps.action", "steps.mask"]
    rows = buffer.read(columns, episode_id=list(ids)).rename({"steps.action": "action", "steps.mask": "mask"})
    if rows.is_empty():
        return None
    per_task = rows.group_by("task_hash").agg(pl.col("return").mean().alias("mean"))
    slack = measure_slack(rows["return"].to_numpy(), rows["task_hash"].rank("dense").to_numpy().astype(np.int64))
    status = rows["eval_status"]
    return BufferSummary(
        episodes=len(rows),
        tasks=len(per_task),
        scored=int((status == EvalStatus.SCORED.value).sum()),
        invalid=int((status == EvalStatus.INVALID.value).sum()),
        mean_return=float(per_task["mean"].to_numpy().mean()),
        slack=slack.slack if slack.n_single < slack.n_tasks else None,
        mean_steps=float(rows["action"].list.len().to_numpy().mean()),
        tokens=int(rows["tokens"].sum()),
        cost_usd=None if rows["cost_usd"].null_count() else float(rows["cost_usd"].sum()),
        coverage=_coverage(rows),
    )


def _coverage(rows: pl.DataFrame) -> dict[str, float]:
    actions = rows["action"].explode().drop_nulls().to_numpy()
    masks = np.array(rows["mask"].explode().drop_nulls().to_list(), dtype=np.bool_)
    if len(actions) == 0:
        return {}
    taken = np.bincount(actions, minlength=len(ACTIONS))
    legal = masks.sum(axis=0)
    return {a.label: float(taken[a] / legal[a]) for a in ACTIONS if legal[a]}
