"""Reading the Parquet files of a snapshot, only the leaf columns that are asked for."""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from buffers.location import Location, first_line
from buffers.log import REMEDY
from buffers.schema import SCHEMA
from harness_mdp.errors import UnusableBuffer

__all__ = ["bytes_of_data", "file_names", "local_files", "read", "read_batches", "read_file"]

_READERS = 8


def file_names(table: DeltaTable) -> list[str]:
    """Names of a snapshot's data files relative to the table, oldest first."""
    actions = pa.table(table.get_add_actions(flatten=True))
    times, paths = (actions.column(name).to_pylist() for name in ("modification_time", "path"))
    return [path for _, path in sorted(zip(times, paths, strict=True))]


def bytes_of_data(table: DeltaTable) -> int:
    """Bytes of the data files of a snapshot, without the log."""
    return sum(pa.table(table.get_add_actions(flatten=True)).column("size_bytes").to_pylist())


def local_files(where: Location, table: DeltaTable) -> list[str]:
    """Absolute paths of a local snapshot's data files, oldest first.

    Raises:
        UnusableBuffer: a file that is missing.
    """
    if where.local is None:
        raise ValueError(f"{where.uri} is no local folder")
    folder, names = where.local.absolute(), file_names(table)
    for name in names:
        if not (folder / name).is_file():
            raise _damaged(where, name, FileNotFoundError())
    return [str(folder / name) for name in names]


def read(where: Location, table: DeltaTable, columns: Sequence[str]) -> pa.Table:
    """The Parquet leaves `columns` (e.g. `steps.list.element.t`) of all rows of a snapshot.

    Raises:
        UnusableBuffer: a file that is missing or damaged.
    """
    names = file_names(table)
    if not names:
        wanted = {column.partition(".")[0] for column in columns}
        return pa.schema([field for field in SCHEMA if field.name in wanted]).empty_table()
    if len(names) == 1:
        return read_file(where, columns, names[0])
    with ThreadPoolExecutor(min(_READERS, len(names))) as pool:
        return pa.concat_tables(pool.map(partial(read_file, where, columns), names))


def read_file(where: Location, columns: Sequence[str], name: str) -> pa.Table:
    """The same of one file."""
    try:
        return _open(where, name).read(columns=list(columns), use_threads=True)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(where, name, error) from error


def read_batches(where: Location, table: DeltaTable, rows: int) -> Iterator[pa.RecordBatch]:
    """All columns of a snapshot, at most `rows` rows at a time, oldest file first.

    Raises:
        UnusableBuffer: a file that is missing or damaged.
    """
    for name in file_names(table):
        try:
            yield from _open(where, name).iter_batches(batch_size=rows)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(where, name, error) from error


def _open(where: Location, name: str) -> pq.ParquetFile:
    if where.local is not None:
        return pq.ParquetFile(where.local / name, memory_map=True)
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    handler: Any = DeltaStorageHandler(where.uri, where.options)  # pyarrow's base class has no types
    return pq.ParquetFile(PyFileSystem(handler).open_input_file(name), pre_buffer=True)


def _damaged(where: Location, name: str, error: Exception) -> UnusableBuffer:
    what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({first_line(error)})"
    return UnusableBuffer(f"{where.uri}: the data file {name}, which the log names, {what}; {REMEDY}")
