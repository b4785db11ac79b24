"""The table of learners: its rows, that a second call does no work, and that other conditions begin anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buffers import ReplayBuffer
from controllers.learners import FoldController, Learned, learn
from experiments import learners_table
from experiments.known_means import KnownMeans
from experiments.learners_table import learners_tables
from experiments.learners_table_config import LearnersTableConfig
from experiments.value import SimulatedReturns, SimulatedWorld
from harness_mdp.errors import ConfigError
from harness_mdp.mdp import Policy


def small(root: Path) -> LearnersTableConfig:
    return LearnersTableConfig(
        root=str(root),
        settings=["planning"],
        behaviours=["even"],
        seeds=1,
        methods=["bc", "a_learning relative=0.1"],
        guarded=["a_learning"],
        growing=None,
        rollouts=2,
        eval_rollouts=2,
    )


def test_every_script_and_learner_has_a_row_and_a_second_call_trains_nothing(tmp_path, monkeypatch):
    config = small(tmp_path)
    first = learners_tables(config)
    names = [row.split(" | ")[0].removeprefix("| ") for row in first.splitlines() if row.startswith("| ")]
    scripts = ["base", "forced_check", "check_revise", "tool_first", "more_evidence", "expert"]
    learners = ["bc", "a_learning relative=0.1", "a_learning+guard"]
    assert names == ["policy", "---", "buffer mean", *scripts, *learners, "attainable"]
    assert "### Behaviour `even`" in first

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    larger = learners_tables(replace(config, rollouts=3))
    assert larger != first
    assert learners_tables(config) == first
    monkeypatch.setattr(learners_table, "learn", refuse)
    assert learners_tables(config) == first
    with pytest.raises(AssertionError, match="trained again"):
        learners_tables(replace(config, eval_rollouts=3))


def test_on_training_tasks_every_task_is_run_with_a_controller_that_did_not_learn_from_it(tmp_path, monkeypatch):
    config = replace(small(tmp_path), on="train", first_seed=7, methods=["bc"], guarded=[], eval_rollouts=1)
    folds: list[FoldController] = []
    run: dict[str, set[str]] = {}

    def recorded_learn(*given: Any, **named: Any) -> Learned:
        made = learn(*given, **named)
        folds.extend(made.folds)
        return made

    original = SimulatedWorld.returns

    def recorded_returns(self: SimulatedWorld, policy: Policy, **named: Any) -> SimulatedReturns:
        run[policy.fingerprint] = set(named.get("task_ids") or ())
        return original(self, policy, **named)

    monkeypatch.setattr(learners_table, "learn", recorded_learn)
    monkeypatch.setattr(SimulatedWorld, "returns", recorded_returns)
    assert "| bc |" in learners_tables(config)
    arrays = ReplayBuffer(tmp_path / "planning" / "even-7" / "collected-2").tensors("planning")
    held = [{arrays.task_ids[task] for task in np.unique(arrays.task[fold.held_out])} for fold in folds]
    assert [run[fold.controller.fingerprint] for fold in folds] == held
    assert len(folds) == 4
    assert set[str]().union(*held) == set(arrays.task_ids)


def test_growing_batches_have_rows_by_what_they_recheck_also_on_training_tasks(tmp_path, monkeypatch):
    config = replace(
        small(tmp_path),
        behaviours=["portfolio"],
        methods=["bc"],
        guarded=[],
        growing="a_learning",
        rechecks=[0.0, 0.3],
        on="train",
        eval_rollouts=1,
    )
    found = learners_tables(config)
    rounds = [f"a_learning round {index}{more}" for more in ("", ", recheck 0.3") for index in (2, 3)]
    assert [row.split(" | ")[0][2:] for row in found.splitlines() if " round " in row] == rounds
    means = json.loads((tmp_path / "planning" / "portfolio-0" / "train-values.json").read_text())["means"]
    assert [len(means[name]) for name in rounds] == [80] * 4
    monkeypatch.setattr(learners_table, "growing_batch", None)
    assert learners_tables(config) == found
    with pytest.raises(ConfigError, match=r"rechecks is \[1\.5\]; expected shares from 0 to 1"):
        learners_tables(replace(config, rechecks=[1.5]))
    with pytest.raises(ConfigError, match="growing is 'nope'; expected one of aw"):
        learners_tables(replace(config, growing="nope"))


def test_an_unknown_behaviour_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"'odd'; expected paper, portfolio or even"):
        learners_tables(replace(small(tmp_path), behaviours=["odd"]))
    with pytest.raises(ConfigError, match="seeds, rollouts and eval_rollouts are at least 1"):
        learners_tables(replace(small(tmp_path), seeds=0))
    with pytest.raises(ConfigError, match="bc rigde=2"):
        learners_tables(replace(small(tmp_path), methods=["bc", "bc rigde=2"]))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="on is 'test'; expected eval or train"):
        learners_tables(replace(small(tmp_path), on="test"))


def test_means_made_under_other_conditions_are_not_read(tmp_path):
    file = tmp_path / "a" / "values.json"
    known = KnownMeans(file, {"rollouts": 2})
    known.buffer_mean = 0.5
    known.add("bc", np.array([0.25, 0.75]))
    again = KnownMeans(file, {"rollouts": 2})
    assert again["bc"].tolist() == [0.25, 0.75]
    assert again.buffer_mean == 0.5
    assert "bc" not in KnownMeans(file, {"rollouts": 3})
    assert json.loads(file.read_text())["means"] == {"bc": [0.25, 0.75]}
