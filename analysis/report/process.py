"""What the arms do, step by step: actions per episode, and whether the buffer knows the ground a learner walks on."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from analysis.report.evaluated import Evaluated
from analysis.report.sources import Source
from harness_mdp.mdp import ACTIONS

__all__ = ["MIN_TASKS", "MIN_VISITS", "SUPPORTED_SHARE", "ArmActions", "Support", "arm_actions", "steps_of", "support"]

MIN_VISITS = 20
MIN_TASKS = 5
SUPPORTED_SHARE = 0.95
"""A learner is weakly supported by cells when this share of its steps lies on cells with `MIN_VISITS` visits from
`MIN_TASKS` tasks (DESIGN section 11)."""


@dataclass(frozen=True, slots=True)
class ArmActions:
    """How often an arm takes each action."""

    label: str
    """Of the evaluation."""
    arm: str
    steps: float
    """Mean steps an episode."""
    per_episode: dict[str, float]
    """Structural action -> mean times an episode."""
    n_episodes: int


@dataclass(frozen=True, slots=True)
class Support:
    """Whether the collected episodes hold what a learner does, by cells of (what was legal, what base would do, the
    last action, the action).
    """

    label: str
    arm: str
    share: float | None
    """Of the learner's steps, those on cells that the buffer knows well; None when nothing was collected beside."""
    n_steps: int

    @property
    def enough(self) -> bool:
        """At least weakly supported."""
        return self.share is not None and self.share >= SUPPORTED_SHARE


def steps_of(source: Source) -> pl.DataFrame:
    """One row a step: episode_id, action, base_action, mask, last_action (null at the first step)."""
    nested = source.buffer.read(["episode_id", "steps.action", "steps.base_action", "steps.mask"])
    steps = (
        nested.rename({"steps.action": "action", "steps.base_action": "base_action", "steps.mask": "mask"})
        .filter(pl.col("action").list.len() > 0)
        .explode("action", "base_action", "mask")
    )
    bits = sum((pl.col("mask").list.get(i).cast(pl.Int64) * 2**i for i in range(len(ACTIONS))), pl.lit(0))
    return steps.with_columns(mask=bits, last_action=pl.col("action").shift(1).over("episode_id"))


def arm_actions(evaluation: Evaluated, steps: pl.DataFrame) -> tuple[ArmActions, ...]:
    """Every arm of an evaluation, in its order."""
    found: list[ArmActions] = []
    for arm in evaluation.arms:
        ids = _ids(evaluation, arm)
        taken = steps.join(ids, on="episode_id", how="semi")["action"].value_counts()
        counts = dict(taken.iter_rows())
        n = max(1, len(ids))
        per_episode = {action.label: counts.get(int(action), 0) / n for action in ACTIONS}
        found.append(ArmActions(evaluation.label, arm, sum(counts.values()) / n, per_episode, len(ids)))
    return tuple(found)


def support(evaluation: Evaluated, source: Source, steps: pl.DataFrame) -> tuple[Support, ...]:
    """Every learner of an evaluation against what was collected with the same executor in the same buffer."""
    collected = source.episodes.filter(
        (pl.col("phase") == "collect")
        & (pl.col("setting") == evaluation.setting)
        & (pl.col("executor") == evaluation.executor)
    ).select("episode_id", "task_hash")
    cell = ["mask", "base_action", "last_action", "action"]
    visits = steps.join(collected, on="episode_id").group_by(cell)
    cells = visits.agg(pl.len().alias("visits"), pl.col("task_hash").n_unique().alias("tasks"))
    known = cells.filter((pl.col("visits") >= MIN_VISITS) & (pl.col("tasks") >= MIN_TASKS))
    found: list[Support] = []
    for arm in evaluation.learners:
        own = steps.join(_ids(evaluation, arm), on="episode_id", how="semi")
        covered = own.join(known, on=cell, how="semi", nulls_equal=True)
        share = len(covered) / len(own) if len(collected) and len(own) else None
        found.append(Support(evaluation.label, arm, share, len(own)))
    return tuple(found)


def _ids(evaluation: Evaluated, arm: str) -> pl.DataFrame:
    own = evaluation.episodes.filter((pl.col("arm") == arm) & pl.col("return").is_not_null())
    return own.select("episode_id")
