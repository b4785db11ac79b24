"""Which episodes: one set of filters for every way to read a buffer."""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc

from buffers.rows import encode_text

__all__ = ["Narrower", "Where", "keep"]


class Narrower(TypedDict, total=False):
    """Conditions that all hold; a collection means any of its members."""

    episode_id: str | Collection[str]
    run: str | Collection[str]
    task_id: str | Collection[str]
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


def keep(rows: pa.Table, where: Where) -> pa.Table:
    """The rows for which every condition holds; `rows` has the columns that are asked about."""
    selected: pa.BooleanArray | pa.ChunkedArray | None = None
    for column, wanted in cast("dict[str, str | Collection[str]]", where).items():
        values = [wanted] if isinstance(wanted, str) else sorted(wanted)
        encoded = pa.array([encode_text(value) for value in values], pa.string())
        holds = pc.is_in(rows.column(column), value_set=encoded)
        selected = holds if selected is None else pc.and_(selected, holds)
    if selected is None or pc.all(selected).as_py():
        return rows
    return rows.filter(selected)
