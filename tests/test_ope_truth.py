"""`python -m experiments.ope_truth`: estimates and truth on the same tasks, like with like; what is kept is read."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.ope import SupportVerdict
from buffers import ReplayBuffer
from experiments.experts import expert
from experiments.ope_truth import answering, main, ope_truth, truth_cells
from experiments.ope_truth_config import OpeTruthConfig
from experiments.ope_truth_tables import Estimated, TruthCell, rank_correlation, truth_tables
from experiments.value import SimulatedWorld
from harness_mdp.errors import ConfigError
from harness_mdp.settings import open_setting

SETTING = "tau_retail"
POLICIES = ["base", "expert", "bc"]


def small(root: Path, **changes) -> OpeTruthConfig:
    own = OpeTruthConfig(
        root=str(root),
        settings=[SETTING],
        policies=POLICIES,
        tasks=10,
        rollouts=2,
        truth_rollouts=3,
        folds=2,
        draws=200,
    )
    return replace(own, **changes)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 training tasks x 2 collected rollouts, three policies judged."""
    root = tmp_path_factory.mktemp("ope_truth")
    truth_cells(small(root), SETTING)
    return root


def cell(
    policy: str = "base", truth: float = 0.5, verdict: SupportVerdict = SupportVerdict.SUPPORTED, **more
) -> TruthCell:
    """A policy estimated at 0.5 [0.4, 0.6] by `dr` and by `fqe`."""
    refused = verdict is SupportVerdict.INSUFFICIENT
    estimates = tuple(Estimated(name, 0.5, 0.4, 0.6, not refused) for name in ("dr", "fqe"))
    made = TruthCell(policy, verdict, verdict, 120.0, None if refused else "dr", estimates, truth, 0.01, 2000, 0.45)
    return replace(made, **more)


def test_the_truth_is_fresh_episodes_on_the_tasks_that_were_collected_on(root: Path) -> None:
    world = SimulatedWorld(SETTING, tasks=10)
    fresh = world.returns(expert(open_setting(SETTING)), split="train", rollouts=3, seed=1_000).returns
    found = truth_cells(small(root), SETTING)[1]
    assert found.truth == pytest.approx(fresh.mean())
    assert found.truth_se == pytest.approx(np.sqrt(fresh.var(axis=1, ddof=1).sum() / 3) / 8)
    arrays = ReplayBuffer(root / SETTING / "buffer").tensors(SETTING)
    assert set(arrays.task_ids) == {task.id for task in world.tasks.select("train")}
    assert found.truth_episodes == 24
    assert 1_000 not in arrays.seed
    assert found.buffer_mean == pytest.approx(arrays.returns.mean())


def test_each_task_is_answered_for_once_by_a_controller_that_did_not_learn_from_it(root: Path) -> None:
    setting = open_setting(SETTING)
    arrays = ReplayBuffer(root / SETTING / "buffer").tensors(SETTING)
    parts = answering("bc", setting, arrays, seed=0, folds=2)
    assert sorted(task for part in parts for task in part.task_ids) == sorted(arrays.task_ids)
    assert len({part.policy.fingerprint for part in parts}) == 2
    # What was learned from the other tasks alone: whatever happens on its own tasks leaves it as it is.
    own = np.isin(np.array(arrays.task_ids)[arrays.task], parts[0].task_ids)
    other_actions = np.where(own[arrays.episode], np.argmax(arrays.mask, axis=1), arrays.action)
    again = answering("bc", setting, replace(arrays, action=other_actions), seed=0, folds=2)
    assert again[0].policy.fingerprint == parts[0].policy.fingerprint
    assert again[1].policy.fingerprint != parts[1].policy.fingerprint


def test_a_run_on_some_tasks_is_those_rows_of_the_run_on_all() -> None:
    world = SimulatedWorld(SETTING, tasks=10)
    policy = expert(world.tasks.setting)
    whole = world.returns(policy, split="train", rollouts=2, seed=3).returns
    some = [task.id for task in world.tasks.select("train")][1:6:2]
    assert (world.returns(policy, split="train", rollouts=2, seed=3, task_ids=some).returns == whole[1:6:2]).all()


