"""One point an arm or episode group: slack against gain, quality against cost, maturity against quality."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.cost import COSTS
from analysis.figures.style import GREYS, MARKERS, begin, finish, rows_of
from harness_mdp.errors import ConfigError, UnusableBuffer

__all__ = ["plot_cost_frontier", "plot_maturity_against_quality", "plot_sensitivity", "plot_slack_against_gain"]

_UNITS = {"tokens": "tokens an episode", "steps": "steps an episode", "usd": "USD an episode"}


def plot_slack_against_gain(table: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Gain of each arm against the slack of its setting's buffer; the dashed line is gain = slack.

    Args:
        table: of `slack_against_gain`.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table.
        UnusableBuffer: no rows.
    """
    rows = rows_of(table, ("setting", "arm", "slack", "gain", "ci_low", "ci_high"), "slack against gain")
    figure, ax = begin(ax)
    most = float(rows["slack"].to_numpy().max()) * 1.15 or 0.1
    ax.plot([0, most], [0, most], color="0.4", linewidth=0.8, linestyle="--", label="gain = slack")
    ax.axhline(0.0, color="0.4", linewidth=0.8)
    for at, arm in enumerate(rows["arm"].unique(maintain_order=True)):
        own = rows.filter(pl.col("arm") == arm)
        gain, low, high = (own[name].to_numpy() for name in ("gain", "ci_low", "ci_high"))
        ax.errorbar(
            own["slack"].to_numpy() + (at - 1) * most * 0.006,  # so that intervals of one setting do not cover another
            gain,
            yerr=np.maximum(np.stack([gain - low, high - gain]), 0.0),
            fmt=MARKERS[at % len(MARKERS)],
            color=GREYS[at % len(GREYS)],
            markersize=5,
            capsize=2,
            linewidth=1.0,
            label=arm,
        )
    ax.set_xlim(0, most)
    ax.set_xlabel("slack of the collected episodes (return, 0 to 1)")
    ax.set_ylabel("gain in quality to base (return), 95 % over tasks")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    finish(ax, "What the buffer could teach, and what was gained", rows)
    return figure


def plot_cost_frontier(
    table: pd.DataFrame, cost: str = "tokens", setting: str | None = None, ax: Axes | None = None
) -> Figure:
    """Quality of each arm against what it costs; filled markers are on the frontier, which is drawn as steps.

    Args:
        table: of `cost_frontier`.
        cost: `tokens`, `steps` or `usd`.
        setting: which; None where the table has one.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table or cost, or several settings and none chosen.
        UnusableBuffer: no rows of that setting, or a cost that is not known.
    """
    if cost not in COSTS:
        raise ConfigError(f"cost {cost!r}; expected one of {', '.join(COSTS)}")
    columns = ("setting", "arm", "quality", "quality_low", "quality_high", cost, f"{cost}_low", f"pareto_{cost}")
    rows = _one_setting(rows_of(table, columns, "cost frontier"), setting, "cost frontier")
    known = rows.filter(pl.col(cost).is_not_null())
    if known.is_empty():
        raise UnusableBuffer(f"cost frontier of {rows['setting'][0]}: no arm has a known cost in {cost}")
    figure, ax = begin(ax)
    for at, row in enumerate(known.iter_rows(named=True)):
        best = bool(row[f"pareto_{cost}"])
        ax.errorbar(
            [row[cost]],
            [row["quality"]],
            xerr=[[max(row[cost] - row[f"{cost}_low"], 0.0)], [max(row[f"{cost}_high"] - row[cost], 0.0)]],
            yerr=[[row["quality"] - row["quality_low"]], [row["quality_high"] - row["quality"]]],
            fmt=MARKERS[at % len(MARKERS)],
            color=GREYS[at % len(GREYS)],
            markerfacecolor=GREYS[at % len(GREYS)] if best else "white",
            markersize=7,
            capsize=2,
            linewidth=0.8,
            label=f"{row['arm']}{'' if best else ' (dominated)'}",
        )
    front = known.filter(pl.col(f"pareto_{cost}")).sort(cost)
    ax.step(front[cost].to_numpy(), front["quality"].to_numpy(), where="post", color="0.6", linewidth=0.8, zorder=0)
    ax.set_xlabel(f"{_UNITS[cost]} (mean, 95 % over tasks)")
    ax.set_ylabel("quality (return, 0 to 1), 95 % over tasks")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    finish(ax, f"Quality against {cost}: {rows['setting'][0]}", rows)
    return figure


