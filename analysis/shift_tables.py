"""Predicted and realised shifts as tables for a person. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import cast

import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

__all__ = ["render_predicted", "render_realised"]

_Row = dict[str, float | str | bool]


def render_predicted(shifts: pd.DataFrame, *, level: float = 0.95, plain: bool = False) -> Table:
    """`predicted_shifts`, one line a statistic, the weightings below one another."""
    table = _table("predicted shift", shifts, plain)
    for title in ("by", "statistic"):
        table.add_column(title)
    for title in ("buffer", "weighted", f"shift [{level:.0%}]", "applicable episodes", "ESS", "tasks"):
        table.add_column(title, justify="right")
    table.add_column("")
    for row, first in _rows(shifts, "by"):
        if first:
            table.add_section()
        _add(
            table,
            [
                str(row["by"]),
                str(row["statistic"]),
                _number(row["buffer"]),
                _number(row["weighted"]),
                _estimate(row, "predicted"),
                str(row["n_applicable"]),
                f"{float(row['ess']):.0f}",
                str(row["n_tasks"]),
                str(row["note"]),
            ],
        )
    return table


def render_realised(shifts: pd.DataFrame, *, level: float = 0.95, plain: bool = False) -> Table:
    """`realised_shifts`, arm by arm, beside what was predicted where there are columns of it."""
    told = [str(name) for name in shifts.columns if str(name).startswith("predicted_")]
    several = ["setting"] if len(set(shifts["setting"])) > 1 else []
    reference = str(shifts["reference"].iloc[0])
    table = _table(f"realised shift against {reference}", shifts, plain)
    for title in (*several, "arm", "statistic"):
        table.add_column(title)
    titles = [*(f"predicted, {name.removeprefix('predicted_')}" for name in told), f"realised [{level:.0%}]"]
    for title in (*titles, "rate", "applicable", f"in {reference}", "tasks"):
        table.add_column(title, justify="right")
    table.add_column("")
    for row, first in _rows(shifts, "setting", "arm"):
        if first:
            table.add_section()
        _add(
            table,
            [
                *(str(row[name]) for name in several),
                str(row["arm"]),
                str(row["statistic"]),
                *(_number(row[name], signed=True) for name in told),
                _estimate(row, "realised"),
                _number(row["rate"]),
                str(row["n_applicable"]),
                str(row["n_applicable_reference"]),
                str(row["n_tasks"]),
                str(row["note"]),
            ],
        )
    return table


def _table(title: str, shifts: pd.DataFrame, plain: bool) -> Table:
    simulated = ", simulated executor" if bool(shifts["simulated"].any()) else ""
    style = "" if plain else "bold"
    return Table(
        title=title + simulated,
        title_justify="left",
        title_style=style,
        header_style=style,
        box=box.ASCII2 if plain else box.SIMPLE_HEAD,
    )


def _rows(shifts: pd.DataFrame, *keys: str) -> Iterator[tuple[_Row, bool]]:
    """The rows, and whether each is the first of another group of `keys` than the row before."""
    rows = cast("list[_Row]", shifts.to_dict(orient="records"))
    for before, row in zip([rows[0], *rows], rows, strict=False):
        yield row, any(before[key] != row[key] for key in keys)


def _add(table: Table, cells: Sequence[str]) -> None:
    table.add_row(*(Text(cell) for cell in cells))  # Text, not str: an arm named `[b]` is no markup


def _number(value: float | str | bool, *, signed: bool = False) -> str:
    number = round(float(value), 3) + 0.0  # -0.0 is 0
    return "-" if math.isnan(number) else f"{number:+.3f}" if signed else f"{number:.3f}"


def _estimate(row: _Row, name: str) -> str:
    mean, low, high = (float(row[key]) for key in (name, "low", "high"))
    if math.isnan(mean):
        return "-"
    return f"{mean:+.3f}" if math.isnan(low) else f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
