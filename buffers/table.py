"""The Delta table below a buffer: opening, exactly-once appends, and reading single columns.

Exactly once: every append carries the Delta transaction id `APP_ID`. Delta refuses a commit when another one with
the same id landed since the snapshot it was made from, so of two writers that looked at the same version one wins;
the other looks again, drops the episodes that are there now, and retries. A `merge` gives no such promise here: it
would have to read and join the whole table for every batch, and blind appends beside it are not checked.
Compaction carries no such id and never makes an append fail.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from buffers.schema import SCHEMA, SCHEMA_VERSION, TABLE_NAME, describe, read_version
from harness_mdp.errors import HarnessError, InputError, UnusableBuffer
from harness_mdp.hashing import generator

__all__ = ["EpisodeTable"]

APP_ID = "harness-mdp episodes"
_MAX_TRIES = 1000
_MAX_WAIT = 2.0
_CONFIGURATION: Mapping[str, str | None] = {
    # Statistics of the columns that readers filter by; all columns would make the log larger than a batch.
    "delta.dataSkippingStatsColumns": "setting,phase,split,run",
    "delta.checkpointInterval": "20",
}
_WRITER = WriterProperties(compression="ZSTD", compression_level=6)
_WEEK = 168
_REMEDY = (
    "restore it, or collect into a new folder (finished completions replay from a copy of _harness/completions.sqlite)"
)


class EpisodeTable:
    """A Delta table of `SCHEMA` at a local path or an object-store URI."""

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None, version: int | None) -> None:
        self.uri = uri
        self.local = None if "://" in uri else Path(uri)
        self._options = dict(storage_options) if storage_options else None
        self._pinned = version
        self._lock = RLock()
        self._handle: DeltaTable | None = None
        self._ids_by_file: dict[str, Sequence[str]] = {}

    # -- opening -----------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether there is a Delta log."""
        if self.local is not None and not self.local.is_dir():
            return False
        return DeltaTable.is_deltatable(self.uri, self._options)

    def snapshot(self) -> DeltaTable:
        """The table as it is now, or at the pinned version.

        Raises:
            InputError: nothing there, or no such version.
            UnusableBuffer: no buffer, an unreadable log, or another schema version.
        """
        if self.local is not None:
            if not self.local.exists():
                raise InputError(
                    "there is no buffer here",
                    file=self.uri,
                    expected="a folder written by `python -m harness_mdp.collect`",
                    remedy="Check the path, or collect first",
                )
            if not self.local.is_dir():
                raise InputError("this is a file", file=self.uri, expected="the folder of a buffer")
        self._require_whole_log()
        table = self._load(None)
        if self._pinned is not None:
            if self._pinned > table.version():
                raise InputError(
                    f"the buffer has no version {self._pinned}", file=self.uri, expected=f"at most {table.version()}"
                )
            table = self._load(self._pinned)
        self._require_schema(table)
        return table

    def _load(self, version: int | None) -> DeltaTable:
        try:
            return DeltaTable(self.uri, version=version, storage_options=self._options)
        except TableNotFoundError as error:
            raise UnusableBuffer(self._what_is_here()) from error
        except Exception as error:  # the log reader raises several types, some of them bare
            raise UnusableBuffer(
                f"{self.uri}: the Delta log cannot be read ({_first_line(error)}). A file of _delta_log is damaged "
                f"or half written; {_REMEDY}"
            ) from error

    def _require_whole_log(self) -> None:
        """Delta reads an empty commit as one that did nothing, and its episodes would be gone without a word."""
        log = self.local / "_delta_log" if self.local is not None else None
        if log is None or not log.is_dir():
            return
        with os.scandir(log) as entries:
            empty = sorted(e.name for e in entries if e.name.endswith(".json") and e.stat().st_size == 0)
        if empty:
            raise UnusableBuffer(
                f"{self.uri}: {empty[0]} of _delta_log is empty, so the Delta log cannot be read; {_REMEDY}"
            )

    def _what_is_here(self) -> str:
        if self.local is not None and self._foreign():
            return (
                f"{self.uri}: this folder is no buffer (it holds {', '.join(self._foreign())}); expected a Delta "
                "table written by `python -m harness_mdp.collect`"
            )
        return f"{self.uri}: the buffer is empty, no episode has been committed. Collect first"

    def _foreign(self) -> list[str]:
        """Up to three names that do not belong to a buffer which has no table yet."""
        if self.local is None or not self.local.is_dir():
            return []
        return sorted(path.name for path in self.local.iterdir() if path.name[0] not in "_.")[:3]

    def _require_schema(self, table: DeltaTable) -> None:
        found = read_version(table.metadata().description)
        if found is None:
            raise UnusableBuffer(
                f"{self.uri}: a Delta table, but no buffer (columns "
                f"{', '.join(field.name for field in table.schema().fields[:5])}, ...); expected one written by "
                "`python -m harness_mdp.collect`"
            )
        if found != SCHEMA_VERSION:
            raise UnusableBuffer(
                f"{self.uri}: made with buffer schema version {found}; this installation reads version "
                f"{SCHEMA_VERSION}. Read it with the harness-mdp that made it, or collect again"
            )

    def _writable(self) -> DeltaTable:
        """The table for appending, made if it is not there."""
        if self._pinned is not None:
            raise UnusableBuffer(f"{self.uri}: opened at version {self._pinned}, which is for reading only")
        if self._handle is None:
            if not self.exists():
                self._create()
            self._handle = self.snapshot()
        else:
            self._handle.update_incremental()
        return self._handle

    def _create(self) -> None:
        if self.local is not None:
            if self._foreign():
                # Vacuum deletes files that the log does not name, so a buffer never shares its folder.
                raise InputError(
                    f"the folder holds other files ({', '.join(self._foreign())})",
                    file=self.uri,
                    expected="a new or empty folder for a buffer",
                    remedy="Choose another path",
                )
            if self.local.exists() and not self.local.is_dir():
                raise InputError("this is a file", file=self.uri, expected="a folder for a buffer")
            self.local.mkdir(parents=True, exist_ok=True)
        try:
            DeltaTable.create(
                self.uri,
                schema=SCHEMA,
                mode="ignore",
                name=TABLE_NAME,
                description=describe(),
                configuration=_CONFIGURATION,
                storage_options=self._options,
            )
        except DeltaError as error:
            if not self.exists():  # otherwise another process made it at the same moment
                raise HarnessError(f"{self.uri}: cannot make a buffer here ({_first_line(error)})") from error

    # -- writing -----------------------------------------------------------------------------------------------

    def append(self, rows: pa.Table) -> int:
        """Commits the rows whose episode id is not there yet, in one commit; how many that were.

        Raises:
            HarnessError: the commit cannot be made (no space, no permission, no progress).
        """
        with self._lock:
            for attempt in count():
                table = self._writable()
                new = _first_of_each(rows, self._ids(table))
                if new.num_rows == 0:
                    return 0
                try:
                    self._commit(table, new)
                    return new.num_rows
                except CommitFailedError as error:
                    if attempt >= _MAX_TRIES:
                        raise HarnessError(
                            f"{self.uri}: {new.num_rows} episodes could not be committed after {attempt} tries "
                            f"({_first_line(error)})"
                        ) from error
                    spread = generator("commit back-off", os.getpid(), attempt).uniform(0.2, 1.0)
                    time.sleep(spread * min(_MAX_WAIT, 0.02 * 2 ** min(attempt, 8)))
                except DeltaError as error:
                    raise HarnessError(
                        f"{self.uri}: {new.num_rows} episodes could not be committed ({_first_line(error)})"
                    ) from error
        raise AssertionError("unreachable")

    @staticmethod
    def _commit(table: DeltaTable, rows: pa.Table) -> None:
        transaction = Transaction(APP_ID, table.version() + 1)
        write_deltalake(
            table,
            rows,
            mode="append",
            writer_properties=_WRITER,
            commit_properties=CommitProperties(app_transactions=[transaction]),
        )

    def compact(self) -> None:
        """Merges small files into large ones and writes a checkpoint; a compaction by another process is enough."""
        with self._lock:
            table = self._writable()
            try:
                table.optimize.compact(writer_properties=_WRITER)
            except CommitFailedError:
                self._handle = None
                return
            table.create_checkpoint()

    def vacuum(self, retention_hours: int, dry_run: bool) -> list[str]:
        """Deletes files that no version of the last `retention_hours` needs; their names."""
        with self._lock:
            return self._writable().vacuum(
                retention_hours=retention_hours,
                dry_run=dry_run,
                enforce_retention_duration=retention_hours >= _WEEK,
                full=True,
            )

    # -- reading -----------------------------------------------------------------------------------------------

    def ids(self) -> frozenset[str]:
        """All episode ids; only files not seen before are read."""
        if self._pinned is None and not self.exists():
            return frozenset()
        with self._lock:
            return frozenset(self._ids(self.snapshot()))

    def _ids(self, table: DeltaTable) -> set[str]:
        files = _files(table)
        for name in files:
            if name not in self._ids_by_file:
                column = self._open(name).read(columns=["episode_id"])["episode_id"]
                self._ids_by_file[name] = cast("list[str]", column.to_pylist())
        self._ids_by_file = {name: self._ids_by_file[name] for name in files}
        return {episode for ids in self._ids_by_file.values() for episode in ids}

    def read(self, table: DeltaTable, columns: Sequence[str]) -> pa.Table:
        """The Parquet leaves `columns` (e.g. `steps.list.element.t`) of all rows of a snapshot."""
        parts = [self._read_file(name, columns) for name in _files(table)]
        if not parts:
            wanted = {column.partition(".")[0] for column in columns}
            return pa.schema([field for field in SCHEMA if field.name in wanted]).empty_table()
        return pa.concat_tables(parts)

    def _read_file(self, name: str, columns: Sequence[str]) -> pa.Table:
        try:
            return self._open(name).read(columns=list(columns), use_threads=True)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(name, error) from error

    def batches(self, table: DeltaTable, columns: Sequence[str] | None, rows: int) -> Iterator[pa.RecordBatch]:
        """All rows of a snapshot, at most `rows` at a time, in the order of the files' names in the log."""
        for name in _files(table):
            file = self._open(name)
            try:
                yield from file.iter_batches(batch_size=rows, columns=columns and list(columns))
            except (pa.ArrowException, OSError) as error:
                raise self._damaged(name, error) from error

    def _open(self, name: str) -> pq.ParquetFile:
        try:
            if self.local is not None:
                return pq.ParquetFile(self.local / name, memory_map=True)
            from deltalake.fs import DeltaStorageHandler
            from pyarrow.fs import PyFileSystem

            handler: Any = DeltaStorageHandler(self.uri, self._options)  # untyped in pyarrow's eyes
            return pq.ParquetFile(PyFileSystem(handler).open_input_file(name), pre_buffer=True)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(name, error) from error

    def _damaged(self, name: str, error: Exception) -> UnusableBuffer:
        what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({_first_line(error)})"
        return UnusableBuffer(f"{self.uri}: the data file {name}, which the log names, {what}; {_REMEDY}")

    def bytes_of_data(self, table: DeltaTable) -> int:
        """Bytes of the data files of a snapshot."""
        sizes = pa.table(table.get_add_actions(flatten=True)).column("size_bytes")
        return int(pc.sum(sizes).as_py() or 0)


def _files(table: DeltaTable) -> list[str]:
    """Names of a snapshot's data files relative to the table, oldest first."""
    actions = pa.table(table.get_add_actions(flatten=True)).select(["modification_time", "path"])
    ordered = actions.sort_by([("modification_time", "ascending"), ("path", "ascending")])
    return cast("list[str]", ordered.column("path").to_pylist())


def _first_of_each(rows: pa.Table, known: set[str]) -> pa.Table:
    """The first row of every episode id that is not `known`."""
    seen = set(known)
    keep: list[int] = []
    for index, episode in enumerate(cast("list[str]", rows.column("episode_id").to_pylist())):
        if episode not in seen:
            seen.add(episode)
            keep.append(index)
    return rows if len(keep) == rows.num_rows else rows.take(pa.array(keep, pa.int64()))


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]
