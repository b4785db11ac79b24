"""How figures of this package look: readable in grey, vector, labelled, and honest about the executor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness_mdp.errors import ConfigError, UnusableBuffer

__all__ = ["GREYS", "HATCHES", "MARKERS", "begin", "finish", "rows_of", "save_figure"]

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
"""One a series; shapes carry what colour would."""

GREYS = ("0.0", "0.55", "0.3", "0.7", "0.15", "0.45", "0.62", "0.22", "0.5", "0.33")
"""Neighbours differ in lightness, so that a photocopy keeps them apart."""

HATCHES = ("", "///", "...", "xxx", "---", "\\\\\\", "+++")
"""One a stacked part."""

_VECTOR = (".svg", ".pdf")


def begin(ax: Axes | None, width: float = 7.0, height: float = 4.0) -> tuple[Figure, Axes]:
    """The figure and axes to draw on: a new one of `width` x `height` inches, or those of `ax`.

    No pyplot: figures made here are in no global list and are freed when they are forgotten.
    """
    if ax is None:
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.add_subplot()
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ConfigError("these axes belong to no figure; make them with a figure's add_subplot")
    return figure, ax


def finish(ax: Axes, title: str, table: pl.DataFrame) -> None:
    """Title with the word `simulated` where the executor was; light grid, no box."""
    simulated = bool(table["simulated"].any()) if "simulated" in table.columns else False
    ax.set_title(f"{title} (simulated executor)" if simulated else title, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)


def rows_of(table: pd.DataFrame, columns: Sequence[str], what: str) -> pl.DataFrame:
    """`table` for drawing; NaN is null from here on.

    Raises:
        ConfigError: a column is missing.
        UnusableBuffer: no row.
    """
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ConfigError(f"{what}: the table has no column {', '.join(missing)}; expected what its function returns")
    if len(table) == 0:
        raise UnusableBuffer(f"{what}: the table has no rows, so there is nothing to draw")
    return pl.from_pandas(table)


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Writes a vector file, the same bytes for the same figure.

    Raises:
        ConfigError: an ending other than .svg or .pdf, or a place that cannot be written.
    """
    target = Path(path)
    if target.suffix not in _VECTOR:
        raise ConfigError(f"{target}: expected a vector file, one that ends in {' or '.join(_VECTOR)}")
    dated = {"Date": None} if target.suffix == ".svg" else {"CreationDate": None}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Text stays text, and ids in the file do not depend on the moment.
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "harness-mdp", "pdf.fonttype": 42}):
            figure.savefig(target, metadata=dated)
    except OSError as problem:
        raise ConfigError(f"{target}: the figure cannot be written ({problem.strerror or problem})") from problem
    return target
