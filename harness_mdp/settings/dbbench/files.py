"""Reads DB-Bench's own files (`dev.jsonl`, `standard.jsonl`) and says what a record must hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from harness_mdp.errors import InputError
from harness_mdp.hashing import Json
from harness_mdp.settings.dbbench.scoring import stored_digest
from harness_mdp.settings.dbbench.sql_worker import Table

__all__ = ["KINDS", "TYPES", "Record", "read_file", "record_of"]

KINDS = ("select", "insert", "update", "delete")
TYPES = (
    "other",
    "counting",
    "comparison",
    "ranking",
    "aggregation-SUM",
    "aggregation-MIN",
    "aggregation-MAX",
    "aggregation-AVG",
    *(kind.upper() for kind in KINDS),
)
"""What a record's `type` can be, in any case; those that are no kind are SELECT tasks."""
_REMEDY = "Expected is a file of AgentBench's DB-Bench, e.g. standard.jsonl"


@dataclass(frozen=True)
class Record:
    """One task as the files have it."""

    id: str
    question: str
    description: str
    """`add_description`: names the table and its columns in a sentence."""
    table: Table
    type: str
    """One of `TYPES`."""
    label: tuple[str, ...]
    """The right answer of a SELECT task; the reference SQL of the others."""
    sql: str
    """Reference SQL; of SELECT tasks it is noisy and may not give `label`."""
    digest: str
    """MD5 of the table after the reference SQL; empty for SELECT tasks."""
    template: str
    """The type in lower letters, unless the record names a template of its own (generated ones do)."""
    difficulty: str
    """As the record says (generated ones do), else by columns that can be confused: up to 4 easy, 8 or more hard."""

    @property
    def kind(self) -> str:
        """`select`, `insert`, `update` or `delete`."""
        kind = self.type.lower()
        return kind if kind in KINDS else "select"


def read_file(path: Path) -> list[Record]:
    """Records of one JSON Lines file, or of every `*.jsonl` in a folder, in order.

    Raises:
        InputError: the file is missing, empty, or has a malformed line or field; names file, line and field.
    """
    if path.is_dir():
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise InputError("the folder holds no *.jsonl file", file=path, remedy=_REMEDY)
        return [record for file in files for record in read_file(file)]
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="Set setting.path to the file or its folder") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=path, remedy=_REMEDY) from error
    records: list[Record] = []
    # Not splitlines(): that would also split at characters which JSON allows inside a string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(
                f"malformed JSON: {error.msg.removesuffix(' at')} at column {error.colno}",
                file=path,
                row=number,
                expected="one JSON object",
                remedy="Mend or remove the line",
            ) from error
        records.append(record_of(value, f"{path.stem}-{number}", file=path, row=number))
    if not records:
        raise InputError("the file holds no record", file=path, remedy=_REMEDY)
    return records


def record_of(value: Json, task_id: str, *, file: object, row: int) -> Record:
    """The record in a parsed line.

    Raises:
        InputError: a field is missing or of another type.
    """
    reader = _Fields(value, file, row)
    question = reader.text(value, "description")
    table = reader.table()
    types = reader.types()
    label = reader.texts(value, "label")
    if not label:
        raise reader.wrong("label", "an empty list", "one entry or more")
    mutates = types[0].lower() in KINDS[1:]
    digest, sql = "", ""
    if mutates:
        sql = label[0]
        stored = reader.text(value, "answer_md5")
        digest = stored_digest(stored) or ""
        if not digest:
            raise reader.wrong("answer_md5", repr(stored[:60]), "a text like [('<32 hex digits>',)]")
    elif isinstance(value.get("sql"), dict):
        query = value["sql"].get("query")
        sql = query if isinstance(query, str) else ""
    description = value.get("add_description")
    return Record(
        id=task_id,
        question=question,
        description=description if isinstance(description, str) else "",
        table=table,
        type=types[0],
        label=label,
        sql=sql,
        digest=digest,
        template=str(value.get("template") or types[0].lower()),
        difficulty=str(value.get("difficulty") or _difficulty(len(table.columns))),
    )


