"""Episodes whose path is known are not run again, growing batch adds data round by round, and shares of a gain."""

from __future__ import annotations

import numpy as np
import pytest

from buffers import ReplayBuffer
from controllers.config import Method
from experiments import value
from experiments.attainable import attainable_table, share
from experiments.attainable_config import AttainableConfig
from experiments.config import PortfolioPolicyConfig, SettingConfig
from experiments.growing import Round, collect_simulated, growing_batch
from experiments.paths import Recorder
from experiments.policies import named_policy
from experiments.value import SimulatedWorld
from harness_mdp.errors import ConfigError
from harness_mdp.mdp import Action
from tests.commands import command


def test_known_paths_give_what_running_gives_and_are_not_run(monkeypatch):
    shared = SimulatedWorld("planning")
    setting = shared.tasks.setting
    names = ("base", "check_revise", "forced_check", "more_evidence")
    alone = {
        name: SimulatedWorld("planning").returns(named_policy(name, setting), split="eval", rollouts=3, seed=5)
        for name in names
    }
    run: list[int] = []
    real = value.run_episodes

    async def counted(plans, *args, **kwargs):
        run.append(len(plans))
        await real(plans, *args, **kwargs)

    monkeypatch.setattr(value, "run_episodes", counted)
    for name in names:
        found = shared.returns(named_policy(name, setting), split="eval", rollouts=3, seed=5)
        np.testing.assert_array_equal(found.returns, alone[name].returns)
        np.testing.assert_array_equal(found.steps, alone[name].steps)
    assert run[0] == 60
    assert 0 < sum(run) < 4 * 60
    again = Recorder(named_policy("check_revise", setting))
    again.fingerprint = "another"
    np.testing.assert_array_equal(
        shared.returns(again, split="eval", rollouts=3, seed=5).returns, alone["check_revise"].returns
    )
    assert run[-1] == 0


def test_growing_batch_learns_from_all_rounds_so_far(tmp_path):
    setting = SimulatedWorld("planning").tasks.setting
    found = list(growing_batch(setting, "medium", Method.AW_LINEAR, tmp_path, rounds=2, rollouts=2, seed=0))
    assert [each.index for each in found] == [1, 2]
    assert found[0].learned.controller.fingerprint != found[1].learned.controller.fingerprint
    assert [len(each.arrays.returns) for each in found] == [80 * 2, 2 * 80 * 2]
    again = list(growing_batch(setting, "medium", Method.AW_LINEAR, tmp_path, rounds=2, rollouts=2, seed=0))
    prints = [[each.learned.controller.fingerprint for each in batch] for batch in (found, again)]
    assert prints[0] == prints[1]
    assert len(ReplayBuffer(tmp_path / "grown-2").tensors("planning").returns) == 2 * 80 * 2


def test_a_first_round_that_is_there_is_copied_and_stays_as_it_is(tmp_path):
    setting = SimulatedWorld("planning").tasks.setting
    first, root = tmp_path / "first", tmp_path / "grown"
    collect_simulated("planning", "medium", PortfolioPolicyConfig(), first, 2, seed=0)
    root.mkdir()
    before = ReplayBuffer(first).version

    def one(**given: object) -> Round:
        return next(growing_batch(setting, "medium", Method.LINEAR_Q, root, 1, rollouts=2, seed=0, **given))

    copied = one(first=first)
    np.testing.assert_array_equal(copied.arrays.returns, ReplayBuffer(first).tensors("planning").returns)
    assert ReplayBuffer(root / "grown-2").version == before == ReplayBuffer(first).version
    own = one(recheck=0.1, first=tmp_path / "nothing").learned.controller
    assert own.fingerprint == copied.learned.controller.fingerprint


def test_later_rounds_check_where_others_submit_and_leave_the_other_batch_alone(tmp_path):
    setting = SimulatedWorld("planning").tasks.setting
    plain, checked = (
        list(
            growing_batch(setting, "medium", Method.AW_LINEAR, tmp_path, 2, rollouts=2, seed=0, recheck=share, folds=2)
        )
        for share in (0.0, 0.5)
    )
    assert plain[0].learned.controller.fingerprint == checked[0].learned.controller.fingerprint
    checks = [np.bincount(each.arrays.action, minlength=7)[Action.CHECK] for each in (plain[1], checked[1])]
    assert checks[1] > 1.2 * checks[0]
    assert [len(each.learned.folds) for each in checked] == [2, 2]
    assert sorted(each.name for each in tmp_path.iterdir() if "-round-" not in each.name) == [
        "grown-2",
        "grown-2-recheck-0.5",
    ]


def test_a_share_of_next_to_nothing_is_undefined():
    assert share(0.7, 0.5, 0.9) == pytest.approx(0.5)
    assert share(0.4, 0.5, 0.9) == pytest.approx(-0.25)
    assert share(0.51, 0.5, 0.52) is None


def test_attainable_does_its_work_once_and_names_the_best(tmp_path, capsys):
    config = AttainableConfig(
        setting=SettingConfig("planning"),
        root=str(tmp_path),
        rounds=1,
        rollouts=2,
        methods=["linear_q"],
        eval_rollouts=2,
    )
    text = attainable_table(config)
    assert "40 episodes a figure on 20 evaluation tasks. Best reachable:" in text
    assert "| linear_q |" in text
    assert "| aw_linear round 1 |" in text
    capsys.readouterr()
    assert attainable_table(config) == text
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"setting": SettingConfig("tabular")}, "setting is 'tabular'; expected one of coding"),
        ({"setting": SettingConfig("planning", tasks=50)}, "expected setting=planning alone"),
        ({"rounds": 0}, "rounds, rollouts and eval_rollouts are at least 1"),
        ({"growing": "nope"}, "nope"),
        ({"recheck": 2.0}, "recheck is 2.0; expected a share from 0 to 1"),
    ],
)
def test_attainable_refuses_what_cannot_be(tmp_path, change, message):
    with pytest.raises(ConfigError, match=message):
        attainable_table(AttainableConfig(**{"setting": SettingConfig("planning"), "root": str(tmp_path), **change}))


def test_attainable_is_a_command(tmp_path):
    small = ("rounds=1", "rollouts=1", "eval_rollouts=1", "methods=[]", "growing=linear_q")
    out, _ = command("experiments.attainable", "setting=multi_tool", f"root={tmp_path}", *small)
    assert "`multi_tool`, simulated executor `medium`, 20 episodes a figure" in out
    assert "| linear_q round 1 |" in out
