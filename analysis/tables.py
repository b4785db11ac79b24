"""A comparison as tables for a person: quality and maturity apart, every mean with its n and interval.

Where the output is too narrow for one line an arm, intervals stand under their means; no figure is cut off.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pandas as pd
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from analysis.comparison import OUTCOMES, Comparison

__all__ = ["ComparisonTables", "EventTable", "render", "render_events", "to_text"]

_Row = Mapping[str, str | float | bool]


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    show: Callable[[_Row], str]
    left: bool = False


@dataclass(frozen=True, eq=False)
class ComparisonTables:
    """One table an outcome, settings below one another, arms in the order given. Print it with rich."""

    comparison: Comparison
    plain: bool = False
    """ASCII without styles, for output that is no terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lays out for the width at hand."""
        comparison = self.comparison
        every = _rows(comparison.rows)
        settings = len({row["setting"] for row in every})
        tables, compact = self._tables(every, settings, compact=False), False
        if not _fit(tables, console, options):
            tables, compact = self._tables(every, settings, compact=True), True
        yield from tables
        if compact:
            notes = [f"{row['setting']} {row['arm']}, {row['outcome']} {row['note']}" for row in every if row["note"]]
            yield from (Text(f"Degenerate: {note.strip()}.") for note in notes)
        holm = f" Holm over {settings} settings for each arm and outcome." if settings > 1 else ""
        yield Text(
            f"Tasks weigh equally. Intervals: bootstrap-t over tasks, {comparison.draws} draws. "
            f"p: sign flips of task means.{holm}"
        )

    def _tables(self, every: Sequence[_Row], settings: int, *, compact: bool) -> list[Table]:
        tables: list[Table] = []
        for outcome in OUTCOMES:
            rows = [row for row in every if row["outcome"] == outcome.name]
            if rows:
                preset = f" (preset {self.comparison.preset})" if outcome.name == "maturity" else ""
                columns = self._columns(rows, settings, compact=compact)
                title = _title(outcome.name + preset, self.comparison)
                tables.append(_table(title, rows, columns, plain=self.plain, compact=compact))
        return tables

    def _columns(self, rows: Sequence[_Row], settings: int, *, compact: bool) -> list[_Column]:
        between = "\n" if compact else " "
        columns = [] if compact else [_Column("setting", _text("setting"), left=True)]
        columns += [
            _Column("arm", _text("arm"), left=True),
            _Column(f"mean{between}[{self.comparison.level:.0%}]", _estimate("mean", "mean_low", "mean_high", between)),
            _Column(
                f"Δ to {self.comparison.reference}{between}[{self.comparison.level:.0%}]",
                _estimate("delta", "ci_low", "ci_high", between, signed=True),
            ),
            _Column("p", _p("p")),
        ]
        if settings > 1:
            columns.append(_Column(f"p{between}Holm/{settings}", _p("p_holm")))
        if compact:
            return [
                *columns,
                _Column("tasks\nepisodes", lambda row: f"{row['n_tasks']}\n{row['n_episodes']}"),
                _Column("invalid\ninfra m.", lambda row: f"{row['n_invalid']}\n{row['n_infra_missing']}"),
            ]
        return [
            *columns,
            _Column("tasks", _text("n_tasks")),
            _Column("episodes", _text("n_episodes")),
            _Column("invalid", _text("n_invalid")),
            _Column("infra missing", _text("n_infra_missing")),
            *([_Column("degenerate", _text("note"), left=True)] if any(row["note"] for row in rows) else []),
        ]


@dataclass(frozen=True, eq=False)
class EventTable:
    """The maturity events as rates among applicable episodes, event by event."""

    comparison: Comparison
    plain: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lays out for the width at hand."""
        wide = self._table(compact=False)
        if _fit([wide], console, options):
            yield wide
            return
        yield self._table(compact=True)
        if any(row["note"] for row in _rows(self.comparison.events)):
            yield Text("* An end of an interval here rests on how often tasks could differ, not on their spread.")

    def _table(self, *, compact: bool) -> Table:
        comparison, between = self.comparison, "\n" if compact else " "
        groups: dict[tuple[object, object], list[_Row]] = {}
        for row in _rows(comparison.events):
            groups.setdefault((row["setting"], row["event"]), []).append(row)
        columns = [
            *([] if compact else [_Column("setting", _text("setting"), left=True)]),
            _Column("event", _text("event"), left=True),
            _Column("arm", lambda row: f"{row['arm']}{' *' if compact and row['note'] else ''}", left=True),
            _Column(f"rate{between}[{comparison.level:.0%}]", _estimate("rate", "rate_low", "rate_high", between)),
            _Column(
                f"Δ to {comparison.reference}{between}[{comparison.level:.0%}]",
                _estimate("delta", "ci_low", "ci_high", between, signed=True),
            ),
        ]
        if compact:
            columns.append(_Column("tasks\napplic.", lambda row: f"{row['n_tasks']}\n{row['n_applicable']}"))
        else:
            columns += [
                _Column("tasks", _text("n_tasks")),
                _Column("applicable episodes", _text("n_applicable")),
                _Column("degenerate", _text("note"), left=True),
            ]
        rows = [row for group in groups.values() for row in group]
        title = _title(f"maturity events (preset {comparison.preset})", comparison)
        return _table(title, rows, columns, plain=self.plain, compact=compact)