def _difficulty(columns: int) -> str:
    return "easy" if columns <= 4 else "hard" if columns >= 8 else "standard"


class _Fields:
    """Reads fields of one line and complains with file and line."""

    def __init__(self, value: Json, file: object, row: int) -> None:
        self._file, self._row = file, row
        if not isinstance(value, dict):
            raise InputError(f"the line is {_kind(value)}", file=file, row=row, expected="a JSON object")
        self._value: dict[str, Json] = value

    def wrong(self, field: str, found: str, expected: str) -> InputError:
        return InputError(found, file=self._file, row=self._row, field=field, expected=expected, remedy=_REMEDY)

    def text(self, holder: dict[str, Json], key: str, path: str = "") -> str:
        value = self._get(holder, key, path)
        if not isinstance(value, str):
            raise self.wrong(path + key, _kind(value), "a text")
        return value

    def texts(self, holder: dict[str, Json], key: str) -> tuple[str, ...]:
        """A list of scalars, as texts."""
        value = self._get(holder, key, "")
        if not isinstance(value, list) or not all(isinstance(item, (str, int, float)) for item in value):
            raise self.wrong(key, _kind(value), "a list of texts")
        return tuple(map(str, value))

    def types(self) -> tuple[str, ...]:
        """The record's `type`: one known type or more."""
        value = self._get(self._value, "type", "")
        expected = f"a list with one of {', '.join(TYPES)}"
        if not isinstance(value, list) or not value:
            raise self.wrong("type", "an empty list" if value == [] else _kind(value), expected)
        known = [name.casefold() for name in TYPES]
        unknown = [each for each in value if not isinstance(each, str) or each.casefold() not in known]
        if unknown:
            raise self.wrong("type", f"{unknown[0]!r:.80} is no type", expected)
        return tuple(value)

    def table(self) -> Table:
        table = self._object(self._value, "table", "")
        info = self._object(table, "table_info", "table.")
        name = self.text(table, "table_name", "table.")
        columns = self._list(info, "columns", "table.table_info.")
        names: list[str] = []
        for column in columns:
            if not isinstance(column, dict):
                raise self.wrong("table.table_info.columns", _kind(column), "objects with a name")
            names.append(self.text(column, "name", "table.table_info.columns."))
        if not names or len({each.casefold() for each in names}) != len(names):
            raise self.wrong("table.table_info.columns", f"names {names}", "one or more distinct names")
        rows = self._list(info, "rows", "table.table_info.")
        return Table(name, tuple(names), tuple(self._row_of(row, len(names)) for row in rows))

    def _row_of(self, row: Json, width: int) -> tuple[str | None, ...]:
        scalars = isinstance(row, list) and all(
            cell is None or (isinstance(cell, (str, int, float)) and not isinstance(cell, bool)) for cell in row
        )
        if not scalars or len(row) != width:
            found = f"{len(row)} cells in a row" if scalars else _kind(row)
            raise self.wrong("table.table_info.rows", found, f"{width} cells of text or null in each row")
        return tuple(None if cell is None else str(cell) for cell in row)

    def _get(self, holder: dict[str, Json], key: str, path: str) -> Json:
        if key not in holder:
            raise self.wrong(path + key, "the field is missing", "the field of that name")
        return holder[key]

    def _object(self, holder: dict[str, Json], key: str, path: str) -> dict[str, Json]:
        value = self._get(holder, key, path)
        if not isinstance(value, dict):
            raise self.wrong(path + key, _kind(value), "an object")
        return value

    def _list(self, holder: dict[str, Json], key: str, path: str) -> list[Json]:
        value = self._get(holder, key, path)
        if not isinstance(value, list):
            raise self.wrong(path + key, _kind(value), "a list")
        return value


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)
