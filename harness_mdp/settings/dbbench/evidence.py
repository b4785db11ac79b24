"""What DB-Bench lets an executor see of the table, and what of a draft that evidence can support.

All texts are short: a small model has to read them. No line begins with a bracket, which marks an item's id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from harness_mdp.mdp import Claim
from harness_mdp.settings.dbbench.draft import Draft, read_draft
from harness_mdp.settings.dbbench.sql_dialect import Token, lex
from harness_mdp.settings.dbbench.sql_worker import Cell, Row, SqlResult, Table
from harness_mdp.settings.protocol import Evidence

__all__ = ["SAMPLE", "SCHEMA", "VALUES", "claims", "matching_values", "result_text", "sample", "schema"]

SCHEMA, SAMPLE, VALUES = "schema", "sample", "values"
"""Ids of the evidence items."""

_MAX_CHARS = 900
_CELL_CHARS = 40
_SAMPLE_ROWS = 3
_RESULT_ROWS = 8
_MATCHES = 6
_MATCHING_ROWS = 2
_MAX_CLAIMS = 12
_CLAIM_CHARS = 80

_STOP_WORD_LIST = """
    the and for with what which who how many much was were are is has have had that this from into than when where
    table value values column row rows set change update insert delete remove add new number total
"""
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
_KEYWORD_LIST = """
    select distinct from where group by having order asc desc limit offset and or not in is null like between as on
    join left right inner outer cross union all except intersect case when then else end exists cast text real integer
    int float double decimal signed unsigned char insert into values update set delete replace with recursive true
    false over partition collate escape glob
