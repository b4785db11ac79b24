"""The template of docs/adding_a_setting.md runs as it stands: collect, train, evaluate, verify."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.mdp import State
from harness_mdp.settings import open_setting
from harness_mdp.settings.coding import Coding
from harness_mdp.settings.scripts import script_policy
from tests.commands import ROOT, command
from tests.runs import run, simulated

TEMPLATE = ROOT / "docs" / "template"
SETTING = ("setting=custom", "setting.name=cheapest:Cheapest")


def test_the_template_goes_through_the_whole_loop(tmp_path: Path) -> None:
    env = {"PYTHONPATH": f"{ROOT}:{TEMPLATE}"}
    buffer = f"buffer={tmp_path}/buffer"
    command("harness_mdp.collect", *SETTING, "setting.tasks=20", "rollouts=3", buffer, env=env)
    command("harness_mdp.train", *SETTING, buffer, f"out={tmp_path}/aw", env=env)
    policies = f"policies=[base,forced_check,check_revise,tool_first,more_evidence,{tmp_path}/aw]"
    out, _ = command("harness_mdp.evaluate", *SETTING, "setting.tasks=20", buffer, policies, "rollouts=2", env=env)
    assert "cheapest" in out
    out, _ = command("harness_mdp.verify", buffer, "settings=[cheapest:Cheapest]", env=env)
    assert "0 values in 0 episodes" in out
    out, _ = command("harness_mdp.score", buffer, "settings=[cheapest:Cheapest]", "maturity=strict", env=env)
    assert "cheapest" in out


@pytest.mark.parametrize("name", ["nope", "no_such_module:Setting", "harness_mdp.settings.coding:Nope"])
def test_a_setting_that_cannot_be_opened_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=name.split(":")[0]):
        open_setting(name)


class _WrongFlags(Coding):
    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        return (1, 0, 1, 7)  # type: ignore[return-value]


class _WrongParse(Coding):
    def parse(self, reply: str) -> str:
        return None  # type: ignore[return-value]


@pytest.mark.parametrize(("setting", "named"), [(_WrongFlags(), "flags"), (_WrongParse(), "parse")])
def test_a_mistake_in_a_setting_is_named_by_its_method(setting: Coding, named: str) -> None:
    store = setting.tasks(seed=0, n=5, path=None)
    with pytest.raises((ValueError, TypeError), match=named):
        run(setting, store.tasks, script_policy(setting, "base"), simulated(store, "strong"), store.sealed)