def plot_maturity_against_quality(episodes: pl.DataFrame, ax: Axes | None = None) -> Figure:
    """Mean quality against mean maturity, one point a setting and policy; the lines join a setting's policies.

    What a pooled correlation sees are the points of all settings together; what says something is a line's slope.

    Args:
        episodes: of `maturity_and_quality`.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table.
        UnusableBuffer: no rows.
    """
    rows = rows_of(
        episodes.to_pandas(), ("setting", "arm", "task_id", "quality", "maturity"), "maturity against quality"
    )
    by_task = rows.group_by("setting", "arm", "task_id", maintain_order=True).agg(pl.col("maturity", "quality").mean())
    means = by_task.group_by("setting", "arm", maintain_order=True).agg(pl.col("maturity", "quality").mean())
    figure, ax = begin(ax)
    for at, setting in enumerate(means["setting"].unique(maintain_order=True)):
        own = means.filter(pl.col("setting") == setting).sort("maturity")
        ax.plot(
            own["maturity"].to_numpy(),
            own["quality"].to_numpy(),
            marker=MARKERS[at % len(MARKERS)],
            color=GREYS[at % len(GREYS)],
            linewidth=0.8,
            label=setting or "episodes",
        )
        for arm, x, y in own.select("arm", "maturity", "quality").iter_rows():
            ax.annotate(arm, (x, y), textcoords="offset points", xytext=(4, 4), fontsize="x-small", color="0.25")
    ax.margins(x=0.15)
    ax.set_xlabel("maturity (HMS, strict, -1 to 1), mean over tasks")
    ax.set_ylabel("quality (return, 0 to 1), mean over tasks")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    simulated = rows["executor"].str.starts_with("simulated").any() if "executor" in rows.columns else False
    finish(ax, "Maturity and quality of each policy", rows.with_columns(simulated=pl.lit(bool(simulated))))
    return figure


def plot_sensitivity(
    table: pd.DataFrame, threshold: str = "early_share", setting: str | None = None, ax: Axes | None = None
) -> Figure:
    """Difference in maturity to base as a threshold of EarlySubmit moves; dashed lines are preset `strict`.

    Args:
        table: of `early_submit_sensitivity`.
        threshold: one of those that were scored.
        setting: which; None where the table has one.
        ax: where to draw; a new figure if None.

    Raises:
        ConfigError: another table, an unknown threshold, or several settings and none chosen.
        UnusableBuffer: no rows.
    """
    columns = ("setting", "preset", "threshold", "value", "arm", "delta", "ci_low", "ci_high")
    rows = _one_setting(rows_of(table, columns, "sensitivity"), setting, "sensitivity")
    rows = rows.filter(pl.col("delta").is_not_null())
    moved = rows.filter(pl.col("threshold") == threshold)
    if moved.is_empty():
        known = ", ".join(sorted(set(rows["threshold"]) - {""}))
        raise ConfigError(f"no scores under threshold {threshold!r}; there are some of {known}")
    figure, ax = begin(ax)
    for at, arm in enumerate(moved["arm"].unique(maintain_order=True)):
        own = moved.filter(pl.col("arm") == arm).sort("value")
        delta, low, high = (own[name].to_numpy() for name in ("delta", "ci_low", "ci_high"))
        ax.errorbar(
            own["value"].to_numpy(),
            delta,
            yerr=np.maximum(np.stack([delta - low, high - delta]), 0.0),
            fmt=f"{MARKERS[at % len(MARKERS)]}-",
            color=GREYS[at % len(GREYS)],
            markersize=5,
            capsize=2,
            linewidth=1.0,
            label=arm,
        )
        for strict in rows.filter((pl.col("preset") == "strict") & (pl.col("arm") == arm))["delta"]:
            ax.axhline(strict, color=GREYS[at % len(GREYS)], linewidth=0.8, linestyle="--")
    ax.axhline(0.0, color="0.4", linewidth=0.8)
    ax.set_xlabel(f"threshold {threshold} of EarlySubmit (share, 0 to 1)")
    ax.set_ylabel("difference in maturity to base (HMS), 95 % over tasks")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    finish(ax, f"Maturity as EarlySubmit moves: {rows['setting'][0]}", rows)
    return figure


def _one_setting(rows: pl.DataFrame, setting: str | None, what: str) -> pl.DataFrame:
    settings = rows["setting"].unique(maintain_order=True).to_list()
    if setting is None and len(settings) > 1:
        raise ConfigError(f"{what}: the table has the settings {', '.join(settings)}; choose one with setting=")
    here = rows if setting is None else rows.filter(pl.col("setting") == setting)
    if here.is_empty():
        raise UnusableBuffer(f"{what}: no rows of setting {setting}; there are {', '.join(settings)}")
    return here
