"""Every table of `analysis` as a matplotlib figure: one axes, vector, readable in grey, with units.

Only these modules import matplotlib. `plot_*(table, ..., ax=None)` draws what the function of the table's name
returned and gives back the figure; `save_figure` writes it.
"""

from analysis.figures.bars import plot_actions
from analysis.figures.intervals import (
    plot_ablation,
    plot_correlations,
    plot_events,
    plot_main_table,
    plot_transfer,
)
from analysis.figures.scatter import (
    plot_cost_frontier,
    plot_maturity_against_quality,
    plot_sensitivity,
    plot_slack_against_gain,
)
from analysis.figures.style import save_figure

__all__ = [
    "plot_ablation",
    "plot_actions",
    "plot_correlations",
    "plot_cost_frontier",
    "plot_events",
    "plot_main_table",
    "plot_maturity_against_quality",
    "plot_sensitivity",
    "plot_slack_against_gain",
    "plot_transfer",
    "save_figure",
]
