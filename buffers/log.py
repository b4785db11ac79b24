"""Opening and making the Delta log of a buffer; everything that is no usable buffer is refused here, by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from buffers.schema import SCHEMA, SCHEMA_VERSION, TABLE_NAME, describe, read_version
from harness_mdp.errors import HarnessError, InputError, UnusableBuffer

__all__ = ["REMEDY", "Location", "create_log", "first_line", "log_exists", "open_log"]

REMEDY = (
    "restore it, or collect into a new folder (finished completions replay from a copy of _harness/completions.sqlite)"
)
_CONFIGURATION: Mapping[str, str | None] = {
    # Statistics of the columns that readers filter by; all columns would make the log larger than a batch.
    "delta.dataSkippingStatsColumns": "setting,phase,split,run",
    "delta.checkpointInterval": "20",
}


@dataclass(frozen=True)
class Location:
    """Where a buffer is: a local folder or an object-store URI, with the options of the store."""

    uri: str
    options: dict[str, str] | None = None

    @property
    def local(self) -> Path | None:
        """The folder; None for a URI."""
        return None if "://" in self.uri else Path(self.uri)


def log_exists(where: Location) -> bool:
    """Whether there is a Delta log."""
    if where.local is not None and not where.local.is_dir():
        return False
    return DeltaTable.is_deltatable(where.uri, where.options)


def open_log(where: Location, version: int | None = None) -> DeltaTable:
    """The table as it is now, or at `version`.

    Raises:
        InputError: nothing there, or no such version.
        UnusableBuffer: no buffer, an unreadable log, or another schema version.
    """
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
    _require_whole(where)
    table = _load(where, None)
    if version is not None:
        if not 0 <= version <= table.version():
            raise InputError(f"the buffer has no version {version}", file=where.uri, expected=f"0 to {table.version()}")
        table = _load(where, version)
    _require_schema(where, table)
    return table


def create_log(where: Location) -> None:
    """Makes an empty table of `SCHEMA`; another process may do the same at the same moment.

    Raises:
        InputError: a file, or a folder with files of somebody else.
        HarnessError: it cannot be made (no permission, no space).
    """
    if where.local is not None:
        if where.local.exists() and not where.local.is_dir():
            raise InputError("this is a file", file=where.uri, expected="a folder for a buffer")
        if foreign := _foreign(where):
            # Vacuum deletes files that the log does not name, so a buffer never shares its folder.
            raise InputError(
                f"the folder holds other files ({', '.join(foreign)})",
                file=where.uri,
                expected="a new or empty folder for a buffer",
                remedy="Choose another path",
            )
    try:
        if where.local is not None:
            where.local.mkdir(parents=True, exist_ok=True)
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


def first_line(error: BaseException) -> str:
    """The message of a foreign error, in one line of at most 200 characters."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


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
