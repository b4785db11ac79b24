"""Figures: vector, labelled with units, told apart without colour, honest about the executor."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import pairwise

import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from analysis.actions import action_distribution
from analysis.cost import cost_frontier
from analysis.evaluations import evaluation_episodes
from analysis.figures import (
    plot_ablation,
    plot_actions,
    plot_correlations,
    plot_cost_frontier,
    plot_events,
    plot_main_table,
    plot_maturity_against_quality,
    plot_sensitivity,
    plot_slack_against_gain,
    plot_transfer,
    save_figure,
)
from analysis.figures.style import GREYS, MARKERS
from analysis.main_table import ablation, event_by_setting, main_table
from analysis.maturity_quality import maturity_against_quality, maturity_and_quality
from analysis.sensitivity import early_submit_sensitivity
from analysis.slack import slack_against_gain
from analysis.transfer import executor_transfer, with_training_executor
from harness_mdp.errors import ConfigError, UnusableBuffer
from tests.analysis_buffers import buffer, study
from tests.arms import frame, rows


@cache
def figures() -> dict[str, Figure]:
    path = buffer()
    transfer = with_training_executor(evaluation_episodes(path), [str(t.out) for t in study().trainings])
    return {
        "quality": plot_main_table(main_table(path, draws=300)),
        "maturity": plot_main_table(main_table(path, draws=300), "maturity"),
        "ablation": plot_ablation(ablation(path, draws=300)),
        "events": plot_events(event_by_setting(path, draws=300), "research"),
        "slack": plot_slack_against_gain(slack_against_gain(path, draws=300)),
        "cost": plot_cost_frontier(cost_frontier(path, draws=300)),
        "sensitivity": plot_sensitivity(
            early_submit_sensitivity(path, {"missed_share": (0.2, 0.8)}, draws=300), "missed_share"
        ),
        "correlations": plot_correlations(maturity_against_quality(path, draws=300)),
        "points": plot_maturity_against_quality(maturity_and_quality(path)),
        "actions": plot_actions(action_distribution(path)),
        "transfer": plot_transfer(executor_transfer(transfer, draws=300)),
    }


NAMES = [
    "quality", "maturity", "ablation", "events", "slack", "cost", "sensitivity", "correlations", "points", "actions",
    "transfer",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_has_one_axes_a_label_with_its_unit_and_says_simulated(name: str):
    (axes,) = figures()[name].axes
    assert "simulated" in axes.get_title(loc="left")
    labels = f"{axes.get_xlabel()} {axes.get_ylabel()}"
    assert any(unit in labels for unit in ("0 to 1", "-1 to 1", "HMS", "tokens an episode"))


@pytest.mark.parametrize("name", NAMES)
def test_series_differ_without_colour(name: str):
    (axes,) = figures()[name].axes
    for line in axes.lines:
        assert len(set(to_rgb(line.get_color()))) == 1  # grey
    series = (
        [
            (bar[0].get_marker(), bar[0].get_color())
            for bar in (container.lines for container in axes.containers)
            if bar and hasattr(bar[0], "get_marker")
        ]
        if name != "actions"
        else [(patch.get_hatch(), patch.get_facecolor()) for patch in axes.get_legend().get_patches()]
    )
    assert len(series) == len(set(series))


def test_neighbouring_series_differ_in_shape_and_in_lightness():
    assert len(set(MARKERS)) == len(MARKERS)
    for one, next_one in pairwise(GREYS):
        assert abs(float(one) - float(next_one)) >= 0.15


def test_a_real_model_is_not_called_simulated():
    real = {"executor": "openai-x"}
    table = main_table(frame(rows("base", **real), rows("aw", 0.1, **real)), draws=100)
    assert "simulated" not in plot_main_table(table).axes[0].get_title(loc="left")


@pytest.mark.parametrize("ending", [".svg", ".pdf"])
def test_files_are_vectors_and_the_same_for_the_same_figure(ending: str, tmp_path):
    one = save_figure(figures()["quality"], tmp_path / f"one{ending}").read_bytes()
    two = save_figure(figures()["quality"], tmp_path / "new" / f"two{ending}").read_bytes()
    assert one == two
    assert one.startswith(b"<?xml" if ending == ".svg" else b"%PDF")
    assert b"<image" not in one
    if ending == ".svg":
        assert "difference in quality to base" in one.decode()  # text stays text


def test_a_raster_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"ends in \.svg or \.pdf"):
        save_figure(figures()["quality"], tmp_path / "figure.png")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        save_figure(figures()["quality"], tmp_path / "file" / "figure.svg")


def test_figures_are_drawn_on_axes_at_hand():
    own = Figure()
    left, right = own.subplots(1, 2)
    table = main_table(frame(rows("base"), rows("aw", 0.1)), draws=100)
    assert plot_main_table(table, ax=right) is own
    assert plot_ablation(ablation(frame(rows("base"), rows("aw", 0.1)), draws=100), ax=left) is own
    assert right.get_xlabel() != left.get_ylabel()


def test_a_table_of_another_kind_or_without_rows_is_refused():
    with pytest.raises(ConfigError, match="slack against gain: the table has no column slack"):
        plot_slack_against_gain(pd.DataFrame({"setting": ["coding"], "arm": ["aw"]}))
    table = ablation(frame(rows("base"), rows("aw")), draws=100)
    with pytest.raises(UnusableBuffer, match="no rows"):
        plot_ablation(table.iloc[:0])
    with pytest.raises(UnusableBuffer, match="no rows"):
        plot_events(event_by_setting(buffer(), draws=100), "elsewhere")


def test_a_figure_of_one_setting_asks_which():
    parts = [rows(arm, gain, setting=s, tokens=10) for s in ("a", "b") for arm, gain in (("base", 0.0), ("aw", 0.1))]
    table = cost_frontier(frame(*parts), draws=100)
    with pytest.raises(ConfigError, match="settings a, b; choose one with setting="):
        plot_cost_frontier(table)
    assert "b" in plot_cost_frontier(table, setting="b").axes[0].get_title(loc="left")
    with pytest.raises(UnusableBuffer, match="no rows of setting c"):
        plot_cost_frontier(table, setting="c")
    with pytest.raises(UnusableBuffer, match="no arm has a known cost in usd"):
        plot_cost_frontier(table, "usd", setting="a")
    with pytest.raises(ConfigError, match="cost 'euro'"):
        plot_cost_frontier(table, "euro")


def test_tables_load_no_plotting_library():
    modules = "actions, cost, main_table, maturity_quality, sensitivity, slack, transfer"
    code = f"import sys; from analysis import {modules}; print('matplotlib' in sys.modules, end='')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False"
