"""What is done where, as stacked bars."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import GREYS, HATCHES, begin, finish, rows_of
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.mdp import ACTIONS

__all__ = ["plot_actions"]

_FILL = ("0.95", "0.8", "0.65", "0.5", "0.88", "0.35", "0.15")


def plot_actions(table: pd.DataFrame, setting: str | None = None, ax: Axes | None = None) -> Figure:
    """Share of each structural action by cluster of states and arm, one bar each.

    Args:
        table: of `action_distribution` or `what_was_learned`.
        setting: which; None where the table has one.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table, or several settings and none chosen.
        UnusableBuffer: no rows of that setting.
    """
    rows = rows_of(table, ("setting", "cluster", "state", "arm", "action", "share", "n_steps"), "actions")
    settings = rows["setting"].unique(maintain_order=True).to_list()
    if setting is None and len(settings) > 1:
        raise ConfigError(f"actions: the table has the settings {', '.join(settings)}; choose one with setting=")
    here = rows if setting is None else rows.filter(pl.col("setting") == setting)
    if here.is_empty():
        raise UnusableBuffer(f"actions: no rows of setting {setting}; there are {', '.join(settings)}")
    bars = (
        here.select("cluster", "state", "arm", "n_steps")
        .unique(maintain_order=True)
        .sort("cluster", maintain_order=True)
    )
    figure, ax = begin(ax, width=8.0, height=1.2 + 0.24 * (len(bars) + bars["cluster"].n_unique()))
    # A line of room above each cluster for what holds in it.
    places = np.arange(len(bars)) + bars["cluster"].rank("dense").to_numpy().astype(np.float64)
    for state, top in zip(bars["state"].unique(maintain_order=True), _tops(bars, places), strict=True):
        ax.text(0.0, top - 0.85, state, fontsize="x-small", va="center", color="0.2")
    left = np.zeros(len(bars))
    for at, action in enumerate(ACTIONS):
        own = here.filter(pl.col("action") == action.label)
        share = (
            bars.join(own, on=["cluster", "arm"], how="left", maintain_order="left")["share"].fill_null(0).to_numpy()
        )
        ax.barh(
            places,
            share,
            left=left,
            height=0.8,
            color=_FILL[at],
            hatch=HATCHES[at],
            edgecolor=GREYS[0],
            linewidth=0.4,
            label=action.label,
        )
        left = left + share
    ax.set_yticks(
        places, [f"{arm} (n = {n})" for arm, n in bars.select("arm", "n_steps").iter_rows()], fontsize="small"
    )
    ax.set_ylim(places[-1] + 0.6, places[0] - 1.4)
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of the steps in these states (0 to 1; n steps)")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    finish(ax, f"What is done where: {here['setting'][0]}", here)
    return figure


def _tops(bars: pl.DataFrame, places: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    """Place of the first bar of each cluster."""
    clusters = bars["cluster"].to_numpy()
    return [float(places[at]) for at in np.flatnonzero(np.diff(clusters, prepend=-1))]
