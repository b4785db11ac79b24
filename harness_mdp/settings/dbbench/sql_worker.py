"""Runs SQL that a model wrote, in separate processes that own no file, no environment and little memory.

A few worker processes stay up (a start costs more than a statement); every batch runs on a fresh copy of the
table. A process that dies or outlasts its time is replaced and the request tried once more; failing again is
the SQL's doing and comes back as its error. What a statement may do is said in `sql_child`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import queue
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness_mdp.executors.protocol import InfraFault
from harness_mdp.hashing import Json
from harness_mdp.settings.dbbench.sql_dialect import to_sqlite

__all__ = ["Cell", "Row", "SqlPool", "SqlResult", "Table", "sql_pool"]

Cell = str | int | float | None
Row = tuple[Cell, ...]

_CHILD = Path(__file__).with_name("sql_child.py")
_WALL_SECONDS = 60.0
"""Per request. Far above what the instruction limit lets a statement take, so that a busy machine decides nothing."""
_MAX_SQL_CHARS = 100_000
_MAX_STATEMENTS = 20


@dataclass(frozen=True)
class Table:
    """The one table of a task; every column is TEXT."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class SqlResult:
    """What a batch of statements did on a fresh copy of a table."""

    error: str | None
    """SQLite's message for the first statement that failed; earlier ones keep their effect, later ones did not run."""
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    """Rows of the last statement that returned any (SELECT)."""
    truncated: bool = False
    """There were more rows than are returned."""
    added: tuple[Row, ...] = ()
    removed: tuple[Row, ...] = ()
    """Difference of the table after and before, as multisets; an updated row is one of each."""

    @property
    def values(self) -> tuple[Cell, ...]:
        """All cells of the rows, in order."""
        return tuple(cell for row in self.rows for cell in row)


class SqlPool:
    """Up to `size` worker processes, started when needed. Safe to use from many threads."""

    def __init__(self, size: int = 2, wall_seconds: float = _WALL_SECONDS) -> None:
        self._wall_seconds = wall_seconds
        # A free place holds a running process, or None where one has yet to be started.
        self._places: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        for _ in range(size):
            self._places.put(None)
        self._size = size

    def run(self, table: Table, sqls: Sequence[str]) -> tuple[SqlResult, ...]:
        """Run each of `sqls`, in MySQL's or SQLite's dialect, on a fresh copy of `table`.

        Raises:
            InfraFault: no worker process could be started.
        """
        names = (table.name, *table.columns)
        batches = [to_sqlite(sql, names) if len(sql) <= _MAX_SQL_CHARS else None for sql in sqls]
        runnable = [batch for batch in batches if batch and len(batch) <= _MAX_STATEMENTS]
        results = iter(self._serve(table, runnable) if runnable else ())
        return tuple(
            next(results) if batch and len(batch) <= _MAX_STATEMENTS else SqlResult(_refusal(batch))
            for batch in batches
        )

    async def arun(self, table: Table, sql: str) -> SqlResult:
        """`run` for one SQL text, without blocking the event loop."""
        return (await asyncio.to_thread(self.run, table, [sql]))[0]

    def close(self) -> None:
        """End the worker processes; a later `run` starts new ones."""
        for _ in range(self._size):
            worker = self._places.get()
            if worker is not None:
                worker.stop()
        for _ in range(self._size):
            self._places.put(None)

    def _serve(self, table: Table, batches: Sequence[tuple[str, ...]]) -> list[SqlResult]:
        request = json.dumps({"table": table.name, "columns": table.columns, "rows": table.rows, "batches": batches})
        failure = ""
        for _ in range(2):
            worker = self._places.get()
            try:
                if worker is None:
                    worker = _Worker()
                return [_result(item) for item in worker.ask(request, self._wall_seconds)]
            except _WorkerLost as lost:
                failure = str(lost)
                if worker is not None:
                    worker.stop()
                    worker = None
            finally:
                self._places.put(worker)
        if len(batches) == 1:
            return [SqlResult(failure)]
        # One bad batch must not take the others with it.
        return [self._serve(table, [batch])[0] for batch in batches]


class _WorkerLost(Exception):
    """The process died or took too long."""


class _Worker:
    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", str(_CHILD)]
        try:
            self._process = subprocess.Popen(  # noqa: S603  (our own interpreter and file)
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise InfraFault(f"the SQL process could not be started: {error}") from error

    def ask(self, request: str, wall_seconds: float) -> list[dict[str, Json]]:
        """Replies to `request`, one per batch."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            data = memoryview(request.encode() + b"\n")
            while data:
                data = data[stdin.write(data) :]
            line = bytearray()
            while not line.endswith(b"\n"):
                ready, _, _ = select.select([stdout], [], [], wall_seconds)
                if not ready:
                    raise _WorkerLost(f"the SQL took longer than {wall_seconds:g} s")
                chunk = os.read(stdout.fileno(), 1 << 16)
                if not chunk:
                    raise _WorkerLost("the SQL ended its process: too much memory or time")
                line += chunk
        except OSError as error:
            raise _WorkerLost(f"the SQL ended its process: {error}") from error
        return json.loads(line)["results"]

    def stop(self) -> None:
        """Kill the process and wait for its end."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _refusal(batch: tuple[str, ...] | None) -> str:
    if batch is None:
        return f"the SQL is longer than {_MAX_SQL_CHARS} characters"
    if not batch:
        return "the SQL is empty"
    return f"{len(batch)} statements; at most {_MAX_STATEMENTS} are run"


def _result(item: dict[str, Json]) -> SqlResult:
    return SqlResult(
        error=item["error"],
        columns=tuple(item["columns"]),
        rows=tuple(map(tuple, item["rows"])),
        truncated=item["truncated"],
        added=tuple(map(tuple, item["added"])),
        removed=tuple(map(tuple, item["removed"])),
    )


def sql_pool() -> SqlPool:
    """The pool of this process; a forked child gets its own."""
    return _pool_of(os.getpid())


@cache
def _pool_of(_pid: int) -> SqlPool:
    pool = SqlPool(size=min(4, os.cpu_count() or 1))
    atexit.register(pool.close)
    return pool
