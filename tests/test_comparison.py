"""Arms compared on matched pairs: figures by hand, and a refusal that names what is not matched."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pandas.testing import assert_frame_equal

from analysis.comparison import compare
from analysis.frame import planned_episodes
from harness_mdp.errors import ConfigError, InputError, UnusableBuffer
from tests.arms import frame, rows, verdicts


def row(comparison, arm: str, outcome: str = "quality", setting: str = "coding"):
    table = comparison.rows
    return table[(table.arm == arm) & (table.outcome == outcome) & (table.setting == setting)].squeeze()


def test_means_and_paired_differences_by_hand():
    better = rows("aw")
    for i, entry in enumerate(better):
        entry["return"] += 0.1 if i % 4 == 0 else 0.0  # one rollout of four gains 0.1
        entry["maturity"] += 0.2 if i < 4 else 0.0  # the first of ten tasks gains 0.2
    result = compare(frame(rows("base"), better), draws=2000)
    quality, maturity = row(result, "aw"), row(result, "aw", "maturity")
    base_mean = (4.5 + 0.15) / 20
    assert row(result, "base")["mean"] == pytest.approx(base_mean)
    assert quality["mean"] == pytest.approx(base_mean + 0.025)
    assert quality["reference_mean"] == pytest.approx(base_mean)
    assert quality["delta"] == pytest.approx(0.025)
    assert maturity["delta"] == pytest.approx(0.02)
    assert quality["p"] == 2 / 2**10
    assert maturity["p"] == 1.0
    assert (quality["n_tasks"], quality["n_episodes"]) == (10, 40)


def test_an_arm_without_spread_says_that_its_interval_rests_on_no_spread():
    aw = row(compare(frame(rows("base"), rows("aw", 0.1)), draws=500), "aw")
    assert aw["delta"] == pytest.approx(0.1)
    assert aw["ci_low"] < 0 < 0.1 < aw["ci_high"]
    assert aw["degenerate"]
    assert aw["note"] == "delta: zero variance"


def test_every_mean_has_its_interval_and_n():
    result = compare(frame(rows("base"), rows("aw", 0.1), rows("bc", -0.0)), draws=500).rows
    assert len(result) == 6
    assert (result.mean_low <= result["mean"]).all()
    assert (result["mean"] <= result.mean_high).all()
    assert (result.n_tasks == 10).all()
    assert (result.n_episodes == 40).all()
    assert result[result.arm != "base"].ci_low.notna().all()
    assert result[result.arm == "base"].delta.isna().all()


def test_arms_come_in_the_order_given_with_the_reference_first():
    table = frame(rows("aw"), rows("bc"), rows("base"))
    assert compare(table, draws=100).arms == ("base", "aw", "bc")
    result = compare(table, arms=["bc", "aw"], draws=100)
    assert result.arms == ("base", "bc", "aw")
    assert list(result.rows.arm) == ["base", "bc", "aw"] * 2


def test_neither_row_order_nor_kind_of_frame_matters():
    table = frame(rows("base"), rows("aw", 0.05))
    noisy = table.with_columns(pl.col("return") + pl.Series(np.random.default_rng(0).uniform(0, 0.2, len(table))))
    expected = compare(noisy, draws=500).rows
    shuffled = pl.concat(
        [noisy.filter(pl.col("arm") == arm).sample(fraction=1, shuffle=True, seed=3) for arm in ("base", "aw")]
    )
    assert_frame_equal(compare(shuffled, draws=500).rows, expected)
    assert_frame_equal(compare(noisy.to_pandas(), draws=500).rows, expected)


def test_the_policy_names_the_arm_where_no_arm_is_given():
    result = compare(frame(rows("base"), rows("aw")).drop("arm", "setting"), draws=100)
    assert set(result.rows.arm) == {"base", "aw"}


def test_three_training_seeds_are_one_arm_on_the_rollouts_of_the_reference():
    seeds = [rows("aw", 0.1 * s, rollouts=range(3 * s, 3 * s + 3), policy=f"aw-{s}", tasks=5) for s in range(3)]
    result = compare(frame(rows("base", rollouts=range(9), tasks=5), *seeds), draws=500)
    aw = row(result, "aw")
    assert aw["delta"] == pytest.approx(0.1)
    assert aw["n_episodes"] == 45
    assert aw["manifest"] == row(result, "base")["manifest"]


def test_one_training_seed_is_matched_to_its_own_rollouts_of_the_reference():
    one = rows("aw", 0.1, rollouts=range(3, 6), tasks=5)
    result = compare(frame(rows("base", rollouts=range(9), tasks=5), one), draws=500)
    aw, base = row(result, "aw"), row(result, "base")
    assert aw["delta"] == pytest.approx(0.1)
    assert aw["reference_mean"] == pytest.approx((2 + 0.4) / 20)
    assert (aw["n_episodes"], base["n_episodes"]) == (15, 45)
    assert aw["manifest"] != base["manifest"]


def test_a_pair_that_an_arm_lacks_is_an_error_that_names_it():
    lacking = [entry for entry in rows("aw") if (entry["task_id"], entry["rollout"]) != ("t03", 2)]
    with pytest.raises(UnusableBuffer, match=r"arm aw lacks 1 of the 40 pairs \(task t03 rollout 2\)"):
        compare(frame(rows("base"), lacking))
    with pytest.raises(UnusableBuffer, match=r"arm base lacks 40 of the 80 pairs asked of arm aw \(task t00 rollout 4"):
        compare(frame(rows("base"), rows("aw", rollouts=range(8))))
    with pytest.raises(UnusableBuffer, match=r"arm aw lacks 20 of the 40 pairs.* and 15 more"):
        compare(frame(rows("base"), rows("aw", tasks=5)))


def test_a_pair_that_an_arm_has_twice_is_an_error_that_names_the_policies():
    with pytest.raises(UnusableBuffer, match=r"aw has 2 episodes for task t00 rollout 0 \(policies aw-0, aw-1\)"):
        compare(frame(rows("base"), rows("aw", policy="aw-0"), rows("aw", policy="aw-1")))


@pytest.mark.parametrize(
    ("column", "value"),
    [("seed", 1), ("executor", "openai-x"), ("task_hash", "other"), ("horizon", 12), ("token_budget", 5000)],
)
def test_arms_evaluated_under_other_conditions_are_refused_by_name(column: str, value: object):
    with pytest.raises(UnusableBuffer, match=f"manifests do not match: {column} differs in 40 of 40 pairs"):
        compare(frame(rows("base"), rows("aw", **{column: value})))


def missing(arm: str, n: int, **changes: object) -> list[dict[str, object]]:
    table = rows(arm, **changes)
    for entry in table[:n]:
        entry.update({"eval_status": "infra_missing", "return": None, "maturity": None})
    return table


def test_up_to_five_percent_missing_is_left_out_and_counted():
    result = compare(frame(missing("base", 1), missing("aw", 2)), draws=200)
    aw, base = row(result, "aw"), row(result, "base")
    assert (aw["n_episodes"], aw["n_infra_missing"], aw["delta"]) == (38, 2, 0)
    assert (base["n_episodes"], base["n_infra_missing"]) == (39, 1)


def test_more_than_five_percent_missing_is_refused():
    with pytest.raises(UnusableBuffer, match=r"arm aw: 3 of 40 pairs lack a return .*7\.5 %"):
        compare(frame(rows("base"), missing("aw", 3)))
    # a missing reference counts against the pairs as well
    with pytest.raises(UnusableBuffer, match="arm base: 3 of 40"):
        compare(frame(missing("base", 3), rows("aw")))


def test_missing_rows_can_be_added_from_the_plan():
    done = frame(rows("base"), rows("aw", 0.1))
    planned = done.select(
        "episode_id", "setting", "arm", "task_id", "task_hash", "rollout", "executor", "seed", "horizon"
    )
    partly = done.filter(~((pl.col("arm") == "aw") & (pl.col("task_id") == "t00") & (pl.col("rollout") == 0)))
    result = compare(planned_episodes(planned, partly), draws=100)
    assert row(result, "aw")["n_infra_missing"] == 1
    assert row(result, "aw")["delta"] == pytest.approx(0.1)
    assert planned_episodes(planned, done).select(done.columns).equals(done)


def test_missing_rows_need_to_name_only_their_pair():
    table = missing("aw", 1, horizon=10)
    table[0] |= {"horizon": None}
    aw, base = (row(compare(frame(rows("base"), table), draws=100), arm) for arm in ("aw", "base"))
    assert aw["n_infra_missing"] == 1
    assert aw["manifest"] == base["manifest"]


def test_invalid_episodes_count_with_return_zero():
    table = rows("aw")
    table[3].update({"eval_status": "invalid", "return": 0.0})
    aw = row(compare(frame(rows("base"), table), draws=200), "aw")
    assert aw["n_invalid"] == 1
    assert aw["n_episodes"] == 40
    assert aw["delta"] == pytest.approx(-(0.3 / 20) / 40)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eval_status": "invalid"}, "return 0 for an invalid episode"),
        ({"eval_status": "infra_missing"}, "no return for infra_missing"),
        ({"return": None}, "a return in"),
        ({"return": 1.5}, "a return in"),
        ({"eval_status": "lost"}, "an eval_status of scored, invalid, infra_missing"),
        ({"maturity": 2.0}, "maturity in"),
    ],
)
def test_a_row_that_contradicts_itself_is_named(change: dict[str, object], message: str):
    table = rows("aw")
    table[5] |= change
    with pytest.raises(InputError, match=f"arm aw, task t01, rollout 1.*{message}"):
        compare(frame(rows("base"), table))


def test_one_task_is_refused():
    with pytest.raises(UnusableBuffer, match=r"1 task with a return; .*need at least two"):
        compare(frame(rows("base", tasks=1), rows("aw", tasks=1)))


def test_what_was_asked_and_is_not_there_is_named():
    table = frame(rows("base"), rows("aw"))
    with pytest.raises(ConfigError, match="no episodes of arm forced_check; there are episodes of base, aw"):
        compare(table, "forced_check")
    with pytest.raises(ConfigError, match="no column seed, return"):
        compare(table.drop("seed", "return"))
    with pytest.raises(ConfigError, match="no episodes to compare"):
        compare(table.clear())
    with pytest.raises(ConfigError, match="1 of 80 episodes name no setting"):
        compare(frame(rows("base"), [rows("aw")[0] | {"setting": None}, *rows("aw")[1:]]))
    other = frame(rows("aw", setting="dbbench"))
    with pytest.raises(ConfigError, match="setting dbbench has no episodes of the reference arm base"):
        compare(pl.concat([table, other]))


def test_p_is_adjusted_over_settings_for_each_arm_and_outcome():
    rng = np.random.default_rng(7)
    parts = []
    for setting in ("coding", "dbbench", "research"):
        for arm in ("base", "aw", "bc"):
            part = rows(arm, setting=setting)
            for entry in part:
                entry["return"] += rng.uniform(0, 0.1)
            parts.append(part)
    result = compare(frame(*parts), draws=200).rows
    for arm in ("aw", "bc"):
        family = result[(result.arm == arm) & (result.outcome == "quality")]
        p, adjusted = np.sort(family.p), family.sort_values("p").p_holm.to_numpy()
        assert adjusted[0] == pytest.approx(min(1, 3 * p[0]))
        assert (adjusted >= p).all()
    assert result[result.arm == "base"].p_holm.isna().all()


def test_maturity_is_read_by_preset_as_the_buffer_stores_it():
    table = frame(rows("base"), rows("aw", 0.1))
    scores = [[{"preset": "paper", "score": 0.5}, {"preset": "strict", "score": 0.25}] for _ in range(len(table))]
    nested = table.with_columns(maturity=pl.Series(scores))
    for kind in (nested, nested.to_pandas()):
        assert row(compare(kind, draws=100), "aw", "maturity")["mean"] == 0.5
        assert row(compare(kind, preset="strict", draws=100), "aw", "maturity")["mean"] == 0.25
    flat = table.drop("maturity").with_columns(maturity_paper=pl.lit(0.5), maturity_strict=pl.lit(None, pl.Float64))
    assert row(compare(flat, draws=100), "aw", "maturity")["mean"] == 0.5
    assert set(compare(flat, preset="strict", draws=100).rows.outcome) == {"quality"}
    assert set(compare(nested, preset="other", draws=100).rows.outcome) == {"quality"}
    assert set(compare(table.drop("maturity"), draws=100).rows.outcome) == {"quality"}


def test_event_rates_are_among_applicable_episodes():
    base = verdicts(rows("base"), lambda entry: False)
    aw = verdicts(rows("aw"), lambda entry: entry["task_id"] < "t05" and entry["rollout"] < 2)
    events = compare(frame(base, aw), draws=500).events
    check = events[(events.arm == "aw") & (events.event == "CheckBeforeSubmit")].squeeze()
    assert check["rate"] == pytest.approx(10 / 30)
    assert check["reference_rate"] == 0
    assert check["delta"] == pytest.approx(10 / 30)
    assert 0 < check["ci_low"] < check["delta"] < check["ci_high"] <= 1
    assert (check["n_applicable"], check["n_applicable_reference"], check["n_tasks"]) == (30, 30, 10)
    unused = events[(events.arm == "aw") & (events.event == "ValidToolUse")].squeeze()
    assert unused["n_applicable"] == 0
    assert pd.isna(unused["rate"])
    assert pd.isna(unused["delta"])


def test_without_verdicts_there_are_no_event_rates():
    assert compare(frame(rows("base"), rows("aw")), draws=100).events.empty


def test_an_event_that_hardly_ever_applied_has_a_rate_and_no_interval():
    def only_in(arm: list[dict[str, object]], tasks: int) -> list[dict[str, object]]:
        for entry in verdicts(arm, lambda entry: entry["arm"] == "aw"):
            for told in entry["maturity_events"]:  # type: ignore[attr-defined]
                told["applicable"] = told["applicable"] and entry["task_id"] < f"t{tasks:02}"
        return arm

    def check(base: int, aw: int) -> pd.Series:
        events = compare(frame(only_in(rows("base"), base), only_in(rows("aw"), aw)), draws=200).events
        return events[(events.arm == "aw") & (events.event == "CheckBeforeSubmit")].squeeze()

    # A base that could have checked in one task and did not would be a rate of 0 without any doubt.
    told = check(1, 10)
    assert (told["rate"], told["delta"]) == (1, 1)
    assert not pd.isna(told["rate_low"])
    assert pd.isna(told["ci_low"])
    assert pd.isna(told["ci_high"])
    assert told["note"].endswith("applicable in 1 task only")
    told = check(10, 4)
    assert pd.isna(told["rate_low"])
    assert pd.isna(told["ci_low"])
    assert told["note"] == "applicable in 4 tasks only"
    assert not pd.isna(check(5, 5)["ci_low"])
