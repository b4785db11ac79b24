"""`python -m harness_mdp.ope`: what it says and writes, its exit codes; nobody is scored on what it learned from."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis.ope import SupportVerdict
from buffers import ReplayBuffer
from controllers.manifest import read_manifest
from controllers.network import initial_weights
from controllers.policy import ControllerPolicy
from controllers.saved import load_controller, save_controller
from experiments.collected import logged_states
from experiments.collection import collect
from experiments.config import (
    CollectConfig,
    MethodConfig,
    PortfolioPolicyConfig,
    SettingConfig,
    SimulatedConfig,
    TrainConfig,
)
from experiments.ope import ope, target_probabilities
from experiments.ope_config import OpeConfig
from experiments.training import train
from harness_mdp.errors import ConfigError, HarnessError, UnusableBuffer
from harness_mdp.mdp import DecisionBatch
from harness_mdp.settings import open_setting
from harness_mdp.settings.scripts import script_policy
from tests.commands import command
from tests.test_bad_input import refused

SETTING = "planning"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A buffer of 16 training tasks x 12 rollouts, and a cloned controller that learned from all of them."""
    root = tmp_path_factory.mktemp("ope")
    run_into(root / "buffer", SETTING, tasks=20, rollouts=12)
    train(
        TrainConfig(
            setting=SettingConfig(name=SETTING),
            method=MethodConfig(method="bc"),
            buffer=str(root / "buffer"),
            out=str(root / "bc"),
        )
    )
    return root


def run_into(buffer: Path, setting: str, tasks: int, rollouts: int, limit: int | None = None) -> None:
    """Collect with the portfolio and the simulated executor."""
    config = CollectConfig(
        setting=SettingConfig(name=setting, tasks=tasks, limit=limit),
        executor=SimulatedConfig(),
        policy=PortfolioPolicyConfig(),
        buffer=str(buffer),
        rollouts=rollouts,
    )
    collect(config, quiet=True)


def config(place: Path, *policies: str, **changes) -> OpeConfig:
    return OpeConfig(buffer=str(place / "buffer"), policies=list(policies), draws=500, **changes)


def test_the_command_shows_estimators_side_by_side_the_verdict_and_that_it_is_simulated(place: Path) -> None:
    out, _ = command("harness_mdp.ope", f"buffer={place}/buffer", "policy=behaviour", f"out={place}/one.json")
    for word in ("supported", "value [95%]", "gain [95%]", "ESS", "dr", "fqe", "support by action", "simulated"):
        assert word in out
    assert "mean quality on the buffer's tasks" in out
    row = json.loads((place / "one.json").read_text())[0]
    assert row["policy"] == "behaviour"
    assert row["verdict"] == "supported"
    assert row["low"] <= row["value"] <= row["high"]
    assert [each["estimator"] for each in row["estimates"]][:2] == ["is", "wis"]
    assert {each["action"] for each in row["actions"]} >= {"draft", "submit"}


def test_insufficient_support_shows_no_number_and_exits_with_3_where_support_is_required(place: Path) -> None:
    arguments = (f"buffer={place}/buffer", "policies=[random,base]", f"out={place}/two.parquet")
    _, err = command("harness_mdp.ope", *arguments, "policy=base", "policies=[behaviour]", expect=2)
    assert "policy= names one policy; for several say policies=[NAME,...] alone" in err
    out, _ = command("harness_mdp.ope", *arguments, "require_support=true", expect=3)
    assert "random: insufficient support" in out
    assert "no number" in out
    assert "base: supported" in out or "base: weak" in out
    rows = pl.read_parquet(place / "two.parquet").to_dicts()
    assert [row["policy"] for row in rows] == ["random", "base"]
    assert rows[0]["value"] is None
    assert all(each["value"] is None and each["withheld"] for each in rows[0]["estimates"])
    assert rows[1]["value"] is not None


def test_the_behaviour_policy_is_worth_the_mean_return(place: Path) -> None:
    result = ope(config(place, "behaviour"))
    value = result.targets[0].value
    assert value.support.verdict is SupportVerdict.SUPPORTED
    for estimate in value.estimates[:4]:
        assert estimate.value.mean == pytest.approx(result.arrays.returns.mean())
        assert (estimate.gain.low, estimate.gain.high) == (0.0, 0.0)


def test_a_script_is_asked_about_the_states_that_the_events_fold_to(place: Path) -> None:
    buffer, setting = ReplayBuffer(place / "buffer"), open_setting(SETTING)
    arrays = buffer.tensors(SETTING)
    batch = DecisionBatch(arrays.features, arrays.mask, arrays.base_action, logged_states(buffer, arrays))
    probs = script_policy(setting, "base").probs_batch(batch)
    assert np.array_equal(probs.argmax(axis=1), arrays.base_action)