def render(comparison: Comparison, *, plain: bool = False) -> ComparisonTables:
    """Quality and maturity tables of `comparison`, to be printed by a rich console."""
    return ComparisonTables(comparison, plain)


def render_events(comparison: Comparison, *, plain: bool = False) -> EventTable | None:
    """The event rates; None where no verdicts were stored."""
    return EventTable(comparison, plain) if len(comparison.events) else None


def to_text(comparison: Comparison, *, events: bool = False) -> str:
    """The tables as plain ASCII-framed text, one line an arm, as wide as they need to be."""
    console = Console(file=io.StringIO(), width=240, force_terminal=False, color_system=None)
    console.print(render(comparison, plain=True))
    if events and (table := render_events(comparison, plain=True)):
        console.print(table)
    text = cast("io.StringIO", console.file).getvalue()
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _fit(tables: Sequence[Table], console: Console, options: ConsoleOptions) -> bool:
    """Every table has room on one line a row."""
    unbounded = options.update(width=1000)
    return all(console.measure(table, options=unbounded).maximum <= options.max_width for table in tables)


def _title(label: str, comparison: Comparison) -> str:
    return f"{label}, simulated executor" if comparison.simulated else label


def _table(title: str, rows: Sequence[_Row], columns: Sequence[_Column], *, plain: bool, compact: bool) -> Table:
    style = "" if plain else "bold"
    table = Table(
        title=title,
        title_justify="left",
        title_style=style,
        header_style=style,
        box=box.ASCII2 if plain else box.SIMPLE_HEAD,
        padding=(0, 0) if compact and not plain else (0, 1),
        pad_edge=not compact,
    )
    for column in columns:
        table.add_column(column.title, justify="left" if column.left else "right", overflow="fold")
    previous = None
    for row in rows:
        if row["setting"] != previous:
            if previous is not None:
                table.add_section()
            if compact and row["setting"]:
                table.add_row(Text(str(row["setting"]), style=style))
        previous = row["setting"]
        # Text, not str: an arm named `[b]` is no markup.
        table.add_row(*(Text(column.show(row)) for column in columns))
    return table


def _rows(frame: pd.DataFrame) -> list[_Row]:
    return cast("list[_Row]", frame.to_dict(orient="records"))


def _text(column: str) -> Callable[[_Row], str]:
    return lambda row: str(row[column])


def _estimate(mean: str, low: str, high: str, between: str, *, signed: bool = False) -> Callable[[_Row], str]:
    form = "{:+.3f}{}[{:+.3f}, {:+.3f}]" if signed else "{:.3f}{}[{:.3f}, {:.3f}]"

    def show(row: _Row) -> str:
        value, ends = float(row[mean]), (float(row[low]), float(row[high]))
        if math.isnan(value):
            return ""
        return form.format(value, between, *ends) if not math.isnan(ends[0]) else form.split("{}")[0].format(value)

    return show


def _p(column: str) -> Callable[[_Row], str]:
    def show(row: _Row) -> str:
        value = float(row[column])
        if math.isnan(value):
            return ""
        return "<0.001" if value < 0.001 else f"{value:.3f}"

    return show
