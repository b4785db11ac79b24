"""The completion cache: on disk before use, paid once, shared between processes, and honest about damage."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_mdp.errors import InputError
from harness_mdp.executors.cache import CachedExecutor, CompletionCache
from harness_mdp.executors.openai import OpenAIExecutor
from harness_mdp.executors.protocol import (
    AgentFault,
    Completion,
    DrawKey,
    InfraFault,
    Message,
    Purpose,
    Request,
)
from tests.loopback import Loopback, completion, failure, in_turn

ONE = Completion("text", 3, 2, 0.25, 1.5, "stop", "model")


def request(rollout: int = 0, occurrence: int = 0) -> Request:
    return Request((Message("user", "hi"),), Purpose.DRAFT, "t", "h", DrawKey(1, rollout, occurrence))


def open_executor(server: Loopback, path: Path, **options: object) -> CachedExecutor:
    inner = OpenAIExecutor("m", base_url=server.base_url, max_retries=0, **options)  # type: ignore[arg-type]
    return CachedExecutor(inner, CompletionCache(path))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
completions = st.builds(
    Completion,
    text=texts,
    prompt_tokens=st.integers(0, 2**53),
    completion_tokens=st.integers(0, 2**53),
    cost_usd=st.none() | st.floats(0, 1e6),
    seconds=st.floats(0, 1e6),
    finish_reason=texts,
    model=texts,
)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.text("0123456789abcdef", min_size=32, max_size=32), completions, max_size=250))
def test_what_is_put_is_there_after_reopening(rows: dict[str, Completion]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "deep" / "cache.sqlite"
        cache = CompletionCache(path)
        assert cache.put_many(list(rows.items())) == list(rows.values())
        cache.close()
        again = CompletionCache(path)
        assert len(again) == len(rows)
        for key, put in rows.items():
            got = again.get(key)
            assert got == put
            assert got.seconds == put.seconds
        assert again.get("absent") is None
        again.close()


def test_the_first_completion_under_a_key_stays(tmp_path: Path) -> None:
    cache, other = (CompletionCache(tmp_path / "c.sqlite") for _ in range(2))
    second = replace(ONE, text="second")
    assert cache.put("k", ONE) == ONE
    assert other.put_many([("new", second), ("k", second)]) == [second, ONE]
    assert cache.get("new") == second
    cache.close()
    other.close()


def test_a_replayed_call_is_not_made_again_and_keeps_its_figures(tmp_path: Path) -> None:
    async def once(server: Loopback) -> tuple[list[Completion], CachedExecutor]:
        executor = open_executor(server, tmp_path / "c.sqlite")
        got = list(await asyncio.gather(*(executor.complete(request(n)) for n in range(30))))
        await executor.close()
        return got, executor

    with Loopback() as server:
        first, made = asyncio.run(once(server))
        second, replayed = asyncio.run(once(server))
        assert server.calls == 30
    assert first == second
    assert [one.seconds for one in first] == [one.seconds for one in second]
    assert (made.hits, made.misses, made.paid_tokens, made.paid_usd) == (0, 30, 30 * 18, None)
    assert (replayed.hits, replayed.misses, replayed.paid_tokens, replayed.paid_usd) == (30, 0, 0, 0.0)


def test_other_draws_and_other_executors_do_not_share_completions(tmp_path: Path) -> None:
    async def work(server: Loopback) -> None:
        for label in ("a", "b"):
            executor = open_executor(server, tmp_path / "c.sqlite", label=label)
            assert executor.fingerprint == OpenAIExecutor("m", base_url=server.base_url, label=label).fingerprint
            assert not executor.simulated
            for asked in (request(0), request(1), request(0, 1)):
                await executor.complete(asked)
            await executor.close()

    with Loopback() as server:
        asyncio.run(work(server))
        assert server.calls == 6


def test_identical_calls_in_flight_are_made_once(tmp_path: Path) -> None:
    async def work(server: Loopback) -> None:
        executor = open_executor(server, tmp_path / "c.sqlite")
        got = await asyncio.gather(*(executor.complete(request()) for _ in range(10)))
        assert len({one.text for one in got}) == 1
        assert (executor.misses, executor.shared) == (1, 9)
        await executor.close()

    with Loopback(latency=0.02) as server:
        asyncio.run(work(server))
        assert server.calls == 1


def test_a_cancelled_caller_does_not_take_the_others_along(tmp_path: Path) -> None:
    async def work(server: Loopback) -> None:
        executor = open_executor(server, tmp_path / "c.sqlite")
        first, second, third = (asyncio.create_task(executor.complete(request())) for _ in range(3))
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        assert (await third).text
        assert first.cancelled()
        assert second.cancelled()
        await executor.close()

    with Loopback(latency=0.02) as server:
        asyncio.run(work(server))


def test_faults_are_shared_in_flight_but_never_stored(tmp_path: Path) -> None:
    async def work(server: Loopback) -> None:
        executor = open_executor(server, tmp_path / "c.sqlite")
        both = await asyncio.gather(*(executor.complete(request()) for _ in range(2)), return_exceptions=True)
        assert [type(one) for one in both] == [AgentFault, AgentFault]
        with pytest.raises(InfraFault):
            await executor.complete(request())
        assert (await executor.complete(request())).text == "at last"
        await executor.close()

    answers = (failure(400, code="context_length_exceeded"), failure(500), completion("at last"))
    with Loopback(in_turn(*answers)) as server:
        asyncio.run(work(server))
        assert server.calls == 3


def test_closing_keeps_what_has_arrived(tmp_path: Path) -> None:
    """Callers that are cancelled while their completion is being written do not lose it."""

    async def work() -> None:
        cache = CompletionCache(tmp_path / "c.sqlite")
        executor = CachedExecutor(OpenAIExecutor("m", base_url="http://127.0.0.1:1/v1"), cache)
        waiting = [asyncio.create_task(executor._keep(f"k{n}", ONE)) for n in range(20)]
        await asyncio.sleep(0)
        for one in waiting:
            one.cancel()
        await executor.close()

    asyncio.run(work())
    assert len(CompletionCache(tmp_path / "c.sqlite")) == 20


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from harness_mdp.executors.cache import CachedExecutor, CompletionCache
from harness_mdp.executors.openai import OpenAIExecutor
from harness_mdp.executors.protocol import DrawKey, Message, Purpose, Request

async def main(url, path, stop):
    executor = CachedExecutor(OpenAIExecutor("m", base_url=url, concurrency=8), CompletionCache(Path(path)))
    callers = asyncio.Semaphore(8)  # as the runner limits its episodes: a slow disk then holds back new calls
    done = 0
    async def one(n):
        nonlocal done
        async with callers:
            got = await executor.complete(Request((Message("user", "hi"),), Purpose.DRAFT, "t", "h", DrawKey(1, n, 0)))
            print(n, got.text, flush=True)
            done += 1
            if done == stop:
                os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.gather(*(one(n) for n in range(40)))
    await executor.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def test_a_kill_loses_no_completion_that_was_used(tmp_path: Path) -> None:
    with Loopback() as server:

        def start(stop: int) -> tuple[int, dict[str, str]]:
            command = [sys.executable, "-c", KILLED, server.base_url, str(tmp_path / "c.sqlite"), str(stop)]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=dict(os.environ))
            return ended.returncode, dict(line.split(" ", 1) for line in ended.stdout.splitlines())

        first, used = start(1)
        second, more = start(25)
        third, everything = start(-1)
        # Only what the callers were waiting for at the moment of a kill can have been asked for twice.
        assert server.calls <= 40 + 2 * 8
    assert (first, second, third) == (-signal.SIGKILL, -signal.SIGKILL, 0)
    assert len(everything) == 40
    for earlier in (used, more):
        assert earlier.items() <= everything.items()


WRITER = """
import sys
from pathlib import Path
from harness_mdp.executors.cache import CompletionCache
from harness_mdp.executors.protocol import Completion

