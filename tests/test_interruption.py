"""kill -9 at any moment, then the same command: every episode once, no finished completion paid twice."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from buffers import ReplayBuffer
from tests.commands import command, start
from tests.loopback import Answer, Body, Loopback, completion

EPISODES = 8 * 2


def collection(server: Loopback, buffer: Path) -> tuple[str, ...]:
    return (
        "setting=coding",
        "setting.tasks=10",
        "rollouts=2",
        "concurrency=4",
        f"buffer={buffer}",
        "executor=openai",
        "executor.model=loopback-model",
        f"executor.base_url={server.base_url}",
    )


def paid(buffer: Path) -> int:
    """Completions in the cache."""
    file = buffer / "_harness" / "completions.sqlite"
    if not file.exists():
        return 0
    with closing(sqlite3.connect(file)) as db:
        return db.execute("SELECT count(*) FROM completions").fetchone()[0]


@pytest.mark.parametrize("calls_before_the_kill", [1, 9, 18])
def test_a_killed_collection_goes_on_where_it_stopped(tmp_path: Path, calls_before_the_kill: int) -> None:
    reached = threading.Event()

    def behaviour(body: Body, call: int) -> Answer:
        if call >= calls_before_the_kill:
            reached.set()
        return completion(f"```python\ndef solve(value):\n    return {len(str(body)) % 7}\n```")

    buffer = tmp_path / "buffer"
    with Loopback(behaviour) as server:
        first = start("harness_mdp.collect", *collection(server, buffer), env={"OPENAI_API_KEY": "sk-test"})
        assert reached.wait(timeout=120)
        first.kill()
        first.communicate()
        kept, answered = paid(buffer), server.calls
        finished = set(ReplayBuffer(buffer).episodes_df()["episode_id"]) if ReplayBuffer(buffer).exists else set()

        command("harness_mdp.collect", *collection(server, buffer), env={"OPENAI_API_KEY": "sk-test"})
        rows = ReplayBuffer(buffer).episodes_df()
        assert len(rows) == rows["episode_id"].n_unique() == EPISODES
        assert finished <= set(rows["episode_id"])
        assert server.calls - answered == paid(buffer) - kept

        calls = server.calls
        command("harness_mdp.collect", *collection(server, buffer), env={"OPENAI_API_KEY": "sk-test"})
        assert server.calls == calls
    command("harness_mdp.verify", f"buffer={buffer}")


def test_an_endpoint_that_is_down_gives_no_return_and_is_tried_again(tmp_path: Path) -> None:
    down = True

    def behaviour(_: Body, call: int) -> Answer:
        if down and call % 3 == 0:
            return Answer(status=503, body={"error": {"message": "overloaded"}})
        return completion("```python\ndef solve(value):\n    return value\n```")

    buffer = tmp_path / "buffer"
    with Loopback(behaviour) as server:
        arguments = (*collection(server, buffer), "executor.max_retries=0")
        out, _ = command("harness_mdp.collect", *arguments, env={"OPENAI_API_KEY": "sk-test"}, expect=1)
        assert "infra_missing" in out
        missing = ReplayBuffer(buffer).infra_missing()
        stored = ReplayBuffer(buffer).stats.episodes if ReplayBuffer(buffer).exists else 0
        assert missing
        assert stored + len(missing) == EPISODES
        down = False
        command("harness_mdp.collect", *arguments, env={"OPENAI_API_KEY": "sk-test"})
    assert ReplayBuffer(buffer).stats.episodes == EPISODES
    assert not ReplayBuffer(buffer).infra_missing()


def test_keys_reach_neither_buffer_nor_cache_nor_output(tmp_path: Path) -> None:
    secret = "sk-very-secret-5c1d"
    buffer = tmp_path / "buffer"
    with Loopback(lambda body, call: completion("```python\ndef solve(value):\n    return 1\n```")) as server:
        out, err = command("harness_mdp.collect", *collection(server, buffer), env={"OPENAI_API_KEY": secret})
    assert secret not in out + err
    for path in buffer.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes(), path
