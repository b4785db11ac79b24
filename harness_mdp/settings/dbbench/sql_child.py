"""The process that runs SQL a model wrote. Run as a script, standard library only, one JSON line per request.

Request: `{"table": name, "columns": [...], "rows": [[text or null]], "batches": [[statement, ...], ...]}`.
Reply: `{"results": [...]}`, one per batch, each run on a fresh copy of the table: `error` (text or null), `columns`
and `rows` of the last statement that returned any, `truncated`, and the rows that the batch `added` to and
`removed` from the table (as multisets; a changed row is one of each).

Statements may read and change the one table and nothing else: the authorizer knows what is allowed and
refuses the rest (ATTACH, PRAGMA, DDL, transactions, extensions, the clock, random numbers). Work is limited by
virtual-machine instructions, not by time, so that the same statement ends the same way on any machine.
"""

from __future__ import annotations

import json
import math
import resource
import sqlite3
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

VM_STEPS = 2_000_000
"""Virtual-machine instructions per batch."""
PROGRESS_EVERY = 1_000
MAX_ROWS = 1_000
"""Result rows that are returned; more are cut and `truncated` says so."""
MAX_TABLE_ROWS = 10_000
MAX_RESULT_CHARS = 1_000_000
MAX_VALUE_BYTES = 200_000
HEAP_BYTES = 128 << 20
ADDRESS_SPACE_BYTES = 1 << 30
CPU_SECONDS = 30
"""Per request; a net under the instruction limit, which one slow instruction could outlast."""

_ALLOWED_ACTIONS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_RECURSIVE,
}

# No function that reads the clock, draws random numbers or loads code.
_FUNCTION_LIST = """
abs avg ceil ceiling char coalesce concat concat_ws count cume_dist dense_rank exp first_value floor format glob
group_concat hex ifnull iif instr lag last_value lead length like ln log log10 log2 lower ltrim max min mod nth_value
ntile nullif percent_rank pow power printf quote rank replace round row_number rtrim sign sqrt substr substring sum
total trim trunc typeof unicode upper
"""
_ALLOWED_FUNCTIONS = frozenset(_FUNCTION_LIST.split())

Row = tuple[Any, ...]


def main() -> None:
    """Serve requests from standard input until it closes."""
    _confine()
    for line in sys.stdin:
        _allow_cpu()
        reply = {"results": serve(json.loads(line))}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def serve(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The reply to one request, without its envelope."""
    connection = _open(request["table"], request["columns"], request["rows"])
    try:
        return [_run(connection, request["table"], batch) for batch in request["batches"]]
    finally:
        connection.close()


def _confine() -> None:
    """Take away what SQL never needs: files, processes, memory without end."""
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_AS, ADDRESS_SPACE_BYTES),
    ):
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))


def _allow_cpu() -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(usage.ru_utime + usage.ru_stime) + CPU_SECONDS
    soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _open(table: str, columns: list[str], rows: list[list[Any]]) -> sqlite3.Connection:
    """A fresh in-memory database with the one table: all columns TEXT, compared as MySQL compares text."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"PRAGMA hard_heap_limit = {HEAP_BYTES}")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.text_factory = _text
    connection.create_collation("MYSQL", _compare)
    connection.create_function("concat", -1, _concat, deterministic=True)
    connection.create_function("concat_ws", -1, _concat_ws, deterministic=True)
    for category, value in (
        (sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, MAX_VALUE_BYTES),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 500),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 50),
    ):
        connection.setlimit(category, value)
    specs = ",".join(f"{_quoted(column)} TEXT COLLATE MYSQL" for column in columns)
    connection.execute(f"CREATE TABLE {_quoted(table)} ({specs})")
    marks = ",".join("?" * len(columns))
    connection.executemany(f"INSERT INTO {_quoted(table)} VALUES ({marks})", rows)  # noqa: S608  (quoted)
    return connection


def _run(connection: sqlite3.Connection, table: str, batch: list[str]) -> dict[str, Any]:
    """Run one batch in a transaction, compare the table before and after, and take it all back."""
    everything = f"SELECT * FROM {_quoted(table)}"  # noqa: S608  (quoted)
    before = Counter(map(tuple, connection.execute(everything)))
    result: dict[str, Any] = {"error": None, "columns": [], "rows": [], "truncated": False}
    connection.execute("BEGIN")
    connection.set_authorizer(_authorize)
    connection.set_progress_handler(_Steps(), PROGRESS_EVERY)
    try:
        for statement in batch:
            _execute(connection, statement, result)
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        result["error"] = _message(error)
    finally:
        connection.set_progress_handler(None, 0)
        connection.set_authorizer(None)
    after = Counter(map(tuple, connection.execute(everything)))
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    added, removed = list((after - before).elements()), list((before - after).elements())
    if after.total() > MAX_TABLE_ROWS or _chars(added) > MAX_RESULT_CHARS:
        result["error"] = f"the table grew beyond {MAX_TABLE_ROWS} rows or {MAX_RESULT_CHARS} characters"
        added, removed = [], []
    return {**result, "added": _plain(added), "removed": _plain(removed)}


def _execute(connection: sqlite3.Connection, statement: str, result: dict[str, Any]) -> None:
    cursor = connection.execute(statement)
    if cursor.description is None:
        return
    rows: list[Row] = []
    chars = 0
    truncated = False
    for row in cursor:
        chars += _chars([row])
        if len(rows) == MAX_ROWS or chars > MAX_RESULT_CHARS:
            truncated = True
            break
        rows.append(row)
    cursor.close()
    result["columns"] = [column[0] for column in cursor.description or ()]
    result["rows"], result["truncated"] = _plain(rows), truncated


class _Steps:
    """Counts virtual-machine instructions and stops the statement at the limit."""

    def __init__(self) -> None:
        self.left = VM_STEPS // PROGRESS_EVERY

    def __call__(self) -> int:
        self.left -= 1
        return self.left < 0


def _authorize(action: int, _first: str | None, second: str | None, _database: str | None, _inner: str | None) -> int:
    if action in _ALLOWED_ACTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _ALLOWED_FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _message(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "out of memory"
    text = str(error)
    if text == "interrupted":
        return f"stopped after {VM_STEPS} steps: the statement does too much work"
    if text == "not authorized":
        return "not authorized: only SELECT, INSERT, UPDATE and DELETE on the table are allowed"
    return text


@lru_cache(maxsize=4096)
def _key(text: str) -> str:
    """Letters without case and accents, as in MySQL's collation utf8mb4_0900_ai_ci."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def _compare(left: str, right: str) -> int:
    a, b = _key(left), _key(right)
    return (a > b) - (a < b)


def _text(data: bytes) -> str:
    """SQL can make texts that are no UTF-8."""
    return data.decode("utf-8", "replace")


def _concat(*values: Any) -> str | None:
    """MySQL's CONCAT: NULL if any part is."""
    return None if None in values else "".join(map(str, values))


def _concat_ws(separator: Any, *values: Any) -> str | None:
    """MySQL's CONCAT_WS: NULL parts are skipped."""
    return None if separator is None else str(separator).join(str(value) for value in values if value is not None)


def _chars(rows: Iterable[Row]) -> int:
    return sum(len(value) if isinstance(value, (str, bytes)) else 8 for row in rows for value in row)


def _plain(rows: Iterable[Row]) -> list[list[Any]]:
    """Rows as JSON can carry them: bytes as hexadecimal, numbers that JSON lacks as text."""
    return [[_cell(value) for value in row] for row in rows]


def _cell(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    main()
