"""Wrong input: exit code 2, one message that names the place and the remedy, and nothing written is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import command
from tests.loopback import Loopback, failure

TINY = ("setting=coding", "setting.tasks=10", "rollouts=1")


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A buffer with one rollout per task."""
    buffer = tmp_path_factory.mktemp("single") / "buffer"
    command("harness_mdp.collect", *TINY, f"buffer={buffer}")
    return buffer


def refused(module: str, *arguments: str, env: dict[str, str] | None = None) -> str:
    _, err = command(module, *arguments, env=env, expect=2)
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("bogus=1",), ["bogus"]),
        (("setting=nope",), ["nope", "coding", "dbbench"]),
        (("policy.bogus=1",), ["policy.bogus"]),
        (("rollouts=many",), ["rollouts", "many"]),
        (("rollouts=0",), ["rollouts=0", "at least 1"]),
        (("policy=epsilon", "policy.epsilon=2"), ["epsilon", "2"]),
        (("policy=epsilon", "policy.inner=nope"), ["nope", "base"]),
        (("policy=epsilon", "policy.recheck=1.5"), ["recheck is 1.5", "from 0 to 1"]),
        (("policy=paper", "policy.weights={base:0.3}"), ["policy.weights", "kind epsilon", "policy=portfolio"]),
        (("executor.prices={m:[1,2]}",), ["executor.prices", "kind simulated", "executor=openai"]),
        (("split=nope",), ["nope", "train, eval or all"]),
        (("split_by=nope",), ["nope", "task or template"]),
        (("setting=dbbench", "setting.path=missing.jsonl"), ["missing.jsonl"]),
        (("setting.path=somewhere",), ["coding"]),
        (("executor=openai",), ["executor.model"]),
        (("executor=openai", "executor.model=m"), ["OPENAI_API_KEY"]),
        (("executor.profile=nope",), ["nope", "weak, medium, strong"]),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_by_name(
    tmp_path: Path, arguments: tuple[str, ...], named: list[str]
) -> None:
    err = refused("harness_mdp.collect", f"buffer={tmp_path}/buffer", *arguments)
    for text in named:
        assert text in err
    assert not list(tmp_path.iterdir())


def test_a_required_key_that_is_missing_is_named() -> None:
    assert "buffer" in refused("harness_mdp.collect")
    assert "out" in refused("harness_mdp.train", "buffer=x")


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("folds=1", "folds=1; expected 0 for none, or at least 2"),
        ("returns.weight=0.5", "returns.weight was given and changes nothing with returns=quality"),
    ],
)
def test_training_refuses_what_would_be_ignored(tmp_path: Path, argument: str, named: str) -> None:
    err = refused("harness_mdp.train", f"buffer={tmp_path}/none", "setting=coding", f"out={tmp_path}/out", argument)
    assert named in err


def test_a_malformed_line_is_named_by_file_and_line(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"description": "x"\n')
    err = refused("harness_mdp.collect", "setting=dbbench", f"setting.path={tasks}", f"buffer={tmp_path}/buffer")
    assert "tasks.jsonl" in err
    assert "line 1" in err


def test_training_without_a_buffer_says_where_it_looked(tmp_path: Path) -> None:
    err = refused("harness_mdp.train", f"buffer={tmp_path}/none", "setting=coding", f"out={tmp_path}/out")
    assert f"{tmp_path}/none" in err
    assert "collect" in err


def test_training_on_a_setting_without_episodes_says_what_there_is(single: Path, tmp_path: Path) -> None:
    err = refused("harness_mdp.train", f"buffer={single}", "setting=dbbench", f"out={tmp_path}/out")
    assert "dbbench" in err
    assert "coding" in err


def test_one_rollout_per_task_has_no_task_baseline(single: Path, tmp_path: Path) -> None:
    err = refused("harness_mdp.train", f"buffer={single}", "setting=coding", "method=aw", f"out={tmp_path}/out")
    assert "one rollout" in err
    assert "rollouts" in err
    command("harness_mdp.train", f"buffer={single}", "setting=coding", "method=bc", f"out={tmp_path}/bc")


def test_a_controller_of_another_schema_is_refused(single: Path, tmp_path: Path) -> None:
    command("harness_mdp.train", f"buffer={single}", "setting=coding", "method=bc", f"out={tmp_path}/bc")
    err = refused("harness_mdp.evaluate", f"buffer={single}", "setting=dbbench", f"policies=[base,{tmp_path}/bc]")
    assert "coding" in err
    manifest = tmp_path / "bc" / "manifest.json"
    values = json.loads(manifest.read_text())
    values["feature_names"][0] = "something_else"
    values["feature_schema_id"] = "0" * 16
    manifest.write_text(json.dumps(values))
    err = refused("harness_mdp.evaluate", f"buffer={single}", "setting=coding", f"policies=[base,{tmp_path}/bc]")
    assert "something_else" in err


def test_a_policy_that_is_neither_script_nor_folder_is_refused(single: Path) -> None:
    err = refused("harness_mdp.evaluate", f"buffer={single}", "setting=coding", "policies=[base,nope]")
    assert "nope" in err
    assert "check_revise" in err


def test_evaluating_on_draws_that_were_learned_from_is_refused(single: Path) -> None:
    err = refused(
        "harness_mdp.evaluate",
        f"buffer={single}",
        "setting=coding",
        "setting.tasks=10",
        "policies=[base]",
        "split=train",
        "seed=0",
    )
    assert "seed=0" in err


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (failure(401, "bad key"), ["401", "OPENAI_API_KEY"]),
        (failure(404, "no such model", code="model_not_found"), ["loopback-model"]),
    ],
)
def test_a_refused_key_or_model_stops_the_run_at_once(tmp_path: Path, answer: object, named: list[str]) -> None:
    with Loopback(lambda body, call: answer) as server:  # pyright: ignore[reportArgumentType]
        err = refused(
            "harness_mdp.collect",
            *TINY,
            f"buffer={tmp_path}/buffer",
            "concurrency=1",
            "executor=openai",
            "executor.model=loopback-model",
            f"executor.base_url={server.base_url}",
            env={"OPENAI_API_KEY": "sk-test"},
        )
        assert server.calls == 1
    for text in named:
        assert text in err


def test_an_unknown_command_is_refused() -> None:
    assert "unknown command" in refused("harness_mdp", "nope")
