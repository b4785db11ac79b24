"""What a cell is called, how it is locked, and that a killed study is gone on with."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from threading import Event, Thread

import pytest

from experiments.cell_locks import locked
from experiments.cell_names import buffer_name, cell_name
from experiments.cell_status import CellState, CellStatus, read_status, write_status
from experiments.config import (
    EpsilonPolicyConfig,
    LimitsConfig,
    OpenAIConfig,
    PortfolioPolicyConfig,
    SettingConfig,
    SimulatedConfig,
)
from experiments.method_config import MethodConfig
from experiments.study_config import CellConfig, CollectPart, EvaluatePart, PathsConfig, TrainPart
from harness_mdp.errors import InputError
from tests.commands import command, start

CELL = CellConfig(
    setting=SettingConfig(name="planning", tasks=10),
    executor=SimulatedConfig(),
    policy=PortfolioPolicyConfig(),
    method=MethodConfig(method="bc"),
)
SMALL = ("experiment=smoke", "setting=planning", "evaluate.rollouts=1", "method=bc", "method.epochs=2")


@pytest.mark.parametrize(
    "change",
    [
        {"paths": PathsConfig(root="elsewhere", sweep="x")},
        {"device": "cuda"},
        {"concurrency": 1},
        {"limits": LimitsConfig(tokens=5)},
        {"tables": ["transfer"]},
        {"reference": "paper.json", "out": "results.md"},
    ],
)
def test_where_how_fast_and_what_is_shown_do_not_name_a_cell(change):
    assert cell_name(replace(CELL, **change)) == cell_name(CELL)


@pytest.mark.parametrize(
    "change",
    [
        {"setting": SettingConfig(name="planning", tasks=20)},
        {"executor": SimulatedConfig(profile="weak")},
        {"evaluate_on": SimulatedConfig(profile="weak")},
        {"policy": EpsilonPolicyConfig()},
        {"method": MethodConfig(method="bc", epochs=3)},
        {"guard": "support"},
        {"train": TrainPart(seed=1)},
        {"evaluate": EvaluatePart(scripts=["base"])},
        {"collect": CollectPart(seed=7)},
        {"split_by": "template"},
    ],
)
def test_what_can_change_a_figure_names_another_cell(change):
    assert cell_name(replace(CELL, **change)) != cell_name(CELL)


def test_a_buffer_is_shared_by_methods_guards_and_seeds_only():
    def name(**changes: object) -> str:
        config = replace(CELL, **changes)
        return buffer_name(config, config.executor)

    assert name(method=MethodConfig(method="aw"), guard="support", train=TrainPart(seed=3)) == name()
    assert name(evaluate=EvaluatePart(rollouts=9)) == name()
    assert name(policy=EpsilonPolicyConfig()) != name()
    assert name(collect=CollectPart(rollouts=3)) != name()


def test_an_endpoint_moved_elsewhere_is_the_same_cell():
    here = replace(CELL, executor=OpenAIConfig(model="m", base_url="http://127.0.0.1:1/v1", max_retries=1))
    there = replace(CELL, executor=OpenAIConfig(model="m", base_url="http://127.0.0.1:2/v1", timeout=5.0))
    assert cell_name(here) == cell_name(there)
    assert cell_name(here) != cell_name(replace(CELL, executor=OpenAIConfig(model="m", temperature=0.0)))


def test_a_status_comes_back_as_it_was_written(tmp_path):
    status = CellStatus("a", CellState.FAILED, "why", "where", 1.5, {"arms": ["base"]})
    write_status(tmp_path / "a", status)
    assert read_status(tmp_path / "a") == status
    assert read_status(tmp_path / "b") is None
    (tmp_path / "a" / "status.json").write_text("{")
    with pytest.raises(InputError, match=r"status\.json.*Delete it"):
        read_status(tmp_path / "a")


def test_a_lock_is_waited_for_and_handed_on(tmp_path):
    waits, done = Event(), Event()

    def second() -> None:
        with locked(tmp_path / "x.lock", waits.set):
            done.set()

    thread = Thread(target=second)
    with locked(tmp_path / "x.lock"):
        thread.start()
        assert waits.wait(30)
        assert not done.is_set()
    thread.join(30)
    assert done.is_set()


def test_a_killed_process_leaves_no_lock(tmp_path):
    hold = (
        "import pathlib,sys\nfrom experiments.cell_locks import locked\n"
        f"with locked(pathlib.Path({str(tmp_path / 'x.lock')!r})):\n print('held', flush=True)\n sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.kill()
    process.wait()
    waited: list[bool] = []
    with locked(tmp_path / "x.lock", lambda: waited.append(True)):
        assert not waited


def test_a_study_killed_midway_is_finished_by_the_same_command(tmp_path):
    words = (*SMALL, "train.seed=0,1,2", f"paths.root={tmp_path}")
    process = start("experiments.study", *words)
    assert process.stderr is not None
    first = process.stderr.readline()  # a cell has ended, the next one has begun or is about to
    process.kill()
    process.communicate()
    assert first.startswith("planning-bc-0-")
    assert ": done in" in first
    out, told = command("experiments.study", *words)
    assert "3 cells: 3 done; " in out
    before = int(out.split("3 cells: 3 done; ")[1].split()[0])
    assert 1 <= before < 3
    assert told.count(": done in") == 3 - before
