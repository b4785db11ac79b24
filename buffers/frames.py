"""Episodes and steps as flat polars frames, for tables and notebooks.

Text is shown as it is stored: an unpaired surrogate of a model's reply appears as U+001A and four hex digits.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa

from buffers.schema import FLAT_COLUMNS
from harness_mdp.errors import ConfigError, SchemaMismatch
from harness_mdp.mdp import ACTIONS
from harness_mdp.settings import open_setting

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EPISODE_FRAME_LEAVES", "STEP_FRAME_LEAVES", "episode_frame", "step_frame"]

EPISODE_FRAME_LEAVES = (*FLAT_COLUMNS, "rubric", "maturity", "maturity_events", "steps.list.element.t")

_KEYS = (
    "episode_id",
    "run",
    "phase",
    "setting",
    "task_id",
    "template",
    "split",
    "difficulty",
    "executor",
    "policy",
    "policy_fingerprint",
    "seed",
    "rollout",
    "horizon",
    "return",
)
STEP_FRAME_LEAVES = (*_KEYS, "feature_schema_id", "steps")
_ORDER = ("setting", "phase", "task_id", "seed", "rollout", "episode_id")


def episode_frame(rows: pa.Table) -> pl.DataFrame:
    """One row an episode, in the order of setting, phase, task, seed and rollout.

    Columns are those of DESIGN section 7 without `artifacts`; `steps` becomes `n_steps`, and `maturity` one column
    `maturity_<preset>` a preset (null where it does not exist).
    """
    import polars as pl

    frame = cast("pl.DataFrame", pl.from_arrow(rows)).with_columns(n_steps=pl.col("steps").list.len())
    preset, score = pl.element().struct.field("preset"), pl.element().struct.field("score")
    presets = sorted(frame["maturity"].explode(empty_as_null=True).struct.field("preset").drop_nulls().unique())
    scores = [
        pl.col("maturity").list.eval(score.filter(preset == name)).list.first().alias(f"maturity_{name}")
        for name in presets
    ]
    return frame.with_columns(*scores).drop("steps", "maturity").sort(_ORDER)


def step_frame(rows: pa.Table, *, named_features: bool) -> pl.DataFrame:
    """One row a step, in order of episode and t.

    Args:
        rows: with `STEP_FRAME_LEAVES`.
        named_features: one column `f_<name>` a feature instead of the list `features`.

    Raises:
        SchemaMismatch: names were asked for episodes of several settings, or of another version of it.
        ConfigError: names were asked for episodes of a setting that `open_setting` does not know.
    """
    import polars as pl

    steps = (
        cast("pl.DataFrame", pl.from_arrow(rows))
        .explode("steps", empty_as_null=True)
        .filter(pl.col("steps").is_not_null())  # an episode whose budget was spent at once has no step
        .unnest("steps")
        .sort(*_ORDER, "t")
    )
    event, labels = pl.col("event").struct, dict(enumerate(action.label for action in ACTIONS))
    tool, check = event.field("tool").struct, event.field("check").struct
    artifact, claims = event.field("artifact").struct, event.field("claims")
    label = pl.Enum([action.label for action in ACTIONS])
    frame = steps.select(
        *_KEYS,
        "t",
        pl.col("action").replace_strict(labels, return_dtype=label),
        pl.col("base_action").replace_strict(labels, return_dtype=label),
        "mask",
        "propensities",
        propensity=pl.col("propensities").list.get(pl.col("action")),
        status=event.field("status"),
        error=event.field("error"),
        evidence_items=event.field("evidence").list.len(),
        tool_name=tool.field("name"),
        tool_valid=tool.field("valid"),
        tool_ok=tool.field("ok"),
        tool_passed=tool.field("passed"),
        tool_total=tool.field("total"),
        check_score=check.field("score"),
        check_version=check.field("version"),
        check_problems=check.field("problems").list.len(),
        artifact_version=artifact.field("version"),
        artifact_chars=artifact.field("chars"),
        claims=claims.list.len(),
        claims_supported=claims.list.eval(pl.element().struct.field("supported")).list.sum(),
        note=event.field("note"),
        calls=event.field("calls"),
        tokens=event.field("prompt_tokens") + event.field("completion_tokens"),
        cost_usd=event.field("cost_usd"),
        seconds=event.field("seconds"),
        feature_schema_id="feature_schema_id",
        features="features",
    )
    return _with_names(frame) if named_features else frame


def _with_names(frame: pl.DataFrame) -> pl.DataFrame:
    """`features` as one column a feature, named by the setting that made them."""
    import polars as pl

    made_by = frame.select("setting", "feature_schema_id").unique().sort("setting", "feature_schema_id").rows()
    if len(made_by) != 1:
        raise SchemaMismatch(
            f"features of {len(made_by)} schemas cannot share columns ({made_by}); choose one with setting=..., "
            "or leave named_features out"
        )
    setting, schema_id = made_by[0]
    try:
        schema = open_setting(setting).schema
    except ConfigError as unknown:
        raise ConfigError(
            f"the names of the features of setting {setting!r} are not known here ({unknown}). Call "
            'harness_mdp.settings.open_setting("MODULE:CLASS") with its place first, or leave named_features out'
        ) from unknown
    if schema.id != schema_id:
        raise SchemaMismatch(
            f"the episodes have feature schema {schema_id}, setting {setting} of this installation {schema.id}; "
            "read them without named_features, or with the harness-mdp that made them"
        )
    named = [pl.col("features").list.get(i).alias(f"f_{name}") for i, name in enumerate(schema.names)]
    return frame.with_columns(*named).drop("features")
