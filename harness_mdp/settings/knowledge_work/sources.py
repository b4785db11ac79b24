"""The sources of a task: tables and memos, and how they read as evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness_mdp.hashing import Json

__all__ = ["PREVIEW_ROWS", "Cell", "Memo", "Table", "memos_of", "plain", "tables_of"]

PREVIEW_ROWS = 6
"""Rows of a table that evidence shows; what lies beyond takes a query. Easy tables are shown whole."""

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Table:
    """A source table; `rows` are as long as `columns`."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def text(self) -> str:
        """Title, size, column names and the first `PREVIEW_ROWS` rows."""
        shown = self.rows[:PREVIEW_ROWS]
        size = f"{len(self.rows)} rows" + ("" if len(shown) == len(self.rows) else f", first {len(shown)} shown")
        lines = [" | ".join(self.columns), *(" | ".join(map(str, row)) for row in shown)]
        return f"{self.title} ({size})\n" + "\n".join(lines)

    @property
    def public(self) -> dict[str, Json]:
        """The table as JSON."""
        rows = [list(row) for row in self.rows]
        return {"id": self.id, "title": self.title, "columns": list(self.columns), "rows": rows}


@dataclass(frozen=True, slots=True)
class Memo:
    """A source text."""

    id: str
    title: str
    body: str

    @property
    def text(self) -> str:
        """Title and body."""
        return f"{self.title}: {self.body}"

    @property
    def public(self) -> dict[str, Json]:
        """The memo as JSON."""
        return {"id": self.id, "title": self.title, "body": self.body}


def tables_of(public: Mapping[str, Json]) -> dict[str, Table]:
    """Tables by id, from the public part of a task."""
    found = (
        Table(t["id"], t["title"], tuple(t["columns"]), tuple(tuple(row) for row in t["rows"]))
        for t in public["tables"]
    )
    return {table.id: table for table in found}


def memos_of(public: Mapping[str, Json]) -> dict[str, Memo]:
    """Memos by id, from the public part of a task."""
    return {memo["id"]: Memo(memo["id"], memo["title"], memo["body"]) for memo in public["memos"]}


def plain(value: float) -> str:
    """A number without thousands commas, at most two decimals, none where it is whole."""
    rounded = round(value, 2)
    return str(int(rounded)) if rounded == int(rounded) else f"{rounded:.2f}".rstrip("0")
