"""A report compares from the buffer alone what the evaluation compared, and joins what belongs together."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pandas.testing import assert_frame_equal

from analysis.report.evaluated import evaluations_of
from analysis.report.families import families_of
from analysis.report.sources import open_sources
from experiments.evaluation import comparison_of, verdicts_of
from tests.report_buffers import SCRIPTS, collected, controllers, evaluated, made_up

LEARNED = (*SCRIPTS, "aw")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A buffer with collected episodes and one evaluation of scripts and of a learner with two training seeds."""
    folder = tmp_path_factory.mktemp("report")
    collected(folder / "buffer")
    return folder


@pytest.fixture(scope="module")
def evaluation(place: Path):
    return evaluated(place / "buffer", [*SCRIPTS, *controllers(place)])


def families(path: Path, **changes):
    sources = open_sources(str(path))
    return families_of(evaluations_of(sources, changes.pop("runs", ())), sources, rule="check_revise", preset="paper")


def test_the_comparison_is_the_one_that_the_evaluation_made(place: Path, evaluation) -> None:
    (family,) = families(place / "buffer")
    assert_frame_equal(family.comparison.rows, comparison_of([evaluation]).rows)
    assert family.arms == LEARNED
    assert family.learners == ("aw",)
    assert family.verdicts == verdicts_of([evaluation])


def test_a_controller_of_several_seeds_is_one_arm_even_when_its_folders_are_gone(place: Path, evaluation, tmp_path):
    shutil.copytree(place / "buffer", tmp_path / "moved")
    (family,) = families(tmp_path / "moved")
    assert family.comparison.rows.query("arm == 'aw'")["n_episodes"].tolist() == [12, 12]  # 6 tasks x 2 seeds


def test_without_manifests_arms_are_policies_and_the_figures_are_the_same(place: Path, evaluation, tmp_path) -> None:
    shutil.copytree(place / "buffer", tmp_path / "bare")
    shutil.rmtree(tmp_path / "bare" / "_harness" / "runs")
    (family,) = families(tmp_path / "bare")
    assert set(family.arms) == set(LEARNED)
    assert family.learners == ("aw",)
    told = family.comparison.rows.set_index(["arm", "outcome"])["delta"].sort_index()
    wanted = comparison_of([evaluation]).rows.set_index(["arm", "outcome"])["delta"].sort_index()
    assert told.to_dict() == pytest.approx(wanted.to_dict(), nan_ok=True)


def test_a_second_evaluation_of_other_arms_joins_the_first(place: Path, evaluation, tmp_path) -> None:
    shutil.copytree(place / "buffer", tmp_path / "more")
    evaluated(tmp_path / "more", ["base", "tool_first"], rollouts=2)
    (family,) = families(tmp_path / "more")
    assert set(family.arms) == {*LEARNED, "tool_first"}
    assert len(family.evaluations) == 1
    assert family.arms[-1] == "aw"  # learned ones last


def test_runs_narrow_the_report(place: Path, evaluation, tmp_path) -> None:
    shutil.copytree(place / "buffer", tmp_path / "more")
    second = evaluated(tmp_path / "more", ["base", "tool_first"], rollouts=2)
    (family,) = families(tmp_path / "more", runs=[second.run])
    assert family.arms == ("base", "tool_first")


def test_two_learners_of_one_name_stay_two_arms(tmp_path: Path) -> None:
    """One name, two learners that a person evaluated apart: their pairs coincide, so they are not one arm."""
    evaluated(tmp_path / "buffer", ["base", *controllers(tmp_path / "one", seeds=1)])
    other = controllers(tmp_path / "two", seeds=2)[1:]
    evaluated(tmp_path / "buffer", ["base", *other])
    sources = open_sources(str(tmp_path / "buffer"))
    found = evaluations_of(sources)
    assert [each.learners for each in found] == [("aw",), ("aw",)]
    assert found[0].label != found[1].label
    assert len(families_of(found, sources, rule="check_revise", preset="paper")) == 2


def test_buffers_beneath_a_folder_share_one_table(tmp_path: Path) -> None:
    made_up(tmp_path / "a" / "buffer")
    shutil.copytree(tmp_path / "a", tmp_path / "deeper" / "b")
    found = families(tmp_path)
    assert len(found) == 2  # the same setting twice is no second setting
    assert [family.label for family in found] == [
        "arms base, check_revise, a/buffer",
        "arms base, check_revise, deeper/b/buffer",
    ]


def test_costs_are_paired_differences_with_tasks_weighing_equally(tmp_path: Path) -> None:
    made_up(tmp_path / "buffer")
    (family,) = families(tmp_path / "buffer")
    frame = family.evaluations[0].episodes.to_pandas()
    for cost in family.costs:
        column = {"tokens": "tokens", "usd": "cost_usd", "steps": "n_steps"}[cost.what]
        means = frame.groupby(["arm", "task_id"])[column].mean().groupby("arm").mean()
        assert cost.mean == pytest.approx(means[cost.arm])
        if cost.delta is not None:
            assert cost.delta.mean == pytest.approx(means[cost.arm] - means["base"])
            assert cost.delta.low <= cost.delta.mean <= cost.delta.high
