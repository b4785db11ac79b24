"""What a person reads of a comparison."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from analysis.comparison import compare
from analysis.tables import render, render_events, to_text
from tests.arms import frame, rows, verdicts


def test_quality_and_maturity_stand_in_blocks_of_their_own_with_arms_in_order():
    text = to_text(compare(frame(rows("base"), rows("bc", -0.0), rows("aw", 0.1)), draws=200))
    lines = text.splitlines()
    titles = [line for line in lines if line.startswith(("quality", "maturity"))]
    assert titles == ["quality, simulated executor", "maturity (preset paper), simulated executor"]
    arms = [line.split("|")[2].strip() for line in lines if line.startswith("| coding")]
    assert arms == ["base", "bc", "aw"] * 2


def test_a_real_model_is_not_called_simulated():
    table = frame(rows("base", executor="openai-1"), rows("aw", executor="openai-1"))
    assert "simulated" not in to_text(compare(table, draws=100))


def test_every_line_has_interval_and_n():
    text = to_text(compare(frame(rows("base"), rows("aw", 0.1)), draws=200))
    for line in text.splitlines():
        if line.startswith("| coding"):
            cells = [cell.strip() for cell in line.split("|")]
            assert cells[3].endswith("]")
            assert "10" in cells
            assert "40" in cells
            assert (cells[2] == "base") == (cells[4] == "")


def test_output_that_is_no_terminal_is_plain():
    text = to_text(compare(frame(rows("base"), rows("aw", 0.1)), draws=100))
    assert "\x1b" not in text
    assert set(text) - set(map(chr, range(128))) <= {"Δ"}


def test_a_terminal_gets_the_same_figures():
    comparison = compare(frame(rows("base"), rows("aw", 0.1)), draws=100)
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    console.print(render(comparison))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[1m" in shown
    assert "+0.100 [-0.239, +0.378]" in shown
    assert "zero variance" in shown


def test_names_are_never_read_as_markup():
    assert "[red]aw[/red]" in to_text(compare(frame(rows("base"), rows("[red]aw[/red]")), draws=100))


def test_holm_is_shown_only_over_several_settings():
    one = frame(rows("base"), rows("aw", 0.1))
    two = frame(rows("base"), rows("aw"), rows("base", setting="dbbench"), rows("aw", setting="dbbench"))
    assert "Holm" not in to_text(compare(one, draws=100))
    assert "p Holm/2" in to_text(compare(two, draws=100))


def test_event_rates_stand_event_by_event():
    fires = verdicts(rows("aw"), lambda entry: True)
    comparison = compare(frame(verdicts(rows("base"), lambda entry: False), fires), draws=100)
    text = to_text(comparison, events=True)
    assert "maturity events (preset paper), simulated executor" in text
    line = next(line for line in text.splitlines() if "CheckBeforeSubmit" in line and "| aw" in line)
    assert "1.000 [0.692, 1.000]" in line
    assert "+1.000" in line
    assert render_events(compare(frame(rows("base"), rows("aw")), draws=100)) is None


@pytest.mark.parametrize("width", [80, 100, 149, 150])
def test_no_width_loses_a_figure(width: int):
    two = frame(
        rows("base"),
        rows("check_revise", 0.1),
        rows("base", setting="dbbench"),
        rows("check_revise", setting="dbbench"),
    )
    two = two.with_columns(pl.col("return") + pl.Series(np.random.default_rng(0).uniform(0, 0.1, len(two))))
    comparison = compare(two, draws=200)
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    console.print(render(comparison))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    for _, row in comparison.rows.iterrows():
        assert f"{row['mean']:.3f}" in shown
        assert f"[{row['mean_low']:.3f}, {row['mean_high']:.3f}]" in shown
        if row["arm"] != "base":
            assert f"[{row['ci_low']:+.3f}, {row['ci_high']:+.3f}]" in shown


def test_a_narrow_terminal_still_says_what_is_degenerate():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    console.print(render(compare(frame(rows("base"), rows("aw", 0.1)), draws=100)))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Degenerate: coding aw, quality delta: zero variance." in shown


def test_a_rate_without_an_interval_is_shown_as_a_rate():
    base, aw = verdicts(rows("base"), lambda entry: False), verdicts(rows("aw"), lambda entry: True)
    for entry in base:
        for told in entry["maturity_events"]:  # type: ignore[attr-defined]
            told["applicable"] = told["applicable"] and entry["task_id"] == "t00"
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(render_events(compare(frame(base, aw), draws=100)))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    line = next(line for line in shown.splitlines() if "CheckBeforeSubmit" in line and " aw" in line)
    assert "+1.000" in line
    assert "applicable in 1 task only" in line
    assert "nan" not in shown
