"""The completion cache: every completion is on disk before anybody uses it, and is never paid twice.

One SQLite file in WAL mode, shared by any number of processes on one host. The first completion stored under a
key stays; whoever comes second gets that one, so a replay is always what was used first.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from harness_mdp.errors import HarnessError, InputError
from harness_mdp.executors.protocol import Completion, Executor, Request

__all__ = ["CachedExecutor", "CompletionCache"]

_VERSION = 1
_BUSY_SECONDS = 60.0
_COLUMNS = ("key", "text", "prompt_tokens", "completion_tokens", "cost_usd", "seconds", "finish_reason", "model")
_ROWS_A_STATEMENT = 100  # 8 parameters each stay below the 999 that old SQLite versions allow
_CREATE = """
CREATE TABLE IF NOT EXISTS completions (
    key TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost_usd REAL,
    seconds REAL NOT NULL,
    finish_reason TEXT NOT NULL,
    model TEXT NOT NULL
)
"""
_SELECT = f"SELECT {', '.join(_COLUMNS[1:])} FROM completions WHERE key = ?"  # noqa: S608  (constants only)
_TYPES = (str, int, int, (float, type(None)), float, str, str)

Row = tuple[str, Completion]
"""A key and what is stored under it."""


class CompletionCache:
    """Completions by draw key (`Request.key`), in one SQLite file. Safe to use from several threads.

    A `put` that returned survives a kill of the process at any moment (WAL, synchronous=NORMAL: the operating
    system holds the page). A power cut may take the last moments of it, never the file's integrity.

    Args:
        path: the file; made, with its folder, where it is missing.

    Raises:
        InputError: the file is damaged, of another kind or version, or cannot be used in WAL mode.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the folder cannot be made: {error.strerror}", file=path, remedy="Choose another place"
            ) from error
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        with _explained(path):
            self._writer = self._connect()
            try:
                self._prepare()
                # A reader of its own: in WAL mode it never waits for a write, here or in another process.
                self._reader = self._connect()
            except BaseException:
                self._writer.close()
                raise

    def get(self, key: str) -> Completion | None:
        """The completion stored under `key`, or None.

        Raises:
            InputError: the file is damaged.
        """
        with _explained(self.path), self._reading:
            row = self._reader.execute(_SELECT, (key,)).fetchone()
        if row is None:
            return None
        if not all(isinstance(value, kind) for value, kind in zip(row, _TYPES, strict=True)):
            raise InputError(f"the row of key {key} is damaged", file=self.path, remedy=_DAMAGED)
        return Completion(*row)

    def put(self, key: str, completion: Completion) -> Completion:
        """Store one completion; see `put_many`."""
        return self.put_many([(key, completion)])[0]

    def put_many(self, rows: Sequence[Row]) -> list[Completion]:
        """Store completions; they are safe when this returns.

        Returns:
            What is stored under each key now: an earlier completion where there was one.

        Raises:
            InputError: the file is damaged, or cannot be written.
        """
        stored = [completion for _, completion in rows]
        for first in range(0, len(rows), _ROWS_A_STATEMENT):
            chunk = rows[first : first + _ROWS_A_STATEMENT]
            # One statement is one transaction, and one release of the interpreter lock: with a statement for
            # each row, this thread would queue for the lock behind a busy event loop as many times.
            places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(chunk))
            values = [value for key, completion in chunk for value in (key, *_values(completion))]
            with _explained(self.path), self._writing:
                cursor = self._writer.execute(f"INSERT OR IGNORE INTO completions VALUES {places}", values)  # noqa: S608
            if cursor.rowcount < len(chunk):
                for at, (key, completion) in enumerate(chunk, start=first):
                    stored[at] = self.get(key) or completion
        return stored

    def __len__(self) -> int:
        with _explained(self.path), self._reading:
            return int(self._reader.execute("SELECT count(*) FROM completions").fetchone()[0])

    def close(self) -> None:
        """Close the file; what was put is there already."""
        self._reader.close()
        self._writer.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _prepare(self) -> None:
        """Makes an empty file a cache; a file of another kind or version is refused and left as it is."""
        self._writer.execute("BEGIN")
        version = self._writer.execute("PRAGMA user_version").fetchone()[0]
        tables = self._writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        self._writer.execute("ROLLBACK")
        if version != _VERSION and (version or tables):
            raise InputError(
                f"this is no completion cache of version {_VERSION} (user_version {version}, {tables} tables)",
                file=self.path,
                remedy="Name another file",
            )
        _retried(lambda: self._writer.execute("PRAGMA journal_mode = WAL"))
        mode = self._writer.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "wal":
            raise InputError(
                f"SQLite cannot use WAL mode here (it offers {mode!r})",
                file=self.path,
                remedy="Put the completion cache on a local disk",
            )
        self._writer.execute("BEGIN IMMEDIATE")
        self._writer.execute(_CREATE)
        self._writer.execute(f"PRAGMA user_version = {_VERSION}")
        self._writer.execute("COMMIT")