cache = CompletionCache(Path(sys.argv[1]))
for n in range(0, 200, 5):
    rows = [(f"shared{m}", Completion(sys.argv[2], 1, 1, None, 0.0, "stop", "m")) for m in range(n, n + 5)]
    print(*(stored.text for stored in cache.put_many(rows)))
cache.close()
"""


def test_several_processes_write_at_once_and_agree(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, name], stdout=subprocess.PIPE, text=True)
        for name in "abcd"
    ]
    saw = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 0]
    assert len(set(saw)) == 1
    assert len(CompletionCache(path)) == 200


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(InputError, match=r"c\.sqlite.*damaged.*Move the file away"):
        CompletionCache(path)


def test_a_damaged_page_is_reported_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = CompletionCache(path)
    cache.put_many([(f"k{n}", replace(ONE, text="x" * 500)) for n in range(200)])
    cache.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    cache = CompletionCache(path)
    with pytest.raises(InputError, match=r"c\.sqlite.*damaged.*Move the file away"):
        cache.get("k1")
    with pytest.raises(InputError, match="damaged"):
        cache.put("another", ONE)
    cache.close()


def test_a_damaged_row_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = CompletionCache(path)
    cache.put("k", ONE)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE completions SET prompt_tokens = 'three'")
    with pytest.raises(InputError, match="row of key k is damaged"):
        cache.get("k")
    cache.close()


def test_another_kind_of_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE people (name TEXT)")
    with pytest.raises(InputError, match="no completion cache of version 1"):
        CompletionCache(path)
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("people",)]
        assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_damage_met_while_running_reaches_the_caller(tmp_path: Path) -> None:
    async def work(server: Loopback) -> None:
        executor = open_executor(server, tmp_path / "c.sqlite")
        await executor.complete(request())
        with sqlite3.connect(tmp_path / "c.sqlite") as other:
            other.execute("DROP TABLE completions")
        with pytest.raises(InputError, match=r"c\.sqlite"):
            await executor.complete(request(1))
        await executor.close()

    with Loopback() as server:
        asyncio.run(work(server))


def test_a_place_that_cannot_hold_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Choose another place"):
        CompletionCache(tmp_path / "file" / "c.sqlite")
    with pytest.raises(InputError, match="cannot be used"):
        CompletionCache(tmp_path)