"""
_KEYWORDS = frozenset(_KEYWORD_LIST.split())


def schema(table: Table) -> Evidence:
    """Table name, columns, number of rows."""
    columns = ", ".join(f"`{name}`" for name in table.columns)
    return Evidence(SCHEMA, _cut(f"Table `{table.name}`, {len(table.rows)} rows, all TEXT. Columns: {columns}"))


def sample(table: Table) -> Evidence:
    """The first rows."""
    lines = [f"First {min(_SAMPLE_ROWS, len(table.rows))} rows:", *_row_lines(table.rows[:_SAMPLE_ROWS])]
    return Evidence(SAMPLE, _cut("\n".join(lines)))


def matching_values(table: Table, question: str) -> Evidence:
    """Rows and cells that share words with the question, best first; without any, values of the columns it names."""
    words = _words(question)
    matches = sorted(_matches(table, words), key=lambda match: -match[0])[:_MATCHES]
    lines = [f"- `{column}` = {_short(value)}" for _, column, value in matches]
    if lines:
        rows = _matching_rows(table, {(column, value): weight for weight, column, value in matches})
        lines = [*lines, "Rows with these values:", *(f"- {_named_row(table.columns, row)}" for row in rows)]
    else:
        named = [name for name in table.columns if _words(name) & words] or list(table.columns[:3])
        for name in named[:5]:
            index = table.columns.index(name)
            distinct = dict.fromkeys(_short(row[index]) for row in table.rows)
            lines.append(f"- `{name}`: {', '.join(list(distinct)[:5])}")
    return Evidence(VALUES, _cut("\n".join(["Values that match the question:", *lines])))


def _matches(table: Table, words: set[str]) -> Iterable[tuple[float, str, str]]:
    """(share of the cell's words that the question has plus how many, column, value), each value once."""
    seen: set[tuple[str, str]] = set()
    for row in table.rows:
        for column, value in zip(table.columns, row, strict=True):
            if not value or (column, value) in seen:
                continue
            seen.add((column, value))
            own = _words(value)
            common = len(own & words)
            if common:
                yield common / len(own) + 0.1 * common, column, value


def _matching_rows(table: Table, weights: Mapping[tuple[str, str], float]) -> list[Row]:
    """The rows whose cells match best, in table order among equals."""

    def weight(row: Row) -> float:
        cells = zip(table.columns, row, strict=True)
        return sum(weights.get((column, value), 0.0) for column, value in cells if isinstance(value, str))

    return [row for row in sorted(table.rows, key=lambda row: -weight(row))[:_MATCHING_ROWS] if weight(row) > 0]


def _named_row(columns: Sequence[str], row: Row) -> str:
    return "; ".join(f"{column}: {_short(value)}" for column, value in zip(columns, row, strict=True))


def _words(text: str) -> set[str]:
    found = {word.casefold() for word in re.findall(r"\w+", text)}
    return {word for word in found if (len(word) > 2 or word.isdigit()) and word not in _STOP_WORDS}


def result_text(result: SqlResult) -> str:
    """What `run_sql` shows of a result."""
    lines: list[str] = []
    if result.columns:
        lines.append(f"{_count(len(result.rows), 'row')}{' or more' if result.truncated else ''}")
        if result.rows:
            lines.append("columns: " + " | ".join(_short(name) for name in result.columns))
            lines.extend(_row_lines(result.rows[:_RESULT_ROWS]))
    if result.added or result.removed or not result.columns:
        changed = f"{_count(len(result.added), 'row')} added, {_count(len(result.removed), 'row')} removed"
        lines.append(f"table: {changed} (a changed row is one of each)")
        lines.extend(f"+ {line[2:]}" for line in _row_lines(result.added[:_SAMPLE_ROWS]))
    if result.error is not None:
        lines.append(f"error: {_short(result.error, 200)}")
    return _cut("\n".join(lines))


def claims(draft: Draft, kind: str, table_name: str, texts: Mapping[str, str]) -> tuple[Claim, ...]:
    """What the draft asserts about the database, and whether the texts at hand show it.

    Asserted are: the columns that the SQL names, the literals of its conditions (of every clause in a SELECT;
    values that INSERT and SET write are asked for, not asserted), and the values of an explicit answer.
    At most 12, each at most 80 characters.
    """
    everything = "\n".join(texts.values()).casefold()
    return tuple(Claim(claim, _occurs(value, everything)) for claim, value in _asserted(draft.text, kind, table_name))


@lru_cache(maxsize=1024)
def _asserted(artifact: str, kind: str, table_name: str) -> tuple[tuple[str, str], ...]:
    """(claim, the value that has to be seen), each claim once. Keyed by text, since 1 and 1.0 are equal keys."""
    draft = read_draft(artifact)
    asserted: dict[str, str] = {}
    for name in _columns_named(draft.sql, table_name):
        asserted[f"column {name}"] = name
    for value in _literals_asserted(draft.sql, kind, table_name):
        asserted[f"value {value}"] = value
    for value in draft.answer or () if kind == "select" else ():
        if value is not None:
            asserted[f"answer {value}"] = str(value)
    return tuple((_short(claim, _CLAIM_CHARS), value) for claim, value in list(asserted.items())[:_MAX_CLAIMS])


def _columns_named(sql: str, table_name: str) -> Iterable[str]:
    tokens = [token for token in lex(sql) if token.kind != "space"]
    for index, token in enumerate(tokens):
        if token.kind not in ("word", "ident"):
            continue
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        bare = token.kind == "word"
        if bare and (token.text.lower() in _KEYWORDS or following == "("):
            continue
        if token.value.casefold() != table_name.casefold() and token.value:
            yield token.value


def _literals_asserted(sql: str, kind: str, table_name: str) -> Iterable[str]:
    tokens: Sequence[Token] = [token for token in lex(sql) if token.kind != "space"]
    asserting = kind == "select"
    previous = ""
    for token in tokens:
        asserting = asserting or (token.is_keyword and token.upper == "WHERE")
        literal = token.kind in ("string", "number", "dquoted") and token.value.casefold() != table_name.casefold()
        if asserting and literal and token.value.strip("%") and previous not in ("LIMIT", "OFFSET"):
            yield token.value.strip("%")
        previous = token.upper


def _occurs(value: str, text: str) -> bool:
    """`value` stands in `text` (case-folded) as whole words."""
    needle = " ".join(value.split()).casefold()
    return needle in text and re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", text) is not None


def _row_lines(rows: Iterable[Row]) -> list[str]:
    return ["- " + " | ".join(_short(cell) for cell in row) for row in rows]


def _short(value: Cell, limit: int = _CELL_CHARS) -> str:
    text = "NULL" if value is None else " ".join(str(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"
