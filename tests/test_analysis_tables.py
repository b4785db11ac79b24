"""Main table, ablation, events, slack, cost, sensitivity, transfer: figures by hand, and of a small study."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from analysis.cost import cost_frontier, on_frontier
from analysis.evaluations import evaluation_episodes
from analysis.main_table import ablation, event_by_setting, main_table
from analysis.sensitivity import early_submit_sensitivity
from analysis.slack import slack_against_gain
from analysis.transfer import executor_transfer, with_training_executor
from buffers import ReplayBuffer
from experiments.evaluation import comparison_of
from harness_mdp.errors import ConfigError, UnusableBuffer
from tests.analysis_buffers import buffer, study
from tests.arms import frame, rows, verdicts


def noisy(arm: str, gain: float = 0.0, **changes: object) -> list[dict[str, object]]:
    """An arm whose gain is another in every task, and after another pattern in every arm."""
    table = rows(arm, gain, **changes)
    for entry in table:
        entry["return"] += 0.01 * (int(str(entry["task_id"])[1:]) % (2 + len(arm) % 7))
    return table


def test_the_main_table_of_a_buffer_is_that_of_its_evaluation():
    expected = comparison_of([study().evaluation]).rows
    table = main_table(buffer())
    assert_frame_equal(table[expected.columns], expected)
    assert table["simulated"].all()
    assert set(table.loc[table["outcome"] == "maturity", "preset"]) == {"paper"}
    assert table.loc[table["arm"] == "bc", "n_episodes"].tolist() == [32, 32]  # two training seeds are one arm


def test_several_buffers_are_one_table_with_holm_over_their_settings():
    both = main_table([buffer(), buffer("multi_tool")])
    alone = main_table(buffer())
    assert both["setting"].unique().tolist() == ["research", "multi_tool"]
    keys = ["setting", "arm", "outcome"]
    joined = both.merge(alone, on=keys, suffixes=("", "_alone")).dropna(subset="p")
    assert joined["p"].tolist() == joined["p_alone"].tolist()
    assert (joined["p_holm"] >= joined["p_holm_alone"]).all()


def test_a_planned_episode_that_is_not_there_is_counted_as_missing(tmp_path):
    source, copy = ReplayBuffer(buffer()), ReplayBuffer(tmp_path / "b")
    kept = list(source.episodes(phase="eval"))
    lost = next(e for e in kept if e.policy == "check_revise")
    copy.append([e for e in kept if e is not lost])
    for name, run in source.harness.runs().items():
        copy.harness.write_run(name, passed=run["passed"], resolved=run["resolved"])
    table = main_table(tmp_path / "b")
    row = table[(table["arm"] == "check_revise") & (table["outcome"] == "quality")].squeeze()
    assert (row["n_infra_missing"], row["n_episodes"]) == (1, 31)
    # Without the plans nobody can know that it is missing, and the arms are no longer matched.
    for path in (Path(copy.path) / "_harness" / "runs").glob("*.json"):
        manifest = json.loads(path.read_text())
        manifest["resolved"].pop("plan", None)
        path.write_text(json.dumps(manifest))
    with pytest.raises(UnusableBuffer, match="arm check_revise lacks 1 of"):
        main_table(tmp_path / "b")


def test_a_frame_can_be_narrowed_before():
    again = pl.concat([frame(rows("base"), noisy("aw")), frame(rows("base", seed=1), noisy("aw", 0.1, seed=1))])
    with pytest.raises(UnusableBuffer, match="an arm has one"):
        main_table(again)
    table = main_table(evaluation_episodes(again, seed=1))
    assert table.loc[(table["arm"] == "aw") & (table["outcome"] == "quality"), "delta"].item() > 0.1


def test_ablation_says_what_is_learned_and_judges_it_against_the_rule():
    table = ablation(
        frame(rows("base"), noisy("check_revise", 0.2), noisy("aw", 0.3), noisy("bc"), rows("forced_check"))
    )
    found = table.set_index("arm")
    assert found["kind"].to_dict() == {
        "check_revise": "script",
        "aw": "learner",
        "bc": "learner",
        "forced_check": "script",
    }
    assert found.loc["aw", "to_rule"] == pytest.approx(0.1, abs=0.02)
    assert found.loc["bc", "judgement"] == "worse"
    assert found.loc["check_revise", "judgement"] == ""
    assert np.isnan(found.loc["forced_check", "to_rule"])


def test_ablation_without_the_rule_has_no_judgement():
    table = ablation(frame(rows("base"), noisy("aw", 0.1)))
    assert table["judgement"].tolist() == [""]
    assert table["delta"].notna().all()


def test_events_are_rates_by_setting():
    table = event_by_setting(
        frame(verdicts(rows("base"), lambda e: False), verdicts(rows("aw"), lambda e: e["rollout"] == 0))
    )
    check = table[(table["arm"] == "aw") & (table["event"] == "CheckBeforeSubmit")].squeeze()
    assert check["rate"] == pytest.approx(1 / 3)
    assert check["preset"] == "paper"


def test_slack_is_that_of_the_collected_episodes():
    table = slack_against_gain(buffer())
    collected = ReplayBuffer(buffer()).episodes_df(phase="collect", split="train").to_pandas()
    by_task = collected.groupby("task_hash")["return"]
    assert table["slack"].unique() == pytest.approx([(by_task.max() - by_task.mean()).mean()])
    assert set(table["arm"]) == {"bc", "forced_check", "check_revise"}
    quality = main_table(buffer()).query("outcome == 'quality'").set_index("arm")["delta"]
    assert table.set_index("arm")["gain"].to_dict() == pytest.approx(quality.drop("base").to_dict())


def test_slack_of_two_executors_is_refused(tmp_path):
    from dataclasses import replace

    source, copy = ReplayBuffer(buffer()), ReplayBuffer(tmp_path / "b")
    kept = list(source.episodes())
    other = [replace(e, executor="openai-x", episode_id=f"x{i}") for i, e in enumerate(kept) if e.phase == "collect"]
    copy.append([*kept, *other])
    with pytest.raises(UnusableBuffer, match="collected with 2 executors"):
        slack_against_gain(tmp_path / "b")


def costly() -> pd.DataFrame:
    table = frame(rows("base", tokens=100), noisy("good", 0.2, tokens=300), rows("bad", tokens=200))
    return cost_frontier(table.with_columns(n_steps=pl.lit(4), cost_usd=pl.lit(None, pl.Float64)))


def test_a_dearer_arm_that_is_no_better_is_dominated():
    found = costly().set_index("arm")
    assert found["pareto_tokens"].to_dict() == {"base": True, "good": True, "bad": False}
    assert found["tokens"].to_dict() == {"base": 100, "good": 300, "bad": 200}
    # All take as many steps: only the best is not dominated.
    assert found["pareto_steps"].to_dict() == {"base": False, "good": True, "bad": False}


def test_an_unknown_price_is_neither_zero_nor_on_the_frontier():
    found = costly()
    assert found["usd"].isna().all()
    assert not found["pareto_usd"].any()


def test_a_cost_that_never_varies_has_an_interval_within_the_setting():
    found = costly().set_index("arm")
    assert found.loc["base", "tokens_low"] < 100 < found.loc["base", "tokens_high"] <= 300


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_the_frontier_is_what_nothing_dominates(arms: list[tuple[int, int]]):
    quality, cost = (np.array(column, dtype=float) for column in zip(*arms, strict=True))
    flags = on_frontier(quality, cost)
    assert flags.any()
    for i, flag in enumerate(flags):
        dominators = [
            j
            for j in range(len(arms))
            if quality[j] >= quality[i] and cost[j] <= cost[i] and (quality[j], cost[j]) != (quality[i], cost[i])
        ]
        assert flag == (not dominators)


def test_sensitivity_at_the_preset_s_threshold_is_the_stored_score():
    path = buffer()
    table = early_submit_sensitivity(path, {"early_share": (0.25, 0.9)})
    stored = main_table(path).query("outcome == 'maturity'").set_index("arm")
    at_preset = table[table["value"] == 0.25].set_index("arm")
    assert at_preset["mean"].to_dict() == pytest.approx(stored["mean"].to_dict())
    assert at_preset["ci_low"].to_dict() == pytest.approx(stored["ci_low"].to_dict(), nan_ok=True)
    strict = table[table["preset"] == "strict"].set_index("arm")
    expected = main_table(path, preset="strict").query("outcome == 'maturity'").set_index("arm")
    assert strict["mean"].to_dict() == pytest.approx(expected["mean"].to_dict())
    assert (table["early_submit_rate"].between(0, 1)).all()


def test_a_wider_threshold_never_makes_early_submission_rarer():
    table = early_submit_sensitivity(buffer(), {"missed_share": (0.2, 0.5, 1.0)})
    for _, arm in table[table["threshold"] == "missed_share"].groupby("arm"):
        rates = arm.sort_values("value")["early_submit_rate"].tolist()
        assert rates == sorted(rates, reverse=True)


def test_sensitivity_writes_nothing_into_the_buffer():
    before = sorted(Path(buffer()).rglob("*"))
    early_submit_sensitivity(buffer(), {"early_share": (0.3,)})
    assert sorted(Path(buffer()).rglob("*")) == before


def test_unknown_thresholds_are_refused():
    with pytest.raises(ConfigError, match="revision_window: no threshold of EarlySubmit"):
        early_submit_sensitivity(buffer(), {"revision_window": (1.0,)})
    with pytest.raises(ConfigError, match="expected 0 to 1"):
        early_submit_sensitivity(buffer(), {"early_share": (1.5,)})
    with pytest.raises(ConfigError, match="no threshold"):
        early_submit_sensitivity(buffer(), {})


def test_transfer_puts_the_executor_of_training_beside_that_of_evaluation():
    parts = []
    for executor, gain in (("one", 0.2), ("two", 0.05)):
        parts += [rows("base", executor=executor), noisy("check_revise", 0.1, executor=executor)]
        for trained_on in ("one", "two"):
            bonus = gain if trained_on == executor else 0.0
            label = f"aw of {trained_on}"
            parts.append(noisy(label, bonus, executor=executor, trained_on=trained_on))
    table = executor_transfer(frame(*[[{"trained_on": None} | e for e in part] for part in parts]))
    cells = table[table["trained_on"] != ""].set_index(["trained_on", "evaluated_on"])["delta"]
    assert cells["one", "one"] == pytest.approx(cells["two", "one"] + 0.2)
    assert cells["two", "two"] == pytest.approx(cells["one", "two"] + 0.05)
    assert table.loc[table["trained_on"] == "", "arm"].tolist() == ["check_revise", "check_revise"]
    assert (table["same"] == (table["trained_on"] == table["evaluated_on"])).all()


def test_the_executor_of_training_is_read_from_the_controllers():
    controllers = [str(training.out) for training in study().trainings]
    table = with_training_executor(evaluation_episodes(buffer()), controllers)
    learned = table.filter(pl.col("arm") == "bc")
    assert learned["trained_on"].unique().to_list() == learned["executor"].unique().to_list()
    assert table.filter(pl.col("arm") == "base")["trained_on"].null_count() == 16 * 2
    assert executor_transfer(table).query("arm == 'bc'")["same"].all()
