"""Batched commits: one commit for 256 episodes or 5 seconds, whichever comes first.

A commit of its own for every episode would grow to 24 kB and 135 ms each; a batch costs a fraction. The commits run
in a thread, so an event loop goes on meanwhile. An episode is finished when it is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from threading import Condition, Thread
from time import monotonic
from types import TracebackType

from harness_mdp.mdp import Episode

__all__ = ["MAX_EPISODES", "MAX_SECONDS", "EpisodeWriter"]

MAX_EPISODES = 256
MAX_SECONDS = 5.0


class EpisodeWriter:
    """Collects episodes and commits them in the background. Use it with `with` or `async with`.

    Leaving the context commits what is left, also when an exception is on its way. An error of a commit is raised by
    the next `add`, `flush` or `close`; the episodes of that batch are then not stored.
    """

    def __init__(
        self,
        append: Callable[[Sequence[Episode]], int],
        at_end: Callable[[], None] | None = None,
        *,
        max_episodes: int = MAX_EPISODES,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        if max_episodes < 1 or max_seconds < 0:
            raise ValueError(f"a batch of {max_episodes} episodes or {max_seconds} s; expected >= 1 and >= 0")
        self._append = append
        self._at_end = at_end
        self._max_episodes = max_episodes
        self._max_seconds = max_seconds
        self._changed = Condition()
        self._waiting: list[Episode] = []
        self._due = 0.0
        self._added = 0
        self._done = 0
        self._stored = 0
        self._flush_to = 0
        self._closing = False
        self._error: BaseException | None = None
        self._thread: Thread | None = None

    @property
    def added(self) -> int:
        """Episodes taken so far; less `stored`, after the end, are those that were there already."""
        return self._added

    @property
    def stored(self) -> int:
        """Episodes committed so far; those that were there already do not count."""
        return self._stored

    def add(self, episode: Episode) -> None:
        """Takes an episode; returns at once.

        Raises:
            RuntimeError: outside of the context.
            Exception: what an earlier commit failed with.
        """
        with self._changed:
            self._raise()
            if self._thread is None or self._closing:
                raise RuntimeError("episodes are added inside `with buffer.writer() as writer:`")
            if not self._waiting:
                self._due = monotonic() + self._max_seconds
            self._waiting.append(episode)
            self._added += 1
            self._changed.notify_all()

    def flush(self) -> None:
        """Waits until everything added so far is committed."""
        with self._changed:
            self._flush_to = self._added
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._done >= self._flush_to or self._error is not None)
            self._raise()

    def wait_stored(self, episodes: int, timeout: float) -> bool:
        """Waits, without asking for a commit, until `episodes` are committed; False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._stored >= episodes, timeout)

    def close(self) -> None:
        """Commits what is left, then runs `at_end` if anything was stored."""
        thread = self._thread
        if thread is None:
            return
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        thread.join()
        self._thread = None
        self._raise()
        if self._at_end is not None and self._stored:
            self._at_end()

    def __enter__(self) -> EpisodeWriter:
        self._closing = False
        # Not a daemon: an interpreter that ends regularly lets the last commit finish.
        self._thread = Thread(target=self._run, name="episode-writer")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> EpisodeWriter:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Shielded: a cancelled collection still commits what it finished.
        await asyncio.shield(asyncio.to_thread(self.close))

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                stored = self._append(batch)
            except BaseException as error:  # noqa: BLE001  (handed to the caller by `_raise`)
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._stored += stored
                self._done += len(batch)
                self._changed.notify_all()

    def _next_batch(self) -> list[Episode]:
        """Waits until a batch is due; empty when the writer closes and nothing is left."""
        with self._changed:
            while True:
                asked = self._closing or self._flush_to > self._done
                full = len(self._waiting) >= self._max_episodes
                left = self._due - monotonic()
                if self._waiting and (asked or full or left <= 0):
                    batch = self._waiting[: self._max_episodes]
                    self._waiting = self._waiting[self._max_episodes :]
                    if self._waiting:
                        self._due = monotonic() + self._max_seconds
                    return batch
                if self._closing:
                    return []
                self._changed.wait(left if self._waiting else None)
