"""Which episodes: one set of filters for every way to read a buffer."""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc

from buffers.columns import leaf
from buffers.rows import encode_text
from buffers.schema import SCHEMA
from harness_mdp.errors import InputError

__all__ = ["Narrower", "Where", "keep"]


class Narrower(TypedDict, total=False):
    """Conditions that all hold; a collection means any of its members."""

    episode_id: str | Collection[str]
    run: str | Collection[str]
    task_id: str | Collection[str]
    task_hash: str | Collection[str]
    seed: int | Collection[int]
    setting_version: int | Collection[int]
    executor: str | Collection[str]
    policy: str | Collection[str]
    policy_fingerprint: str | Collection[str]


class Where(Narrower, total=False):
    """The same, and the three that learning always names."""

    setting: str | Collection[str]
    phase: str | Collection[str]
    """`collect`, `eval`, `import`"""
    split: str | Collection[str]
    """`train`, `eval`"""


_Wanted = str | int | Collection[str] | Collection[int]


def keep(rows: pa.Table, where: Where) -> pa.Table:
    """The rows for which every condition holds; `rows` has the columns that are asked about.

    Raises:
        InputError: no such column, or a value that it cannot hold.
    """
    selected: pa.BooleanArray | pa.ChunkedArray | None = None
    for column, wanted in cast("dict[str, _Wanted]", where).items():
        values = _values(column, wanted)
        holds = pc.is_in(rows.column(column), value_set=values)
        selected = holds if selected is None else pc.and_(selected, holds)
    if selected is None or pc.all(selected).as_py():
        return rows
    return rows.filter(selected)


def _values(column: str, wanted: _Wanted) -> pa.Array:
    values = [wanted] if isinstance(wanted, str | int) else list(wanted)
    kind = SCHEMA.field(leaf(column)).type
    try:
        return pa.array([encode_text(value) if isinstance(value, str) else value for value in values], kind)
    except (OverflowError, pa.ArrowException) as error:
        raise InputError(f"no episode can have {wanted!r} there ({error})", field=column) from error