def test_the_same_question_has_the_same_answer(place: Path) -> None:
    first, second = (ope(config(place, "check_revise", "base")) for _ in range(2))
    assert [target.value for target in first.targets] == [target.value for target in second.targets]


def saved_as(place: Path, name: str, learned: tuple[str, ...], folds=()) -> str:
    """A copy of the cloned controller that says it learned from `learned`; `folds`: (controller, held-out tasks)."""
    manifest = replace(
        read_manifest(place / "bc"), task_hashes=learned, folds=tuple(tuple(held_out) for _, held_out in folds)
    )
    save_controller(place / name, load_controller(place / "bc"), manifest, [controller for controller, _ in folds])
    return str(place / name)


def test_a_controller_is_scored_itself_on_tasks_that_it_has_not_learned_from(place: Path) -> None:
    target = ope(config(place, saved_as(place, "stranger", ("0" * 64,)))).targets[0]
    assert target.asked == ""
    assert target.value.support.verdict is not SupportVerdict.INSUFFICIENT
    assert target.value.support.ess > 30


def test_a_controller_is_not_scored_on_tasks_that_it_learned_from(place: Path) -> None:
    hashes = ReplayBuffer(place / "buffer").tensors(SETTING).task_hashes
    with pytest.raises(ConfigError, match=r"learned from 3 of the 16 tasks.*Train it again with folds=5"):
        ope(config(place, saved_as(place, "partly", hashes[:3])))


def test_a_controller_that_does_not_say_what_it_learned_from_is_not_scored(place: Path) -> None:
    with pytest.raises(ConfigError, match="does not say which tasks"):
        ope(config(place, saved_as(place, "silent", ())))


def test_each_task_is_answered_for_by_the_fold_controller_that_did_not_learn_from_it(place: Path) -> None:
    setting = open_setting(SETTING)
    arrays = ReplayBuffer(place / "buffer").tensors(SETTING)
    batch = DecisionBatch(arrays.features, arrays.mask, arrays.base_action)
    first, second = (ControllerPolicy(initial_weights(len(setting.schema), 8, seed=seed)) for seed in (1, 2))
    hashes = arrays.task_hashes
    folds = ((first, hashes[:5]), (second, hashes[5:12]))
    path = saved_as(place, "folded", hashes[:12], folds)
    probs, asked = target_probabilities(path, setting, arrays, batch)
    assert "2 fold controllers" in asked
    task = arrays.task[arrays.episode]
    for policy, rows in (
        (first, task < 5),
        (second, (task >= 5) & (task < 12)),
        (load_controller(path, setting), task >= 12),  # it learned from none of these
    ):
        own = DecisionBatch(batch.features[rows], batch.mask[rows], batch.base_action[rows])
        np.testing.assert_allclose(probs[rows], policy.probs_batch(own))


@pytest.mark.parametrize(
    ("policies", "changes", "named"),
    [
        (["nope"], {}, ["nope", "base", "check_revise"]),
        ([], {}, ["policies is empty"]),
        (["base", "base"], {}, ["twice"]),
        (["base"], {"level": 95.0}, ["level=95"]),
        (["base"], {"draws": 5}, ["draws=5"]),
        (["base"], {"split": "nope"}, ["split=nope"]),
        (["base"], {"out": "values.txt"}, ["values.txt", ".json"]),
        (["base"], {"setting": SettingConfig(name="coding")}, ["no episodes", "planning"]),
        (["base"], {"buffer": "runs/nothing/here"}, ["runs/nothing/here"]),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    place: Path, policies: list[str], changes: dict[str, object], named: list[str]
) -> None:
    with pytest.raises(HarnessError) as refusal:
        ope(OpeConfig(**{"buffer": str(place / "buffer"), "policies": policies, "draws": 500, **changes}))
    assert refusal.value.exit_code == 2
    for word in named:
        assert word in str(refusal.value)


def test_a_missing_policy_is_asked_for(place: Path) -> None:
    assert "policies" in refused("harness_mdp.ope", f"buffer={place}/buffer")


def test_two_settings_in_a_buffer_have_to_be_told_apart(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "buffer", tmp_path / "buffer")
    run_into(tmp_path / "buffer", "tabular", tasks=10, rollouts=1)
    both = OpeConfig(buffer=str(tmp_path / "buffer"), policies=["base"], draws=500)
    with pytest.raises(ConfigError, match="planning, tabular; say setting=NAME"):
        ope(both)
    chosen = ope(replace(both, setting=SettingConfig(name=SETTING)))
    assert chosen.targets[0].value == ope(config(place, "base")).targets[0].value


def test_one_task_is_too_few(tmp_path: Path) -> None:
    run_into(tmp_path / "buffer", "tabular", tasks=10, rollouts=3, limit=1)
    with pytest.raises(UnusableBuffer, match="one task"):
        ope(OpeConfig(buffer=str(tmp_path / "buffer"), policies=["base"], draws=500))
