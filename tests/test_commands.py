"""The loop as a user runs it: collect, train, evaluate, verify, in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from buffers import ReplayBuffer
from tests.commands import command

SMALL = ("setting=coding", "setting.tasks=10", "rollouts=3", "seed=0")
WALL_TIMES = ("seconds",)


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a buffer, two controllers and an evaluation table, made by the three commands."""
    root = tmp_path_factory.mktemp("loop")
    command("harness_mdp.collect", *SMALL, f"buffer={root}/buffer", cwd=root)
    for method in ("aw", "bc"):
        command(
            "harness_mdp.train", f"buffer={root}/buffer", "setting=coding", f"method={method}", f"out={root}/{method}"
        )
    policies = f"policies=[base,forced_check,check_revise,{root}/bc,{root}/aw]"
    out, _ = command(
        "harness_mdp.evaluate",
        f"buffer={root}/buffer",
        "setting=coding",
        "setting.tasks=10",
        policies,
        "rollouts=2",
        f"out={root}/table.json",
        "events=true",
    )
    (root / "evaluate.txt").write_text(out)
    return root


def test_collect_logs_one_row_per_episode(loop: Path) -> None:
    rows = ReplayBuffer(loop / "buffer").episodes_df(phase="collect")
    assert len(rows) == 8 * 3
    assert rows["episode_id"].n_unique() == len(rows)
    assert set(rows["eval_status"]) <= {"scored", "invalid"}
    assert set(rows["split"]) == {"train"}
    assert rows["return"].is_between(0, 1).all()


def test_the_buffer_folder_is_a_delta_table_that_polars_reads(loop: Path) -> None:
    table = pl.scan_delta(str(loop / "buffer")).select("episode_id", "task_id", "setting", "eval_status", "return")
    assert table.collect().height == 8 * 3 + 2 * 2 * 5


def test_evaluate_shows_every_arm_with_n_and_interval_and_says_simulated(loop: Path) -> None:
    rows = pl.DataFrame(json.loads((loop / "table.json").read_text()))
    assert rows["arm"].unique(maintain_order=True).to_list() == ["base", "forced_check", "check_revise", "bc", "aw"]
    assert set(rows["outcome"]) == {"quality", "maturity"}
    assert (rows["n_tasks"] == 2).all()
    assert (rows["n_episodes"] == 4).all()
    assert rows.select(pl.col("mean_low") <= pl.col("mean"), pl.col("mean") <= pl.col("mean_high")).to_numpy().all()
    text = (loop / "evaluate.txt").read_text()
    assert "simulated" in text
    assert "CheckBeforeSubmit" in text


def test_verify_finds_that_everything_replays(loop: Path) -> None:
    out, _ = command("harness_mdp.verify", f"buffer={loop}/buffer")
    assert "0 values in 0 episodes" in out


def test_the_same_command_again_does_no_work(loop: Path) -> None:
    before = ReplayBuffer(loop / "buffer").version
    out, _ = command("harness_mdp.collect", *SMALL, f"buffer={loop}/buffer")
    assert "24 there before, 0 run now" in out
    assert ReplayBuffer(loop / "buffer").version == before


def test_no_stray_files(loop: Path) -> None:
    assert {path.name for path in loop.iterdir()} == {"buffer", "aw", "bc", "table.json", "evaluate.txt"}


def test_the_same_seed_gives_the_same_episodes_under_another_hash_seed(tmp_path: Path) -> None:
    frames = []
    for hash_seed in ("1", "2"):
        path = tmp_path / hash_seed
        command("harness_mdp.collect", *SMALL, f"buffer={path}", env={"PYTHONHASHSEED": hash_seed})
        frames.append(every_value(path))
    assert_frame_equal(*frames)


def every_value(path: Path) -> pl.DataFrame:
    """All columns but wall times, in the order of episode ids."""
    rows = pl.read_delta(str(path)).sort("episode_id").drop(WALL_TIMES)
    events = pl.element().struct.field("event").struct
    fields = [field.name for field in rows.schema["steps"].inner.fields if field.name != "event"]
    inner = [f.name for f in {f.name: f.dtype for f in rows.schema["steps"].inner.fields}["event"].fields]
    kept = [pl.element().struct.field(name) for name in fields]
    kept += [events.field(name).alias(f"event_{name}") for name in inner if name not in WALL_TIMES]
    return rows.with_columns(pl.col("steps").list.eval(pl.struct(kept)))


def test_two_processes_that_run_the_same_command_at_once_store_every_episode_once(tmp_path: Path) -> None:
    from tests.commands import start

    both = [start("harness_mdp.collect", *SMALL, f"buffer={tmp_path}/buffer") for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, out + err
    rows = ReplayBuffer(tmp_path / "buffer").episodes_df()
    assert len(rows) == rows["episode_id"].n_unique() == 24


def test_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    out, _ = command("harness_mdp.collect", *SMALL, f"buffer={tmp_path}/none", "dry_run=true")
    assert "episodes to run  24" in out
    assert "at most 240" in out
    assert not (tmp_path / "none").exists()


def test_a_token_limit_stops_cleanly_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    buffer = f"buffer={tmp_path}/buffer"
    out, _ = command("harness_mdp.collect", *SMALL, buffer, "limits.tokens=2000", "concurrency=1")
    assert "limits.tokens=2000 is spent" in out
    first = set(ReplayBuffer(tmp_path / "buffer").episodes_df()["episode_id"])
    assert 0 < len(first) < 24
    again, _ = command("harness_mdp.collect", *SMALL, buffer, "limits.tokens=2000", "concurrency=1")
    assert "0 run now" in again
    command("harness_mdp.collect", *SMALL, buffer)
    assert first < set(ReplayBuffer(tmp_path / "buffer").episodes_df()["episode_id"])
    assert ReplayBuffer(tmp_path / "buffer").stats.episodes == 24