class CachedExecutor:
    """Any executor behind a completion cache.

    Identical calls in flight at once are made once, and share what comes of it, a fault too. Faults are not
    stored: a context overflow costs nothing to meet again, and the others may not come again. Completions that
    arrive while a write is under way are written together by the next one.

    Args:
        inner: the executor to ask for what is not stored.
        cache: opened cache; this object closes both with `close`.
    """

    def __init__(self, inner: Executor, cache: CompletionCache) -> None:
        self._inner = inner
        self._cache = cache
        self._fingerprint = inner.fingerprint
        self._in_flight: dict[str, asyncio.Future[Completion]] = {}
        self._unwritten: list[tuple[str, Completion, asyncio.Future[Completion]]] = []
        self._write: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="completion-cache")
        self.hits = 0
        """Calls answered from the cache."""
        self.shared = 0
        """Calls that waited for an identical one already in flight."""
        self.misses = 0
        """Calls passed on to the inner executor."""
        self.paid_tokens = 0
        """Tokens of completions made now, not replayed."""
        self.paid_usd: float | None = 0.0
        """USD of completions made now; None once one had no known price."""

    @property
    def fingerprint(self) -> str:
        """The inner executor's."""
        return self._fingerprint

    @property
    def simulated(self) -> bool:
        """The inner executor's."""
        return self._inner.simulated

    async def complete(self, request: Request) -> Completion:
        """The stored completion, or a new one, stored first; raises what the inner executor raises."""
        key = request.key(self._fingerprint)
        while True:
            stored = self._cache.get(key)
            if stored is not None:
                self.hits += 1
                return stored
            ahead = self._in_flight.get(key)
            if ahead is None:
                return await self._lead(key, request)
            await asyncio.wait([ahead])
            if not ahead.cancelled():
                self.shared += 1
                return ahead.result()
            # The caller ahead was cancelled before it got an answer: look again, perhaps lead.

    async def close(self) -> None:
        """Write what has arrived, then close cache and inner executor."""
        while self._write is not None or self._unwritten:
            if self._write is None:
                self._cache.put_many([(key, completion) for key, completion, _ in self._unwritten])
                self._unwritten.clear()
            else:
                with suppress(asyncio.CancelledError):
                    await self._write
        self._thread.shutdown()
        self._cache.close()
        await self._inner.close()

    async def _lead(self, key: str, request: Request) -> Completion:
        outcome: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = outcome
        self.misses += 1
        try:
            completion = await self._inner.complete(request)
            self._book(completion)
            kept = await self._keep(key, completion)
        except asyncio.CancelledError:
            outcome.cancel()
            raise
        except Exception as error:
            outcome.set_exception(error)
            outcome.exception()  # read here, or asyncio complains where nobody else waited
            raise
        finally:
            del self._in_flight[key]
        outcome.set_result(kept)
        return kept

    def _book(self, completion: Completion) -> None:
        self.paid_tokens += completion.prompt_tokens + completion.completion_tokens
        cost = completion.cost_usd
        self.paid_usd = None if self.paid_usd is None or cost is None else self.paid_usd + cost

    async def _keep(self, key: str, completion: Completion) -> Completion:
        """Waits until `completion` is on disk; what is stored under `key`."""
        written: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._unwritten.append((key, completion, written))
        if self._write is None:
            self._write = asyncio.create_task(self._write_out())
        return await written

    async def _write_out(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._unwritten:
                batch, self._unwritten = self._unwritten, []
                rows = [(key, completion) for key, completion, _ in batch]
                try:
                    stored = await loop.run_in_executor(self._thread, self._cache.put_many, rows)
                except HarnessError as error:
                    for _, _, written in batch:
                        if not written.done():
                            written.set_exception(error)
                    continue
                for (_, _, written), kept in zip(batch, stored, strict=True):
                    if not written.done():
                        written.set_result(kept)
        finally:
            self._write = None


def _values(completion: Completion) -> tuple[str | int | float | None, ...]:
    return (
        completion.text,
        completion.prompt_tokens,
        completion.completion_tokens,
        completion.cost_usd,
        completion.seconds,
        completion.finish_reason,
        completion.model,
    )


def _retried(statement: Callable[[], object]) -> None:
    """Runs a statement that SQLite may refuse at once, without waiting, while another process does the same."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            statement()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


_DAMAGED = "Move the file away and run the command again: finished episodes stay, unfinished calls are made anew"


class _explained:  # noqa: N801  (a context manager, used like a function)
    """Turns SQLite's errors into ours, with the file and a remedy. A class, since it is on every call's path."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, sqlite3.Error | UnicodeDecodeError):
            return
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeDecodeError):
            raise InputError(f"the completion cache is damaged ({error})", file=self._path, remedy=_DAMAGED)
        remedy = {
            sqlite3.SQLITE_BUSY: f"Another process held it for {_BUSY_SECONDS:g} s; end it or wait",
            sqlite3.SQLITE_FULL: "Free space on the disk and run the command again",
        }.get(code, "Check that the folder can be written to and lies on a local disk")
        raise InputError(f"the completion cache cannot be used ({error})", file=self._path, remedy=remedy)
