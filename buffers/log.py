"""Opening and making the Delta log of a buffer; everything that is no usable buffer is refused here, by name."""

from __future__ import annotations

import os
from collections.abc import Mapping

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from buffers.location import Location, first_line, named_errors, require_writable
from buffers.schema import SCHEMA, SCHEMA_VERSION, TABLE_NAME, describe, read_version
from harness_mdp.errors import HarnessError, InputError, UnusableBuffer

__all__ = ["REMEDY", "create_log", "log_exists", "open_log", "prepare_log", "require_writable_log"]

REMEDY = (
    "restore it, or collect into a new folder (finished completions replay from a copy of _harness/completions.sqlite)"
)
_CONFIGURATION: Mapping[str, str | None] = {
    # Statistics of the columns that readers filter by; all columns would make the log larger than a batch.
    "delta.dataSkippingStatsColumns": "setting,phase,split,run",
    "delta.checkpointInterval": "20",
}


def log_exists(where: Location) -> bool:
    """Whether there is a Delta log.

    Raises:
        InputError: the folder cannot be looked into.
        HarnessError: the object store does not answer.
    """
    try:
        with named_errors(where.uri, "be read"):
            if where.local is not None and not where.local.is_dir():
                return False
            return DeltaTable.is_deltatable(where.uri, where.options)
    except DeltaError as error:
        raise HarnessError(f"{where.uri}: cannot look for a buffer there ({first_line(error)})") from error


def open_log(where: Location, version: int | None = None) -> DeltaTable:
    """The table as it is now, or at `version`.

    Raises:
        InputError: nothing there, or no such version.
        UnusableBuffer: no buffer, an unreadable log, or another schema version.
    """
    with named_errors(where.uri, "be read"):
        _require_folder(where)
        _require_whole(where)
    table = _load(where, None)
    if version is not None:
        if not 0 <= version <= table.version():
            raise InputError(f"the buffer has no version {version}", file=where.uri, expected=f"0 to {table.version()}")
        table = _load(where, version)
    _require_schema(where, table)
    return table


def _require_folder(where: Location) -> None:
    if where.local is not None:
        if not where.local.exists():
            raise InputError(
                "there is no buffer here",
                file=where.uri,
                expected="a folder written by `python -m harness_mdp.collect`",
                remedy="Check the path, or collect first",
            )
        if not where.local.is_dir():
            raise InputError("this is a file", file=where.uri, expected="the folder of a buffer")


def create_log(where: Location) -> None:
    """Makes an empty table of `SCHEMA`; another process may do the same at the same moment.

    Raises:
        InputError: a file, a folder with files of somebody else, or one that cannot be made or written.
        HarnessError: the object store refuses it.
    """
    if where.local is not None:
        with named_errors(where.uri):
            _require_own_folder(where)
            where.local.mkdir(parents=True, exist_ok=True)
        require_writable(where.local)
    try:
        DeltaTable.create(
            where.uri,
            schema=SCHEMA,
            mode="ignore",
            name=TABLE_NAME,
            description=describe(),
            configuration=_CONFIGURATION,
            storage_options=where.options,
        )
    except (DeltaError, OSError) as error:
        if not log_exists(where):  # otherwise the other process was faster
            raise HarnessError(f"{where.uri}: cannot make a buffer here ({first_line(error)})") from error


def prepare_log(where: Location) -> None:
    """Makes the log, or checks that the one there is of this schema and can be added to.

    Raises:
        InputError, UnusableBuffer, HarnessError: as `create_log` and `open_log`.
    """
    if not log_exists(where):
        create_log(where)
    open_log(where)
    require_writable_log(where)


def require_writable_log(where: Location) -> None:
    """Refuses a table whose folder takes no files; Delta itself panics on the console before it says so.

    Raises:
        InputError: by the folder.
    """
    if where.local is not None:
        require_writable(where.local)
        require_writable(where.local / "_delta_log")


def _require_own_folder(where: Location) -> None:
    """Vacuum deletes files that the log does not name, so a buffer never shares its folder."""
    if where.local is not None and where.local.exists() and not where.local.is_dir():
        raise InputError("this is a file", file=where.uri, expected="a folder for a buffer")
    if foreign := _foreign(where):
        raise InputError(
            f"the folder holds other files ({', '.join(foreign)})",
            file=where.uri,
            expected="a new or empty folder for a buffer",
            remedy="Choose another path",
        )


def _load(where: Location, version: int | None) -> DeltaTable:
    try:
        return DeltaTable(where.uri, version=version, storage_options=where.options)
    except TableNotFoundError as error:
        raise UnusableBuffer(_what_is_here(where)) from error
    except Exception as error:  # the log reader raises several types, some of them bare
        raise UnusableBuffer(
            f"{where.uri}: the Delta log cannot be read ({first_line(error)}). A file of _delta_log is damaged or "
            f"half written; {REMEDY}"
        ) from error


def _require_whole(where: Location) -> None:
    """Delta reads an empty commit as one that did nothing, and its episodes would be gone without a word."""
    log = where.local / "_delta_log" if where.local is not None else None
    if log is None or not log.is_dir():
        return
    with os.scandir(log) as entries:
        empty = sorted(e.name for e in entries if e.name.endswith(".json") and e.stat().st_size == 0)
    if empty:
        raise UnusableBuffer(f"{where.uri}: {empty[0]} of _delta_log is empty, the Delta log cannot be read; {REMEDY}")


def _require_schema(where: Location, table: DeltaTable) -> None:
    found = read_version(table.metadata().description)
    if found is None:
        columns = ", ".join(field.name for field in table.schema().fields[:5])
        raise UnusableBuffer(
            f"{where.uri}: a Delta table, but no buffer (columns {columns}, ...); expected one written by "
            "`python -m harness_mdp.collect`"
        )
    if found != SCHEMA_VERSION:
        raise UnusableBuffer(
            f"{where.uri}: made with buffer schema version {found}; this installation reads version {SCHEMA_VERSION}. "
            "Read it with the harness-mdp that made it, or collect again"
        )


def _what_is_here(where: Location) -> str:
    if foreign := _foreign(where):
        return (
            f"{where.uri}: this folder is no buffer (it holds {', '.join(foreign)}); expected a Delta table written "
            "by `python -m harness_mdp.collect`"
        )
    return f"{where.uri}: the buffer is empty, no episode has been committed. Collect first"


def _foreign(where: Location) -> list[str]:
    """Up to three names that do not belong to a buffer which has no table yet."""
    if where.local is None or not where.local.is_dir():
        return []
    return sorted(path.name for path in where.local.iterdir() if path.name[0] not in "_.")[:3]
