"""The columns of a buffer: one row per finished episode, its steps nested (DESIGN section 7).

Delta knows no unsigned integers and no fixed-size lists, so counts are int32 or int64 and the seven-vectors are
plain lists. Steps keep the typed event beside the decision, so that everything else can be folded again.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import pyarrow as pa

__all__ = ["FLAT_COLUMNS", "SCHEMA", "SCHEMA_VERSION", "TABLE_NAME", "describe", "read_version"]

SCHEMA_VERSION = 1
"""Raised by hand whenever a column is added, dropped or changes its meaning."""

TABLE_NAME = "harness-mdp episodes"


def _strings() -> pa.DataType:
    return pa.list_(pa.field("element", pa.string()))


def _structs(**fields: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", pa.struct(list(fields.items()))))


_TOOL = pa.struct(
    [
        ("name", pa.string()),
        ("valid", pa.bool_()),
        ("ok", pa.bool_()),
        ("version", pa.int32()),
        ("passed", pa.int32()),
        ("total", pa.int32()),
        ("problems", _strings()),
    ]
)
_CHECK = pa.struct(
    [
        ("score", pa.float64()),
        ("version", pa.int32()),
        ("passed", pa.int32()),
        ("total", pa.int32()),
        ("problems", _strings()),
    ]
)
_ARTIFACT = pa.struct([("version", pa.int32()), ("sha256", pa.string()), ("chars", pa.int64())])

# `Event.action` is not among them: it is the step's action, stored once.
_EVENT = pa.struct(
    [
        ("status", pa.string()),
        ("error", pa.string()),
        ("evidence", _strings()),
        ("tool", _TOOL),
        ("check", _CHECK),
        ("artifact", _ARTIFACT),
        ("claims", _structs(text=pa.string(), supported=pa.bool_())),
        ("note", pa.string()),
        ("calls", pa.int32()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("seconds", pa.float64()),
    ]
)

_FLAT: tuple[tuple[str, pa.DataType], ...] = (
    ("episode_id", pa.string()),
    ("run", pa.string()),
    ("phase", pa.string()),
    ("setting", pa.string()),
    ("setting_version", pa.int32()),
    ("schema_version", pa.int32()),
    ("feature_schema_id", pa.string()),
    ("task_id", pa.string()),
    ("task_hash", pa.string()),
    ("template", pa.string()),
    ("split", pa.string()),
    ("difficulty", pa.string()),
    ("executor", pa.string()),
    ("policy", pa.string()),
    ("policy_fingerprint", pa.string()),
    ("seed", pa.int64()),
    ("rollout", pa.int64()),
    ("horizon", pa.int32()),
    ("token_budget", pa.int64()),
    ("usd_budget", pa.float64()),
    ("eval_status", pa.string()),
    ("termination", pa.string()),
    ("return", pa.float64()),
)
_TOTALS: tuple[tuple[str, pa.DataType], ...] = (
    ("final_artifact", pa.string()),
    ("tokens", pa.int64()),
    ("cost_usd", pa.float64()),
    ("seconds", pa.float64()),
    ("propensity_source", pa.string()),
)
_NULLABLE = frozenset({"token_budget", "usd_budget", "cost_usd"})

FLAT_COLUMNS: tuple[str, ...] = tuple(name for name, _ in (*_FLAT, *_TOTALS))
"""The columns that are one value an episode."""

_NESTED: tuple[tuple[str, pa.DataType], ...] = (
    ("rubric", _structs(id=pa.string(), score=pa.float64(), weight=pa.float64())),
    ("maturity", _structs(preset=pa.string(), score=pa.float64())),
    (
        "maturity_events",
        _structs(preset=pa.string(), event=pa.string(), applicable=pa.bool_(), fired=pa.bool_()),
    ),
    ("artifacts", _structs(sha256=pa.string(), text=pa.string())),
)
_STEPS = _structs(
    t=pa.int32(),
    event=_EVENT,
    features=pa.list_(pa.field("element", pa.float32())),
    mask=pa.list_(pa.field("element", pa.bool_())),
    base_action=pa.int8(),
    action=pa.int8(),
    propensities=pa.list_(pa.field("element", pa.float64())),
)

SCHEMA: pa.Schema = pa.schema(
    [pa.field(name, kind, nullable=name in _NULLABLE) for name, kind in _FLAT]
    + [pa.field(name, kind, nullable=False) for name, kind in _NESTED]
    + [pa.field(name, kind, nullable=name in _NULLABLE) for name, kind in _TOTALS]
    + [pa.field("steps", _STEPS, nullable=False)]
)
"""Arrow schema of a row. `cost_usd` is null where a price is unknown, a budget where there is none."""

_PREFIX = "harness-mdp replay buffer, schema version "


def describe() -> str:
    """The table description that marks a Delta table as a buffer of this schema."""
    return f"{_PREFIX}{SCHEMA_VERSION}"


def read_version(description: str | None) -> int | None:
    """Schema version in a table's description; None when it is no buffer of ours."""
    text = description or ""
    number = text.removeprefix(_PREFIX)
    return int(number) if text.startswith(_PREFIX) and number.isdigit() else None