def test_what_is_kept_is_read_and_other_numbers_are_run_anew(root: Path) -> None:
    file = root / SETTING / "base.json"
    before = file.read_text()
    kept = json.loads(before)
    file.write_text(json.dumps({**kept, "truth": 0.125}))
    assert truth_cells(small(root), SETTING)[0].truth == 0.125
    assert truth_cells(small(root, draws=201, policies=["base"]), SETTING)[0].truth == kept["truth"]
    file.write_text(before)


def test_the_command_replaces_its_part_of_the_page(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = root / "page.md"
    page.write_text("before\n<!-- ope_truth: begin -->\nold\n<!-- ope_truth: end -->\nafter\n")
    numbers = [
        f"{key}={getattr(small(root), key)}" for key in ("tasks", "rollouts", "truth_rollouts", "folds", "draws")
    ]
    words = (f"settings=[{SETTING}]", f"policies=[{','.join(POLICIES)}]")
    for name in ("HYDRA_FULL_ERROR", "HARNESS_MDP_SWEEP"):  # set by the command
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys, "argv", ["ope_truth", f"root={root}", *words, *numbers, f"out={page}"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert f"`{SETTING}`, simulated: buffer mean" in text
    for name in POLICIES:
        assert f"| `{name}` |" in text


def test_a_refused_policy_has_no_number_but_counts_as_refused() -> None:
    cells = [cell(), cell("plan", truth=0.7), cell("tool_first", verdict=SupportVerdict.INSUFFICIENT)]
    text = truth_tables({"planning": cells})
    assert "| `base` | supported (weights) | 120 | `dr` 0.500 [0.400, 0.600] | 0.500 (0.010) | yes |" in text
    assert "| `plan` | supported (weights) | 120 | `dr` 0.500 [0.400, 0.600] | 0.700 (0.010) | no |" in text
    assert "| `tool_first` | insufficient | 120 | refused | 0.500 (0.010) | - |" in text
    assert "| `planning` | 3 | 2, 0, 1 | 33% | 1 of 2 | - | - |" in text
    assert "| `fqe` | 1 of 2 | -0.100 | 0.141 | 1 of 1 | +0.000 | 0.000 |" in text


def test_the_summary_takes_settings_together() -> None:
    def estimated(value: float, truth: float) -> TruthCell:
        return cell(truth=truth, best="model", estimates=(Estimated("model", value, value, value, True),))

    right = [estimated(value, value) for value in (0.1, 0.2, 0.3, 0.4)]
    wrong = [estimated(value, 1 - value) for value in (0.1, 0.2, 0.3, 0.4)]
    text = truth_tables({"planning": right, "coding": wrong})
    assert "| `planning` | 4 | 4, 0, 0 | 0% | 4 of 4 | +1.00 | +1.00 |" in text
    assert "| `coding` | 4 | 4, 0, 0 | 0% | 0 of 4 | -1.00 | -1.00 |" in text
    assert "| all | 8 | 8, 0, 0 | 0% | 4 of 8 | +0.00 (mean of 2) | +0.00 (mean of 2) |" in text


def test_rank_correlation_shares_ranks_between_ties_and_wants_three_that_vary() -> None:
    # Ranks 1.5, 1.5, 3 and 1, 2, 3: covariance 1.5 over sqrt(1.5 * 2).
    assert rank_correlation([(0.2, 0.1), (0.2, 0.5), (0.9, 0.6)]) == pytest.approx(1.5 / np.sqrt(3))
    assert rank_correlation([(0.1, 0.1), (0.2, 0.2), (None, 0.3)]) is None
    assert rank_correlation([(0.2, 0.1), (0.2, 0.2), (0.2, 0.3)]) is None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"truth_seed": 0}, "share its draws"),
        ({"policies": ["base", "nope"]}, "nope.*check_revise.*expert.*aw_planned"),
        ({"policies": ["base", "base"]}, "each once"),
        ({"truth_rollouts": 1}, "truth_rollouts=1; expected at least 2"),
        ({"settings": ["nope"]}, "nope"),
        ({"settings": ["tabular"]}, "tabular has no expert"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(tmp_path: Path, changes: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        ope_truth(small(tmp_path, **changes))
    assert not list(tmp_path.iterdir())
