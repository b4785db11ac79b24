"""Maturity against quality: a pooled correlation that misleads is shown up by those within."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.correlation import correlation_within
from analysis.maturity_quality import maturity_against_quality, maturity_and_quality
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.scoring.maturity import PRESETS
from tests.analysis_buffers import buffer
from tests.arms import frame, rows


def zeros(n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.int64)


def of(x, y, **groups):
    n = len(x)
    given = {"group": zeros(n), "task": np.arange(n), "stratum": zeros(n)} | groups
    return correlation_within(np.asarray(x, float), np.asarray(y, float), draws=500, **given)


def test_without_groups_it_is_pearson():
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = 0.5 * x + rng.normal(size=40)
    found = of(x, y)
    assert found.r == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert found.low < found.r < found.high


def test_tasks_weigh_equally_whatever_their_number_of_episodes():
    x, y, task = [0.0, 1.0, 3.0], [1.0, 0.0, 2.0], np.array([0, 1, 2])
    often = np.array([0, 1, 2, 2, 2, 2])
    assert of([x[t] for t in often], [y[t] for t in often], task=often).r == pytest.approx(of(x, y, task=task).r)


def test_within_groups_it_is_pearson_of_what_is_left_of_their_means():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 4, 60)
    x, y = rng.normal(size=60) + group, rng.normal(size=60) + 2 * group
    left = [v - np.array([v[group == g].mean() for g in range(4)])[group] for v in (x, y)]
    assert of(x, y, group=group).r == pytest.approx(np.corrcoef(*left)[0, 1])


def test_groups_inside_tasks_are_taken_out_the_same_way():
    rng = np.random.default_rng(2)
    task = np.repeat(np.arange(15), 4)
    x, y = rng.normal(size=60) + task, rng.normal(size=60) - task
    left = [v - np.repeat(v.reshape(15, 4).mean(axis=1), 4) for v in (x, y)]
    assert of(x, y, group=task, task=task).r == pytest.approx(np.corrcoef(*left)[0, 1])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-6, 0.5, 1e3]), shift=st.sampled_from([-5.0, 0.0, 2.0]))
def test_scale_and_shift_and_order_do_not_matter(seed: int, scale: float, shift: float):
    rng = np.random.default_rng(seed)
    task, group = np.repeat(np.arange(8), 3), np.tile([0, 1, 0], 8)
    x, y = rng.integers(0, 4, 24) / 3, rng.integers(0, 3, 24) / 2
    here = of(x, y, task=task, group=group)
    there = of(x * scale + shift, y, task=task, group=group)
    order = rng.permutation(24)
    shuffled = of(x[order], y[order], task=task[order], group=group[order])
    for other in (there, shuffled):
        assert other.r == pytest.approx(here.r, abs=1e-6, nan_ok=True)
        assert other.low == pytest.approx(here.low, abs=1e-5, nan_ok=True)


def test_without_spread_there_is_no_correlation_and_no_interval():
    found = of(np.ones(10), np.arange(10))
    assert np.isnan([found.r, found.low, found.high]).all()


def test_where_few_tasks_vary_there_is_no_interval():
    found = of([0.0] * 9 + [1.0], np.arange(10))
    assert found.r > 0
    assert found.undefined > 0.3  # the one task is not drawn
    assert np.isnan([found.low, found.high]).all()


def test_the_interval_is_of_tasks_and_not_of_episodes():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=20), rng.normal(size=20)
    once, often = np.arange(20), np.repeat(np.arange(20), 30)
    few, many = of(x, y, task=once), of(x[often], y[often], task=often)
    assert (many.r, many.low, many.high) == pytest.approx((few.r, few.low, few.high))


def test_the_interval_covers():
    rng = np.random.default_rng(6)
    task, hits = np.repeat(np.arange(20), 3), 0
    for _ in range(200):
        own = rng.normal(size=20)[task]
        x = own + rng.normal(size=60)
        y = 0.5 * x + own + rng.normal(size=60)
        # cov = 0.5·2 + 1; var x = 2; var y = 0.25·2 + 1 + 2·0.5 + 1
        true = 2 / np.sqrt(2 * 3.5)
        found = of(x, y, task=task)
        hits += found.low <= true <= found.high
    assert 0.9 <= hits / 200 <= 0.99


def simpson() -> pl.DataFrame:
    """An easy setting that is worked on neatly, and a hard one that is not; within each, no relation at all."""
    rng = np.random.default_rng(7)
    parts = []
    for setting, level in (("easy", 0.7), ("hard", 0.3)):
        for arm in ("base", "aw"):
            part = rows(arm, setting=setting, tasks=12)
            for entry in part:
                entry["return"] = float(np.clip(level + rng.normal(0, 0.1), 0, 1))
                entry["maturity_strict"] = float(np.clip(level + rng.normal(0, 0.1), -1, 1))
            parts.append(part)
    return frame(*parts)


def test_a_pooled_correlation_that_is_the_settings_vanishes_within_them():
    table = maturity_against_quality(simpson(), draws=500).set_index("scope")
    pooled, within = table.loc["pooled"], table.loc["within setting"]
    assert pooled["r"] > 0.6
    assert pooled["low"] > 0.5
    assert within["low"] < 0 < within["high"]
    assert (table["n_episodes"].loc["setting"] == 96).all()
    assert table.loc["pooled", "n_tasks"] == 24  # two settings may call a task alike


def test_every_setting_and_policy_has_a_row_with_its_n():
    table = maturity_against_quality([buffer(), buffer("multi_tool")], draws=300)
    assert table.loc[table["scope"] == "setting", "setting"].tolist() == ["research", "multi_tool"]
    arms = {"base", "forced_check", "check_revise", "bc"}
    assert set(table.loc[table["scope"] == "policy", "arm"]) == arms
    assert (table.loc[table["scope"] == "setting and policy", "n_tasks"] == 8).all()
    known = table.dropna(subset=["r", "low"])
    assert (known["low"] <= known["r"]).all()
    assert (known["r"] <= known["high"]).all()
    assert (table.loc[table["r"].isna(), "note"].str.contains("does not vary")).all()
    assert table["simulated"].all()


def test_a_maturity_that_reads_quality_is_refused():
    with pytest.raises(ConfigError, match="reads quality in EarlySubmit"):
        maturity_against_quality(buffer(), PRESETS["paper"])


def test_another_configuration_is_scored_from_the_events():
    lenient = replace(PRESETS["strict"], preset="lenient", sufficient_score=0.0)
    table = maturity_and_quality(buffer(), lenient)
    strict = maturity_and_quality(buffer())
    assert len(table) == len(strict)
    assert (table["maturity"] >= strict["maturity"]).all()
    assert table["maturity"].mean() > strict["maturity"].mean()


def test_frames_without_the_preset_are_refused():
    with pytest.raises(ConfigError, match="no column maturity_strict"):
        maturity_against_quality(frame(rows("base"), rows("aw")))
    nothing = frame(rows("base"), rows("aw")).with_columns(maturity_strict=pl.lit(None, pl.Float64))
    with pytest.raises(UnusableBuffer, match="none of 80 episodes has a maturity"):
        maturity_against_quality(nothing)
