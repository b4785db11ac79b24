"""Finished evaluation episodes as the one table that the analysis reads, whatever frame they come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pandas as pd
import polars as pl

from harness_mdp.errors import ConfigError, InputError
from harness_mdp.mdp import EvalStatus

__all__ = ["INFRA_MISSING", "MANIFEST_COLUMNS", "PAIR", "Frame", "evaluation_frame", "planned_episodes"]

Frame = pd.DataFrame | pl.DataFrame

INFRA_MISSING = "infra_missing"
"""`eval_status` of an evaluation that has failed attempts only: no return, counted apart. Never in a buffer."""

PAIR = ("task_id", "rollout")
"""What arms are matched on."""

MANIFEST_COLUMNS = (
    "task_hash",
    "executor",
    "seed",
    "setting_version",
    "horizon",
    "token_budget",
    "usd_budget",
)
"""What has to be the same for two episodes of a pair to share their draws; the last four where present, and not
asked of an episode that is `infra_missing`, which has no draws."""

VERDICTS = pl.List(pl.Struct({"preset": pl.String, "event": pl.String, "applicable": pl.Boolean, "fired": pl.Boolean}))

_REQUIRED = ("task_id", "task_hash", "rollout", "executor", "seed", "eval_status", "return")
_STATUSES = (*(status.value for status in EvalStatus), INFRA_MISSING)


def evaluation_frame(episodes: Frame, *, preset: str = "paper") -> pl.DataFrame:
    """The columns that a comparison reads, checked.

    Args:
        episodes: one row an episode, as a buffer's `episodes_df()` or its stored columns. `arm` names the arm;
            without it `policy` does. HMS is in `maturity_<preset>`, in `maturity` (a number, or structs of preset
            and score), or left out; `maturity_events` may be left out. Rows with `eval_status` `infra_missing`
            have no return.
        preset: maturity preset to read where several are stored.

    Returns:
        `setting` (empty where there was none), `arm`, `policy`, `task_id`, `rollout`, the manifest columns,
        `eval_status`, `return` (Float64, null for infra_missing), `maturity` (Float64, null where there is none),
        `verdicts` (list of `maturity_events` structs of the preset).

    Raises:
        ConfigError: a column is missing, or no row.
        InputError: a row that contradicts itself, by episode and field.
    """
    table = _polars(episodes)
    missing = [name for name in _REQUIRED if name not in table.columns]
    if "arm" not in table.columns and "policy" not in table.columns:
        missing.append("arm (or policy)")
    if missing:
        raise ConfigError(
            f"the episodes have no column {', '.join(missing)}; expected the columns of a buffer's episodes_df()"
        )
    if "setting" in table.columns and table["setting"].null_count():
        raise ConfigError(f"{table['setting'].null_count()} of {len(table)} episodes name no setting")
    if table.is_empty():
        raise ConfigError("there are no episodes to compare; evaluate policies first")
    arm = "arm" if "arm" in table.columns else "policy"
    frame = table.select(
        (pl.col("setting") if "setting" in table.columns else pl.lit("")).alias("setting"),
        pl.col(arm).cast(pl.String).alias("arm"),
        pl.col("policy" if "policy" in table.columns else arm).cast(pl.String).alias("policy"),
        *PAIR,
        *(name for name in MANIFEST_COLUMNS if name in table.columns),
        "eval_status",
        pl.col("return").cast(pl.Float64).fill_nan(None),
        _maturity(table, preset),
        _verdicts(table, preset),
    )
    _refuse_contradictions(frame)
    return frame


def planned_episodes(planned: Frame, episodes: Frame, on: Sequence[str] = ("episode_id",)) -> pl.DataFrame:
    """Every planned episode, in order: the finished one where there is one, else with status `infra_missing`.

    A buffer holds finished episodes only; the plan of an evaluation says what else should be there, and which arm
    each belongs to.

    Args:
        planned: one row an episode, with `on` and what the plan says of it; this wins where `episodes` says it too.
        episodes: finished episodes, distinct in `on`.
        on: columns that tell which is which.
    """
    plan, found = _polars(planned), _polars(episodes)
    told = [name for name in found.columns if name not in plan.columns or name in on]
    joined = plan.join(found.select(told), on=list(on), how="left", maintain_order="left")
    return joined.with_columns(pl.col("eval_status").fill_null(INFRA_MISSING))


def _polars(frame: Frame) -> pl.DataFrame:
    return frame if isinstance(frame, pl.DataFrame) else pl.from_pandas(frame)


def _maturity(table: pl.DataFrame, preset: str) -> pl.Expr:
    if f"maturity_{preset}" in table.columns:  # as `episodes_df()` has it
        return pl.col(f"maturity_{preset}").cast(pl.Float64).fill_nan(None).alias("maturity")
    if "maturity" not in table.columns or table.schema["maturity"] == pl.Null:
        return pl.lit(None, pl.Float64).alias("maturity")
    if not isinstance(table.schema["maturity"], pl.List):
        return pl.col("maturity").cast(pl.Float64).fill_nan(None)
    of_preset = pl.col("maturity").list.filter(pl.element().struct.field("preset") == preset)
    return of_preset.list.first().struct.field("score").cast(pl.Float64).alias("maturity")


def _verdicts(table: pl.DataFrame, preset: str) -> pl.Expr:
    if "maturity_events" not in table.columns or table.schema["maturity_events"] == pl.Null:
        return pl.lit(None, VERDICTS).alias("verdicts")
    of_preset = pl.col("maturity_events").list.filter(pl.element().struct.field("preset") == preset)
    return of_preset.alias("verdicts")


def _refuse_contradictions(frame: pl.DataFrame) -> None:
    status, returned, maturity = pl.col("eval_status"), pl.col("return"), pl.col("maturity")
    finished = status != INFRA_MISSING
    rules: tuple[tuple[pl.Expr, str], ...] = (
        (~status.is_in(_STATUSES), f"an eval_status of {', '.join(_STATUSES)}"),
        (~finished & returned.is_not_null(), "no return for infra_missing"),
        (
            finished & ~returned.is_between(0, 1).fill_null(value=False),
            "a return in [0, 1] for every finished episode",
        ),
        ((status == EvalStatus.INVALID.value) & (returned != 0), "return 0 for an invalid episode"),
        (~maturity.is_between(-1, 1), "a maturity in [-1, 1]"),
    )
    for wrong, expected in rules:
        rows = frame.filter(wrong)
        if len(rows):
            row = cast("dict[str, object]", rows.row(0, named=True))
            raise InputError(
                f"arm {row['arm']}, task {row['task_id']}, rollout {row['rollout']}: eval_status "
                f"{row['eval_status']!r}, return {row['return']}, maturity {row['maturity']}",
                expected=expected,
            )
