"""Several processes, kills, compaction: every episode is there once, and `_harness/` stays."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from buffers import Attempt, ReplayBuffer
from tests.episodes import episodes

ROOT = Path(__file__).resolve().parents[1]


def ids_in_table(path: Path) -> Counter[str]:
    """Every stored id with the number of its rows, read without our own code."""
    import polars as pl

    return Counter(pl.scan_delta(str(path)).select("episode_id").collect()["episode_id"].to_list())


def append_all(path: str, turn: int, gate, counts) -> None:
    """One of the processes: the same episodes as the others, in an order of its own."""
    made = episodes(48)
    buffer = ReplayBuffer(path)
    gate.wait()
    stored = 0
    for start in range(0, 48, 8):
        shifted = (start + 8 * turn) % 48
        stored += buffer.append(made[shifted : shifted + 8] + made[:2])
    counts.put(stored)
    buffer.harness.add_attempts(
        [
            Attempt(f"missing-{turn}-{i}", "run", "made_up", "t", i, "p", "APITimeoutError", "slow", "")
            for i in range(20)
        ]
    )


def test_processes_that_append_the_same_work_store_it_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    gate, counts = context.Barrier(3), context.Queue()
    workers = [context.Process(target=append_all, args=(str(tmp_path / "b"), turn, gate, counts)) for turn in range(3)]
    for worker in workers:
        worker.start()
    stored = sum(counts.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    found = ids_in_table(tmp_path / "b")
    assert set(found) == {e.episode_id for e in episodes(48)}
    assert set(found.values()) == {1}
    assert stored == 48
    assert len(ReplayBuffer(tmp_path / "b").harness.attempts()) == 60
    assert len(ReplayBuffer(tmp_path / "b").infra_missing()) == 60


KILLED = """
import sys
from buffers import ReplayBuffer
from tests.episodes import episodes
buffer = ReplayBuffer(sys.argv[1])
for start in range(0, 400, 4):
    buffer.append(episodes(start + 4)[start:])
    print(start, flush=True)
"""


def test_a_killed_writer_leaves_whole_episodes_and_a_usable_buffer(tmp_path):
    path = tmp_path / "b"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        committed = [int(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGKILL)
    made = {e.episode_id: e for e in episodes(40)}
    assert {e.episode_id for e in episodes(committed[-1] + 4)} <= set(ids_in_table(path))
    for episode in ReplayBuffer(path).episodes():
        assert len(episode.steps) == len(made[episode.episode_id].steps)
    ReplayBuffer(path).append(episodes(40))
    found = ids_in_table(path)
    assert set(found) == set(made)
    assert set(found.values()) == {1}


def test_compaction_and_vacuum_leave_harness_and_every_episode(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    made = episodes(30)
    for episode in made:
        buffer.append([episode])
    buffer.harness.write_run("run-1", passed=["seed=0"], resolved={"seed": 0})
    buffer.harness.completions.write_bytes(b"kept")
    (tmp_path / "_harness" / "part-00000.parquet").write_bytes(b"kept too")
    before = buffer.stats
    buffer.compact()
    assert buffer.vacuum(0, dry_run=True)
    buffer.vacuum(0)
    after = buffer.stats
    assert len(list(tmp_path.glob("*.parquet"))) == after.files < before.files
    assert after.counts == before.counts
    assert ids_in_table(tmp_path) == Counter(e.episode_id for e in made)
    assert buffer.harness.completions.read_bytes() == b"kept"
    assert (tmp_path / "_harness" / "part-00000.parquet").exists()
    assert set(buffer.harness.runs()) == {"run-1"}
    assert buffer.append(made) == 0


def test_a_writer_goes_on_after_another_compacted(tmp_path):
    one, two = ReplayBuffer(tmp_path), ReplayBuffer(tmp_path)
    made = episodes(12)
    for episode in made[:6]:
        one.append([episode])
    two.compact()
    two.vacuum(0)
    assert one.append(made) == 6
    assert ids_in_table(tmp_path) == Counter(e.episode_id for e in made)


def test_an_object_store_uri_works_like_a_path(tmp_path):
    path = tmp_path / "b"
    path.mkdir()
    buffer = ReplayBuffer(path.as_uri(), side=tmp_path / "side")
    made = episodes(9)
    assert buffer.append(made) == 9
    assert buffer.append(made) == 0
    assert buffer.tensors("made_up").n_episodes == 9
    assert len(list(buffer.episodes())) == 9
    assert buffer.harness.completions == tmp_path / "side" / "completions.sqlite"
