"""Evaluation episodes of buffers or frames as one checked table: what every analysis of this package starts from.

Which arm an episode belongs to is in the plan that an evaluation leaves beside the buffer; so is what was planned and
has no episode, which is `infra_missing`. A buffer without such plans (imported, or older) has the policy as arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack, cast

import pandas as pd
import polars as pl

from analysis.frame import INFRA_MISSING, Frame, planned_episodes
from buffers import ReplayBuffer
from buffers.where import Narrower
from harness_mdp.errors import ConfigError, InputError, SchemaMismatch, UnusableBuffer
from harness_mdp.hashing import Json
from harness_mdp.settings.scripts import SCRIPTS

__all__ = ["Source", "Sources", "evaluation_episodes", "finished", "is_simulated", "open_buffers", "require_tasks"]

Source = Frame | ReplayBuffer | str | Path
"""Episodes at hand, a buffer, or the path of one."""

Sources = Source | Sequence[Source]
"""One or several, such as the buffers of a sweep: their episodes are put together."""

_SIMULATED = "simulated"
_EVALUATE = "Evaluate policies into it first: python -m harness_mdp.evaluate"
_PLANNED = ("setting", "policy_fingerprint", "task_hash", "rollout", "seed", "executor", "horizon", "setting_version")


def evaluation_episodes(sources: Sources, **where: Unpack[Narrower]) -> pl.DataFrame:
    """One row an evaluation episode, with its `arm`; those that are planned and not there as `infra_missing`.

    Args:
        sources: buffers (paths too) or frames with the columns of `ReplayBuffer.episodes_df`, one or several.
        where: only these episodes, e.g. `seed=1` where an evaluation was made twice.

    Raises:
        InputError: no buffer at a path.
        ConfigError: no source, or frames without a needed column.
        UnusableBuffer: a buffer without evaluation episodes, or without a finished one.
        SchemaMismatch: episodes of several versions of a setting, or of several feature schemas under one.
    """
    frames = [_episodes(source, where) for source in _listed(sources)]
    if not frames:
        raise ConfigError("no buffer and no episodes were given; expected at least one")
    table = pl.concat(frames, how="diagonal_relaxed")
    if table.is_empty():
        raise UnusableBuffer(f"there are no evaluation episodes{_said(where)}. {_EVALUATE}")
    _refuse_mixtures(table)
    finished(table)
    return table


def finished(episodes: pl.DataFrame) -> pl.DataFrame:
    """Those that have a return.

    Raises:
        UnusableBuffer: none has.
    """
    done = episodes.filter((pl.col("eval_status") != INFRA_MISSING) & pl.col("return").is_not_null())
    if done.is_empty():
        raise UnusableBuffer(
            f"all {len(episodes)} episodes are {INFRA_MISSING}: every attempt failed for reasons outside the agent, so "
            "there is no return to analyse. See attempts.sqlite in the buffer's _harness folder for why, and run the "
            "same command again"
        )
    return done


def require_tasks(episodes: pl.DataFrame, what: str) -> None:
    """Refuses what cannot be resampled.

    Raises:
        UnusableBuffer: fewer than two tasks.
    """
    tasks = episodes["task_id"].n_unique()
    if tasks < 2:
        raise UnusableBuffer(
            f"{what}: {tasks} task; intervals resample tasks and need at least two (20 or more to mean something). "
            "Evaluate more tasks"
        )


def is_simulated(episodes: pl.DataFrame) -> bool:
    """Some episode was made with a simulated executor; titles say so."""
    return bool(episodes["executor"].cast(pl.String).str.starts_with(_SIMULATED).any())


def open_buffers(sources: Sources) -> list[ReplayBuffer]:
    """The buffers of `sources`, for what is stored in steps.

    Raises:
        ConfigError: a frame among them, or none.
    """
    listed = _listed(sources)
    if not listed:
        raise ConfigError("no buffer was given; expected at least one")
    if any(isinstance(source, pd.DataFrame | pl.DataFrame) for source in listed):
        raise ConfigError(
            "this analysis reads steps, which a frame of episodes does not hold; give a buffer or its path"
        )
    return [s if isinstance(s, ReplayBuffer) else ReplayBuffer(cast("str | Path", s)) for s in listed]


def _listed(sources: Sources) -> list[Source]:
    if isinstance(sources, str | Path | ReplayBuffer | pd.DataFrame | pl.DataFrame):
        return [sources]
    return list(sources)


def _episodes(source: Source, where: Narrower) -> pl.DataFrame:
    if isinstance(source, pd.DataFrame):
        source = pl.from_pandas(source)
    if isinstance(source, pl.DataFrame):
        return _of_frame(source, where)
    buffer = source if isinstance(source, ReplayBuffer) else ReplayBuffer(source)
    if not buffer.stats.episodes and not buffer.harness.attempts():
        raise UnusableBuffer(f"{buffer.path}: the buffer holds no episodes. Collect and evaluate first")
    plans = [plan for run in buffer.harness.runs().values() if (plan := run.get("resolved", {}).get("plan"))]
    table = _of_plans(buffer, plans, where) if plans else _by_policy(buffer, where)
    if table.is_empty():
        raise UnusableBuffer(f"{buffer.path}: the buffer holds no evaluation episodes{_said(where)}. {_EVALUATE}")
    return table


def _of_frame(table: pl.DataFrame, where: Narrower) -> pl.DataFrame:
    needed = ["task_id", "executor", "eval_status", "return"]
    missing = [name for name in (*needed, *where) if name not in table.columns]
    if missing or not {"arm", "policy"} & set(table.columns):
        raise ConfigError(
            f"the episodes have no column {', '.join(missing) or 'arm (or policy)'}; expected the columns of a "
            "buffer's episodes_df()"
        )
    if "arm" not in table.columns:
        table = table.with_columns(arm=pl.col("policy").cast(pl.String))
    if "phase" in table.columns:
        table = table.filter(pl.col("phase").is_in(["eval", "import"]) | pl.col("phase").is_null())
    return _narrowed(table, where)


def _narrowed(table: pl.DataFrame, where: Narrower) -> pl.DataFrame:
    for name, wanted in where.items():
        values = [wanted] if isinstance(wanted, str | int) else list(cast("Sequence[str | int]", wanted))
        table = table.filter(pl.col(name).is_in(values))
    return table


def _by_policy(buffer: ReplayBuffer, where: Narrower) -> pl.DataFrame:
    """Without a plan: what is there, and the attempts at evaluation episodes that never came to be."""
    found = buffer.episodes_df(phase="eval", **where)
    scripts = {name: at for at, name in enumerate(SCRIPTS)}
    rank = pl.col("policy").replace_strict(scripts, default=len(scripts), return_dtype=pl.Int64)
    table = found.sort("setting", rank, maintain_order=True).with_columns(arm=pl.col("policy").cast(pl.String))
    lost = buffer.infra_missing()
    attempts = {a.episode_id: a for a in buffer.harness.attempts() if a.run.startswith("eval") and a.episode_id in lost}
    if not attempts or where:
        return table
    rows = [
        {"episode_id": a.episode_id, "setting": a.setting, "arm": a.policy, "policy": a.policy, "rollout": a.rollout}
        | {"task_id": a.task_id, "run": a.run, "phase": "eval", "eval_status": INFRA_MISSING}
        for a in attempts.values()
    ]
    return pl.concat([table, pl.DataFrame(rows)], how="diagonal_relaxed")


def _of_plans(buffer: ReplayBuffer, plans: Sequence[Mapping[str, Json]], where: Narrower) -> pl.DataFrame:
    planned = pl.concat([_planned(plan, buffer.path) for plan in plans], how="diagonal_relaxed").unique(
        maintain_order=True
    )
    found = buffer.episodes_df(policy_fingerprint=planned["policy_fingerprint"].unique().to_list())
    planned = _named_apart(planned).with_columns(pl.col(name).cast(found.schema[name]) for name in _PLANNED)
    return _narrowed(planned_episodes(planned, found, on=_PLANNED), where)


def _planned(plan: Mapping[str, Json], path: str) -> pl.DataFrame:
    try:
        shared = {key: plan[key] for key in ("setting", "executor", "seed", "horizon")}
        shared |= {key: plan[key] for key in ("setting_version", "token_budget", "usd_budget")}
        rows = [
            {"arm": arm["name"], "learner": arm["learner"], "policy_fingerprint": member["policy_fingerprint"]}
            | {"task_id": task, "task_hash": held, "rollout": rollout, **shared}
            for arm in plan["arms"]
            for member in arm["members"]
            for rollout in member["rollouts"]
            for task, held in plan["tasks"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the plan of an evaluation cannot be read ({error!r})",
            file=f"{path}/_harness/runs",
            remedy="Evaluate again, or restore the file",
        ) from error
    types = {"learner": pl.String, "token_budget": pl.Int64, "usd_budget": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)


def _named_apart(planned: pl.DataFrame) -> pl.DataFrame:
    """Two evaluations may call different learners by one name; then their keys stand beside it."""
    several = pl.col("learner").n_unique().over("setting", "arm") > 1
    keyed = pl.format("{} ({})", "arm", pl.col("learner").fill_null("script").str.head(6))
    return planned.with_columns(arm=pl.when(several).then(keyed).otherwise("arm"))


def _refuse_mixtures(table: pl.DataFrame) -> None:
    setting = "setting" if "setting" in table.columns else None
    groups = [table] if setting is None else table.partition_by(setting, maintain_order=True)
    for rows in groups:
        name = f"setting {rows[setting][0]}" if setting else "the episodes"
        for column, what in (("setting_version", "setting"), ("feature_schema_id", "features")):
            if column not in rows.columns:
                continue
            counts = rows.drop_nulls(column).group_by(column).len().sort(column)
            if len(counts) > 1:
                found = ", ".join(f"{n} of {value}" for value, n in counts.iter_rows())
                raise SchemaMismatch(
                    f"{name}: episodes of {len(counts)} versions of the {what} ({column}: {found}); figures of two "
                    "versions are not one figure. Choose one with setting_version=, or evaluate into a new buffer"
                )


def _said(where: Narrower) -> str:
    return " with " + ", ".join(f"{key}={value}" for key, value in where.items()) if where else ""
