"""The draft of DB-Bench: SQL, an answer, or both; how a reply is read and how a draft is written down.

Canonical text: `{"sql":"...","answer":[...]}`, compact JSON, keys in this order, the absent one left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness_mdp.hashing import Json
from harness_mdp.settings.dbbench.sql_worker import Cell, SqlResult
from harness_mdp.settings.prompts import Unparsable

__all__ = ["Draft", "json_piece", "parse_draft", "read_draft"]

_DECODER = json.JSONDecoder(strict=False, parse_constant=str)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:\n?```|\Z)", re.DOTALL)
_STATEMENT = re.compile(
    r"""^[ \t]*(?:sql\s*:\s*)?(
        (?:SELECT\b.+?\bFROM\b | INSERT\s+(?:OR\s+\w+\s+)?INTO\b | REPLACE\s+INTO\b | UPDATE\b.+?\bSET\b
         | DELETE\s+FROM\b | WITH\b.+?\bAS\s*\( | SELECT\s+[\w(]+\s*\( )
        .*)""",
    re.IGNORECASE | re.DOTALL | re.MULTILINE | re.VERBOSE,
)
# JSON that a model broke (an inner quote, no end): all from the first word of SQL to the closing quote and brace.
_BROKEN = re.compile(
    r"""["']?sql["']?\s*:\s*["'`]((?:SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\b.*?)["'`]?\s*(?:,\s*"answer".*)?(?:\}|\Z)""",
    re.IGNORECASE | re.DOTALL,
)
# `Answer: 12` on a line of its own, how a model answers that writes no SQL; several values are parted by semicolons.
_ANSWER = re.compile(r"^[^\w\n]*(?:the\s+)?answer(?:\s+is)?\s*[:=]\s*(\S.*)$", re.IGNORECASE | re.MULTILINE)
_MAX_CHARS = 20_000
"""Of a reply that holds no JSON, the part that is searched for SQL."""
_MAX_ANSWER = 1_000
_MAX_OBJECTS = 50


@dataclass(frozen=True, slots=True)
class Draft:
    """What is submitted. At least one of the two is there."""

    sql: str = ""
    answer: tuple[Cell, ...] | None = None
    """None: the rows of `sql` are the answer."""

    @property
    def text(self) -> str:
        """The canonical artifact text."""
        value: dict[str, Json] = {}
        if self.sql:
            value["sql"] = self.sql
        if self.answer is not None:
            value["answer"] = list(self.answer)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def values(self, result: SqlResult | None) -> tuple[Cell, ...]:
        """The answer: as given, else the cells of `result`; no rows are one None, as a model would say `none`."""
        if self.answer is not None:
            return self.answer
        if result is None or result.error is not None:
            return ()
        return result.values or (None,)


def json_piece(text: str) -> str:
    """`text` as it stands inside a JSON string of a canonical draft, without the quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def read_draft(artifact: str) -> Draft:
    """The draft in a canonical text.

    Raises:
        Unparsable: it is not one.
    """
    draft = next(_drafts_in(artifact), None)
    if draft is None:
        raise Unparsable("the artifact is no draft of SQL or answer")
    return draft


def parse_draft(reply: str) -> Draft:
    """The draft in a model's reply: JSON, fenced, bare or amid text, else an SQL statement likewise, even in
    JSON that is broken, else a line `Answer: ...`.

    Raises:
        Unparsable: there is neither.
    """
    if not reply.strip():
        raise Unparsable("the reply is empty")
    blocks = [match[1] for match in _FENCE.finditer(reply)]
    for text in (*blocks, reply):
        draft = next(_drafts_in(text), None)
        if draft is not None:
            return draft
    for text in (*blocks, reply):
        match = _STATEMENT.search(text[:_MAX_CHARS])
        if match is not None:
            return Draft(sql=_statement(match[1]))
    match = _BROKEN.search(reply[:_MAX_CHARS])
    if match is not None:
        return Draft(sql=match[1].replace(r"\n", " ").replace(r"\"", '"').strip())
    answer = _ANSWER.search(reply[:_MAX_CHARS])
    if answer is not None:
        values = [value.strip(" \t.*`'\"") for value in answer[1].split(";")]
        if any(values):
            return Draft(answer=tuple(value for value in values if value))
    raise Unparsable("the reply holds no SQL statement, no line `Answer: ...` and no JSON with `sql` or `answer`")


def _drafts_in(text: str) -> Iterator[Draft]:
    """Drafts among the JSON objects of `text`, in order."""
    start = text.find("{")
    for _ in range(_MAX_OBJECTS):
        if start < 0:
            return
        end = start + 1
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            value = None
        draft = _draft_of(value)
        if draft is not None:
            yield draft
        start = text.find("{", end)


def _draft_of(value: Json) -> Draft | None:
    if not isinstance(value, dict):
        return None
    fields: dict[str, Json] = {str(key).lower(): item for key, item in value.items()}
    sql = fields.get("sql")
    statement = sql.strip() if isinstance(sql, str) else ""
    answer = fields.get("answer")
    cells = None if answer is None else tuple(_cells(answer))[:_MAX_ANSWER]
    if not statement and cells is None:
        return None
    return Draft(statement, cells)


def _cells(value: Json) -> Iterator[Cell]:
    """Scalars of an answer, however nested: `"x"`, `["x"]` and `[["x"]]` say the same."""
    if isinstance(value, list):
        for item in value:
            yield from _cells(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _cells(item)
    elif isinstance(value, bool):
        yield str(value)
    else:
        yield value


def _statement(text: str) -> str:
    """A bare statement up to a closing fence, or to the last semicolon if there is one."""
    text = text.split("```", 1)[0].strip()
    head, semicolon, _ = text.rpartition(";")
    return f"{head}{semicolon}".strip() if semicolon else text.split("\n\n", 1)[0].strip()
