"""Differences with their intervals, one line each: main table, ablation, events, correlations, transfer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import GREYS, MARKERS, begin, finish, rows_of
from analysis.maturity_quality import SCOPES

__all__ = ["plot_ablation", "plot_correlations", "plot_events", "plot_main_table", "plot_transfer"]

_INCHES_A_LINE = 0.22


def plot_main_table(table: pd.DataFrame, outcome: str = "quality", ax: Axes | None = None) -> Figure:
    """Difference of every arm to the reference with its interval, setting by setting.

    Args:
        table: of `main_table`.
        outcome: `quality` or `maturity`.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table, or an outcome that it does not hold.
        UnusableBuffer: no rows.
    """
    rows = rows_of(table, ("setting", "arm", "outcome", "delta", "ci_low", "ci_high"), "main table")
    shown = rows.filter((pl.col("outcome") == outcome) & pl.col("delta").is_not_null())
    reference = ", ".join(rows.filter(pl.col("delta").is_null())["arm"].unique(maintain_order=True))
    unit = "return, 0 to 1" if outcome == "quality" else "HMS, -1 to 1"
    figure, ax = _intervals(
        shown, ax, line=("setting",), series="arm", value=("delta", "ci_low", "ci_high"), what=f"main table, {outcome}"
    )
    ax.set_xlabel(f"difference in {outcome} to {reference} ({unit}), 95 % over tasks")
    finish(ax, f"{outcome.capitalize()} of each arm less {reference}", rows)
    return figure


def plot_ablation(table: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Gain in quality of every script and learner to base, setting by setting.

    Args:
        table: of `ablation`.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table.
        UnusableBuffer: no rows.
    """
    rows = rows_of(table, ("setting", "arm", "kind", "delta", "ci_low", "ci_high"), "ablation")
    figure, ax = _intervals(
        rows, ax, line=("setting",), series="arm", value=("delta", "ci_low", "ci_high"), what="ablation"
    )
    ax.set_xlabel("difference in quality to base (return, 0 to 1), 95 % over tasks")
    finish(ax, "What each script and learner is worth", rows)
    return figure


def plot_events(table: pd.DataFrame, setting: str, ax: Axes | None = None) -> Figure:
    """Rate of each maturity event, by arm, in one setting.

    Args:
        table: of `event_by_setting`.
        setting: which.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table.
        UnusableBuffer: no rows of that setting.
    """
    rows = rows_of(table, ("setting", "arm", "event", "rate", "rate_low", "rate_high"), "maturity events")
    here = rows.filter((pl.col("setting") == setting) & pl.col("rate").is_not_null())
    figure, ax = _intervals(
        here, ax, line=("event",), series="arm", value=("rate", "rate_low", "rate_high"), what=f"events of {setting}"
    )
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("rate among the episodes it applies to (0 to 1), 95 % over tasks")
    finish(ax, f"Maturity events in {setting}", here)
    return figure


def plot_correlations(table: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Correlation of maturity and quality: pooled, and within what explains it away.

    Args:
        table: of `maturity_against_quality`.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table.
        UnusableBuffer: no rows.
    """
    rows = rows_of(table, ("scope", "setting", "arm", "r", "low", "high"), "maturity against quality")
    shown = rows.filter(pl.col("scope").is_in([*SCOPES, "setting"]) & pl.col("r").is_not_null()).with_columns(
        line=pl.when(pl.col("scope") == "setting").then(pl.format("in {}", "setting")).otherwise("scope"),
        series=pl.when(pl.col("scope") == "setting").then(pl.lit("one setting")).otherwise(pl.lit("all episodes")),
    )
    figure, ax = _intervals(
        shown, ax, line=("line",), series="series", value=("r", "low", "high"), what="maturity against quality"
    )
    ax.set_xlabel("correlation of maturity (HMS, strict) and quality (return), 95 % over tasks")
    finish(ax, "Does maturity go with quality?", rows)
    return figure


def plot_transfer(table: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Gain of every learner by the executor it was trained on and the one it was evaluated on.

    Args:
        table: of `executor_transfer`.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table.
        UnusableBuffer: no learner in it.
    """
    columns = ("setting", "arm", "trained_on", "evaluated_on", "delta", "ci_low", "ci_high")
    rows = rows_of(table, columns, "executor transfer").filter(pl.col("trained_on") != "")
    shown = rows.with_columns(line=pl.format("{} {}\nevaluated on\n{}", "setting", "arm", "evaluated_on"))
    figure, ax = _intervals(
        shown.with_columns(series=pl.format("trained on\n{}", "trained_on")),
        ax,
        line=("line",),
        series="series",
        value=("delta", "ci_low", "ci_high"),
        what="executor transfer",
    )
    ax.set_xlabel("difference in quality to base (return, 0 to 1), 95 % over tasks")
    finish(ax, "Gain by executor of training and of evaluation", rows)
    return figure


def _intervals(
    rows: pl.DataFrame,
    ax: Axes | None,
    *,
    line: Sequence[str],
    series: str,
    value: tuple[str, str, str],
    what: str,
) -> tuple[Figure, Axes]:
    """One line of the axis for each value of `line`, in it one point with its interval for each of `series`."""
    rows = rows_of(rows.to_pandas(), value, what)
    lines = rows[line[0]].unique(maintain_order=True).to_list()
    names = rows[series].unique(maintain_order=True).to_list()
    figure, ax = begin(ax, height=1.4 + _INCHES_A_LINE * len(lines) * max(len(names), 2 + lines[0].count("\n")))
    crowded = rows.group_by(line[0]).len()["len"].to_numpy().max() > 1
    offsets = np.linspace(-0.32, 0.32, len(names)) if crowded else np.zeros(len(names))
    for at, name in enumerate(names):
        own = rows.filter(pl.col(series) == name)
        middle, low, high = (own[column].to_numpy() for column in value)
        ax.errorbar(
            middle,
            [lines.index(x) + offsets[at] for x in own[line[0]]],
            xerr=np.maximum(np.stack([middle - low, high - middle]), 0.0),
            fmt=MARKERS[at % len(MARKERS)],
            color=GREYS[at % len(GREYS)],
            markersize=5,
            capsize=2,
            linewidth=1.2,
            label=name,
        )
    ax.axvline(0.0, color="0.4", linewidth=0.8, linestyle="--")
    ax.set_yticks(range(len(lines)), lines, fontsize="small")
    ax.set_ylim(len(lines) - 0.5, -0.5)
    if len(names) > 1:
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure, ax
