"""Every analysis refuses what it cannot answer with a message that says what was found, and no traceback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from analysis.actions import action_distribution, what_was_learned
from analysis.cost import cost_frontier
from analysis.evaluations import evaluation_episodes
from analysis.main_table import ablation, event_by_setting, main_table
from analysis.maturity_quality import maturity_against_quality
from analysis.sensitivity import early_submit_sensitivity
from analysis.slack import slack_against_gain
from analysis.transfer import executor_transfer
from buffers import ReplayBuffer
from buffers.side import Attempt
from controllers.exploration import Uniform
from harness_mdp.errors import ConfigError, HarnessError, InputError, SchemaMismatch, UnusableBuffer
from tests.arms import frame, rows
from tests.episodes import Behaviour, MadeUpSetting, episodes

OF_FRAMES = [main_table, ablation, event_by_setting, cost_frontier, maturity_against_quality, executor_transfer]
OF_BUFFERS = [slack_against_gain, early_submit_sensitivity, action_distribution]
COMPARING = [main_table, ablation, event_by_setting, cost_frontier, executor_transfer]


def arms(*parts: list[dict[str, object]]) -> pl.DataFrame:
    """With every column that some analysis needs."""
    table = frame(*parts).with_columns(trained_on=pl.lit(None, pl.String), tokens=pl.lit(100), n_steps=pl.lit(4))
    return table.with_columns(maturity_strict=pl.col("maturity"), maturity_paper=pl.col("maturity"))


def made_up(path, *, setting: MadeUpSetting | None = None, **kwargs) -> list:
    """Evaluation episodes of base and another arm on three tasks, two rollouts."""
    found = []
    for name, epsilon in (("base", 0.1), ("other", 0.6)):
        policy = Behaviour(epsilon, name)
        extra = {} if setting is None else {"setting": setting}
        found += episodes(6, policy=policy, tasks=3, phase="eval", split="eval", **extra, **kwargs)
    if path is not None:
        ReplayBuffer(path).append(found)
    return found


@pytest.mark.parametrize("analysis", [*OF_FRAMES, *OF_BUFFERS])
def test_a_path_without_a_buffer(analysis: Callable, tmp_path):
    with pytest.raises(InputError, match="nothing"):
        analysis(tmp_path / "nothing")


@pytest.mark.parametrize("analysis", [*OF_FRAMES, *OF_BUFFERS])
def test_an_empty_buffer(analysis: Callable, tmp_path):
    ReplayBuffer(tmp_path / "b").prepare()
    with pytest.raises(UnusableBuffer, match=r"holds no episodes\. Collect and evaluate first"):
        analysis(tmp_path / "b")


@pytest.mark.parametrize("analysis", [*OF_FRAMES, *OF_BUFFERS])
def test_a_buffer_that_was_only_collected(analysis: Callable, tmp_path):
    ReplayBuffer(tmp_path / "b").append(episodes(4))
    with pytest.raises(UnusableBuffer, match=r"no evaluation episodes.*harness_mdp.evaluate"):
        analysis(tmp_path / "b")


@pytest.mark.parametrize("analysis", OF_FRAMES)
def test_an_empty_frame(analysis: Callable):
    with pytest.raises(HarnessError, match="no evaluation episodes"):
        analysis(arms(rows("base")).clear())
    with pytest.raises(ConfigError, match="no buffer and no episodes"):
        analysis([])


@pytest.mark.parametrize("analysis", COMPARING)
def test_unmatched_arms(analysis: Callable):
    with pytest.raises(
        UnusableBuffer,
        match=r"setting coding: the arms are not matched: arm aw lacks 20 of the 40 pairs .*Run",
    ):
        analysis(arms(rows("base"), rows("aw", tasks=5)))
    with pytest.raises(ConfigError, match=r"no episodes of arm base; there are episodes of aw\. Choose among these"):
        analysis(arms(rows("aw")))


def test_a_reference_that_one_setting_lacks():
    with pytest.raises(ConfigError, match=r"setting planning has no episodes of the reference arm base\. Evaluate it"):
        main_table(arms(rows("base"), rows("aw"), rows("aw", setting="planning")))


@pytest.mark.parametrize("analysis", [slack_against_gain, early_submit_sensitivity])
def test_a_buffer_whose_arms_are_not_matched_or_have_one_task(analysis: Callable, tmp_path, monkeypatch):
    monkeypatch.setattr("analysis.rejudging.open_setting", lambda _: MadeUpSetting())
    for name, tasks, lost, told in (("one", 1, 0, "1 task with a"), ("odd", 3, 1, "arm other lacks 1 of the 6")):
        found = [*episodes(6, tasks=3)]
        for arm, epsilon in (("base", 0.1), ("other", 0.6)):
            missing = lost if arm == "other" else 0
            policy = Behaviour(epsilon, arm)
            found += episodes(2 * tasks - missing, policy=policy, tasks=tasks, phase="eval", split="eval")
        ReplayBuffer(tmp_path / name).append(found)
        with pytest.raises(UnusableBuffer, match=f"setting made_up: .*{told}"):
            analysis(tmp_path / name)


@pytest.mark.parametrize("analysis", OF_FRAMES)
def test_one_task(analysis: Callable):
    with pytest.raises(UnusableBuffer, match="1 task"):
        analysis(arms(rows("base", tasks=1), rows("aw", 0.1, tasks=1)))


@pytest.mark.parametrize("analysis", OF_FRAMES)
def test_nothing_but_infra_missing(analysis: Callable):
    table = arms(rows("base"), rows("aw")).with_columns(
        **{"return": pl.lit(None, pl.Float64)}, eval_status=pl.lit("infra_missing")
    )
    with pytest.raises(UnusableBuffer, match=r"all 80 episodes are infra_missing.*attempts\.sqlite"):
        analysis(table)


@pytest.mark.parametrize("analysis", [*OF_FRAMES, *OF_BUFFERS])
def test_a_buffer_with_nothing_but_failed_attempts(analysis: Callable, tmp_path):
    buffer = ReplayBuffer(tmp_path / "b")
    buffer.prepare()
    buffer.harness.add_attempts(
        [
            Attempt(f"id-{i}", "eval-1", "coding", f"t{i}", 0, "base", "APITimeoutError", "timed out", "2026-01-01")
            for i in range(3)
        ]
    )
    with pytest.raises(UnusableBuffer, match="all 3 episodes are infra_missing"):
        analysis(tmp_path / "b")


@pytest.mark.parametrize("analysis", OF_FRAMES)
def test_episodes_of_two_versions_of_a_setting(analysis: Callable):
    table = arms(rows("base", setting_version=1), rows("aw", setting_version=2))
    with pytest.raises(SchemaMismatch, match=r"setting coding: episodes of 2 versions.*40 of 1, 40 of 2.*Choose one"):
        analysis(table)


@pytest.mark.parametrize("analysis", [*OF_FRAMES, *OF_BUFFERS])
def test_a_buffer_with_two_versions_of_a_setting(analysis: Callable, tmp_path):
    made_up(tmp_path / "b")
    made_up(tmp_path / "b", setting=replace(MadeUpSetting(), version=2))
    with pytest.raises(SchemaMismatch, match="setting made_up: episodes of 2 versions of the setting"):
        analysis(tmp_path / "b")


def test_two_feature_schemas_under_one_version(tmp_path):
    found = made_up(None)
    odd = [replace(e, feature_schema_id="0" * 16, episode_id=f"odd-{i}") for i, e in enumerate(found)]
    ReplayBuffer(tmp_path / "b").append([*found, *odd])
    with pytest.raises(SchemaMismatch, match="2 versions of the features"):
        evaluation_episodes(tmp_path / "b")


@pytest.mark.parametrize("analysis", OF_BUFFERS)
def test_a_frame_where_steps_are_needed(analysis: Callable):
    with pytest.raises(ConfigError, match="reads steps, which a frame of episodes does not hold"):
        analysis(arms(rows("base")))


def test_what_was_learned_needs_a_policy_and_states(tmp_path):
    ReplayBuffer(tmp_path / "b").append(episodes(4, phase="eval"))
    with pytest.raises(ConfigError, match="no policy"):
        what_was_learned(tmp_path / "b", {})
    with pytest.raises(UnusableBuffer, match="no collected training episodes"):
        what_was_learned(tmp_path / "b", {"random": Uniform()})


def test_transfer_needs_to_know_the_executor_of_training():
    with pytest.raises(ConfigError, match="no column trained_on"):
        executor_transfer(arms(rows("base"), rows("aw")).drop("trained_on"))


def test_a_frame_without_a_needed_column_names_it():
    with pytest.raises(ConfigError, match="no column executor"):
        main_table(arms(rows("base")).drop("executor"))
    with pytest.raises(ConfigError, match=r"no column arm \(or policy\)"):
        main_table(arms(rows("base")).drop("arm", "policy"))
