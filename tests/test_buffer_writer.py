"""Batched commits: when a batch is full, when its time is up, and at the end, whatever ends it."""

from __future__ import annotations

import asyncio

import pytest

from buffers import ReplayBuffer
from tests.episodes import episode, episodes


def test_a_full_batch_is_committed_while_the_writer_is_open(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    with buffer.writer(max_episodes=4, max_seconds=3600) as writer:
        for e in episodes(9):
            writer.add(e)
        assert writer.wait_stored(8, timeout=60)
        assert len(buffer.episode_ids()) == 8
    assert len(buffer.episode_ids()) == writer.stored == 9


def test_batches_share_commits(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    with buffer.writer(max_episodes=50, max_seconds=3600) as writer:
        for e in episodes(100):
            writer.add(e)
    assert buffer.version == 2


def test_a_batch_that_is_not_full_is_committed_when_its_time_is_up(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    with buffer.writer(max_episodes=1000, max_seconds=0.01) as writer:
        writer.add(episode(0))
        assert writer.wait_stored(1, timeout=60)
        assert len(buffer.episode_ids()) == 1


def test_flush_commits_what_was_added(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    with buffer.writer(max_seconds=3600) as writer:
        for e in episodes(3):
            writer.add(e)
        writer.flush()
        assert len(buffer.episode_ids()) == 3


@pytest.mark.parametrize("problem", [RuntimeError("the run broke"), KeyboardInterrupt()])
def test_finished_episodes_are_committed_when_an_exception_ends_the_run(tmp_path, problem):
    buffer = ReplayBuffer(tmp_path)

    def collect() -> None:
        with buffer.writer() as writer:
            writer.add(episode(0))
            raise problem

    with pytest.raises(type(problem)):
        collect()
    assert len(buffer.episode_ids()) == 1


def test_async_writer_commits_also_when_cancelled(tmp_path):
    buffer = ReplayBuffer(tmp_path)

    async def collect() -> None:
        async with buffer.writer() as writer:
            for e in episodes(5):
                writer.add(e)
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(collect())
    assert len(buffer.episode_ids()) == 5


def test_a_failed_commit_is_reported_and_not_swallowed(tmp_path):
    file = tmp_path / "occupied"
    file.write_text("no folder")
    with pytest.raises(Exception, match="this is a file"), ReplayBuffer(file).writer() as writer:
        writer.add(episode(0))


def test_episodes_that_are_there_already_do_not_count(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(3))
    with buffer.writer() as writer:
        for e in episodes(5):
            writer.add(e)
    assert (writer.added, writer.stored) == (5, 2)


def test_many_small_files_are_merged_at_the_end(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    with buffer.writer(max_episodes=2, compact=True) as writer:
        for e in episodes(8):
            writer.add(e)
    assert buffer.stats.files == 4
    with buffer.writer(max_episodes=2, compact=True) as writer:
        for e in episodes(20):
            writer.add(e)
    assert buffer.stats.files == 1
    assert buffer.stats.episodes == 20


def test_adding_outside_of_the_context_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="with buffer"):
        ReplayBuffer(tmp_path).writer().add(episode(0))
