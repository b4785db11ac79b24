"""Single columns of the schema by name, nested ones by a dotted path: `return`, `steps.action`, `steps.event.calls`."""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from buffers.schema import SCHEMA
from harness_mdp.errors import InputError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["column_frame", "leaf"]


def leaf(column: str) -> str:
    """The Parquet path of a column: `steps.action` is stored as `steps.list.element.action`.

    Raises:
        InputError: no such column.
    """
    name, *fields = column.split(".")
    if name not in SCHEMA.names:
        raise _unknown(column, SCHEMA.names)
    path, kind = name, SCHEMA.field(name).type
    for name in fields:
        if pa.types.is_list(kind):
            path, kind = f"{path}.list.element", kind.value_type
        names = [kind.field(i).name for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        if name not in names:
            raise _unknown(column, names)
        path, kind = f"{path}.{name}", kind.field(name).type
    return path


def _unknown(column: str, names: Sequence[str]) -> InputError:
    expected = f"one of {', '.join(names)}" if names else "no further field"
    return InputError("a buffer has no such column", field=column, expected=expected)


def column_frame(rows: pa.Table, columns: Sequence[str]) -> pl.DataFrame:
    """The `columns` of rows that were read with their leaves, each under its name."""
    import polars as pl

    frame = cast("pl.DataFrame", pl.from_arrow(rows))
    paths = {column: column.split(".") for column in columns}
    return frame.select(
        _inside(pl.col(name), SCHEMA.field(name).type, fields).alias(column)
        for column, (name, *fields) in paths.items()
    )


def _inside(value: pl.Expr, kind: pa.DataType, fields: Sequence[str]) -> pl.Expr:
    """The field that the path `fields` leads to, one list deeper for every list on the way."""
    import polars as pl

    if not fields:
        return value
    if pa.types.is_list(kind):
        return value.list.eval(_inside(pl.element(), kind.value_type, fields))
    name, *further = fields
    return _inside(value.struct.field(name), kind.field(name).type, further)
