"""Exactly-once appends to the Delta table below a buffer, from any number of processes.

Every append carries the Delta transaction id `APP_ID`. Delta refuses a commit when another one with the same id landed
since the snapshot it was made from, so of two writers that looked at the same version one wins; the other looks again,
drops the episodes that are there now, and retries. Only the episode ids of files not seen before are read for that. A
`merge` on the id conflicts in the same way, but joins the whole table for every batch. Compaction carries no such id
and never makes an append fail.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import RLock
from typing import cast

import pyarrow as pa
from deltalake import ColumnProperties, CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from buffers.files import file_names, read_file
from buffers.location import Location, first_line, named_errors
from buffers.log import create_log, log_exists, open_log, require_writable_log
from harness_mdp.errors import HarnessError, UnusableBuffer
from harness_mdp.hashing import generator

__all__ = ["EpisodeTable"]

APP_ID = "harness-mdp episodes"
_MAX_TRIES = 1000
_MAX_WAIT = 2.0
_WEEK = 168
_FILTERED = ColumnProperties(statistics_enabled="CHUNK", dictionary_enabled=True)
_WRITER = WriterProperties(
    compression="ZSTD",
    compression_level=9,
    # Seventy columns with their extremes make a footer of 20 kB, more than a small batch of episodes.
    default_column_properties=ColumnProperties(statistics_enabled="NONE", dictionary_enabled=True),
    column_properties=dict.fromkeys(("setting", "phase", "split", "run"), _FILTERED),
)


class EpisodeTable:
    """A Delta table of `SCHEMA`; safe to share between threads."""

    def __init__(self, where: Location, version: int | None) -> None:
        self.where = where
        self._pinned = version
        self._lock = RLock()
        self._handle: DeltaTable | None = None
        self._ids_by_file: dict[str, Sequence[str]] = {}

    def snapshot(self) -> DeltaTable:
        """The table as it is now, or at the pinned version; raises what `open_log` does."""
        return open_log(self.where, self._pinned)

    def require_newest(self) -> None:
        """Raises UnusableBuffer when pinned to a version, which is for reading only."""
        if self._pinned is not None:
            raise UnusableBuffer(f"{self.where.uri}: opened at version {self._pinned}, which is for reading only")

    def ids(self) -> frozenset[str]:
        """All episode ids; empty before the table is made."""
        if self._pinned is None and not log_exists(self.where):
            return frozenset()
        with self._lock:
            return frozenset(self._ids(self.snapshot()))

    def append(self, rows: pa.Table) -> int:
        """Commits the rows whose episode id is not there yet, in one commit; how many that were.

        Raises:
            InputError: the folder cannot be made or written (no permission, no space, a file).
            UnusableBuffer: what is there is no buffer, or damaged.
            HarnessError: the commit cannot be made.
        """
        with self._lock:
            for attempt in count():
                table = self._writable()
                new = _first_of_each(rows, self._ids(table))
                if new.num_rows == 0:
                    return 0
                require_writable_log(self.where)
                try:
                    with named_errors(self.where.uri):
                        _commit(table, new)
                    return new.num_rows
                except CommitFailedError as error:
                    if attempt >= _MAX_TRIES:
                        raise HarnessError(
                            f"{self.where.uri}: {new.num_rows} episodes could not be committed after {attempt} tries "
                            f"({first_line(error)})"
                        ) from error
                    spread = generator("commit back-off", os.getpid(), attempt).uniform(0.2, 1.0)
                    time.sleep(spread * min(_MAX_WAIT, 0.02 * 2 ** min(attempt, 8)))
                except DeltaError as error:
                    raise HarnessError(
                        f"{self.where.uri}: {new.num_rows} episodes could not be committed ({first_line(error)})"
                    ) from error
        raise AssertionError("unreachable")

    def compact(self) -> None:
        """Merges small files into large ones; if another process does so at the same time, that is enough."""
        with self._lock:
            table = self._writable()
            try:
                with self._named("be compacted"):
                    table.optimize.compact(writer_properties=_WRITER)
            except CommitFailedError:
                self._handle = None

    def vacuum(self, retention_hours: int, dry_run: bool) -> list[str]:
        """Deletes files that no version of the last `retention_hours` needs; their names."""
        with self._lock:
            table = self._writable()
            with self._named("be vacuumed"):
                return table.vacuum(
                    retention_hours=retention_hours,
                    dry_run=dry_run,
                    enforce_retention_duration=retention_hours >= _WEEK,
                    full=True,
                )

    @contextmanager
    def _named(self, doing: str) -> Generator[None]:
        """Errors of the library by the table's name; a lost race stays what it is."""
        try:
            with named_errors(self.where.uri, doing):
                yield
        except CommitFailedError:
            raise
        except DeltaError as error:
            raise HarnessError(f"{self.where.uri}: cannot {doing} ({first_line(error)})") from error

    def _writable(self) -> DeltaTable:
        """The newest version, for changing it; made if it is not there."""
        self.require_newest()
        if self._handle is None:
            if not log_exists(self.where):
                create_log(self.where)
            self._handle = self.snapshot()
        else:
            with self._named("be read"):
                self._handle.update_incremental()
        return self._handle

    def _ids(self, table: DeltaTable) -> set[str]:
        names = file_names(table)
        for name in names:
            if name not in self._ids_by_file:
                column = read_file(self.where, ["episode_id"], name).column("episode_id")
                self._ids_by_file[name] = cast("list[str]", column.to_pylist())
        self._ids_by_file = {name: self._ids_by_file[name] for name in names}
        return {episode for ids in self._ids_by_file.values() for episode in ids}


def _commit(table: DeltaTable, rows: pa.Table) -> None:
    transaction = Transaction(APP_ID, table.version() + 1)
    properties = CommitProperties(app_transactions=[transaction])
    write_deltalake(table, rows, mode="append", writer_properties=_WRITER, commit_properties=properties)


def _first_of_each(rows: pa.Table, known: set[str]) -> pa.Table:
    """The first row of every episode id that is not `known`."""
    seen = set(known)
    keep: list[int] = []
    for index, episode in enumerate(cast("list[str]", rows.column("episode_id").to_pylist())):
        if episode not in seen:
            seen.add(episode)
            keep.append(index)
    return rows if len(keep) == rows.num_rows else rows.take(pa.array(keep, pa.int64()))
