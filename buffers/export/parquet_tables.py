"""Flat Parquet tables, joined by `episode_id`.

A buffer is nested Parquet already: one row an episode with its steps inside, which any Delta reader opens. What is
missing for SQL, R, spreadsheets and data frames is the same without structs, so that is what this writes: six tables of
plain columns. Only vectors (features, mask, propensities) and lists of texts (evidence, problems, claims) stay lists.
Nothing is left out, and text is as stored: an unpaired surrogate is U+001A and four hex digits.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import polars as pl
import pyarrow as pa

from buffers.schema import FLAT_COLUMNS
from harness_mdp.hashing import Json
from harness_mdp.mdp import ACTIONS
from harness_mdp.settings.protocol import Setting

__all__ = ["write_parquet"]


def write_parquet(
    rows: pa.Table, folder: Path, *, card: Mapping[str, Json], open_setting: Callable[[str], Setting]
) -> tuple[str, ...]:
    """Writes `episodes`, `steps`, `artifacts`, `rubric`, `maturity`, `maturity_events`, each `.parquet`."""
    del card, open_setting
    frame = cast("pl.DataFrame", pl.from_arrow(rows))
    tables = {
        "episodes": frame.select(*FLAT_COLUMNS, n_steps=pl.col("steps").list.len()),
        "steps": _steps(frame),
        "artifacts": _children(frame, "artifacts"),
        "rubric": _children(frame, "rubric").rename({"id": "criterion"}),
        "maturity": _children(frame, "maturity").rename({"score": "hms"}),
        "maturity_events": _children(frame, "maturity_events"),
    }
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet", compression="zstd")
    return (
        f"tables: {', '.join(f'{name} ({table.height})' for name, table in tables.items())}",
        "join on episode_id; polars, pandas, DuckDB or R read each .parquet by itself",
    )


def _children(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """One row for each struct in a list column, with the episode's id."""
    exploded = frame.select("episode_id", column).explode(column, empty_as_null=True)
    return exploded.filter(pl.col(column).is_not_null()).unnest(column)


def _steps(frame: pl.DataFrame) -> pl.DataFrame:
    event, labels = pl.col("event").struct, dict(enumerate(action.label for action in ACTIONS))
    tool, check, artifact = (event.field(name).struct for name in ("tool", "check", "artifact"))
    claim = pl.element().struct
    return _children(frame, "steps").select(
        "episode_id",
        "t",
        pl.col("action").replace_strict(labels, return_dtype=pl.String),
        pl.col("base_action").replace_strict(labels, return_dtype=pl.String),
        "mask",
        "propensities",
        "features",
        propensity=pl.col("propensities").list.get(pl.col("action")),
        **{name: event.field(name) for name in _EVENT},
        **{f"tool_{name}": tool.field(name) for name in _TOOL},
        **{f"check_{name}": check.field(name) for name in _CHECK},
        **{f"artifact_{name}": artifact.field(name) for name in _ARTIFACT},
        # Null where a step changed no claim, an empty list where it left none.
        claims=event.field("claims").list.eval(claim.field("text")),
        claims_supported=event.field("claims").list.eval(claim.field("supported")),
    )


_EVENT = (
    "status",
    "error",
    "evidence",
    "note",
    "calls",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "seconds",
)
_TOOL = ("name", "valid", "ok", "version", "passed", "total", "problems")
_CHECK = ("score", "version", "passed", "total", "problems")
_ARTIFACT = ("version", "sha256", "chars")
