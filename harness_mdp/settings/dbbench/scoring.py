"""DB-Bench's native scoring: answers of SELECT tasks, and the state of the table for the others.

Both follow AgentBench (THUDM, Apache-2.0), whose digests were made in MySQL.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from harness_mdp.settings.dbbench.sql_worker import Cell, Row, SqlResult, Table

__all__ = ["answers_match", "digest_after", "native_score", "normalised", "stored_digest", "table_md5"]

TOLERANCE = 0.01
GROUP_CONCAT_MAX = 1024
"""MySQL's default `group_concat_max_len`, in characters."""

_NOTHING = frozenset(["none", "null", "undefined", "nan", "inf", "infinity", "-inf", "-infinity", ""])


def normalised(value: Cell | bool) -> str:
    """A value as it is compared.

    Surrounding blanks and quotes are dropped, then a trailing %, then commas (upstream drops every comma, not
    only those between thousands, so `December 6 1998` answers `December 6, 1998`). None, null, nan, inf and
    empty text are "0".
    """
    if value is None:
        return "0"
    text = str(value).strip().strip("'\"").strip()
    text = text.removesuffix("%").strip().replace(",", "")
    return "0" if text.lower() in _NOTHING else text


def answers_match(answer: Sequence[Cell], label: Sequence[Cell]) -> bool:
    """Whether `answer` is right.

    One value each: as numbers within 0.01 if both are numbers, else as strings. Several: as multisets of
    numbers within 0.01 if all are numbers, else as sets of strings.
    """
    ours, theirs = [normalised(value) for value in answer], [normalised(value) for value in label]
    numbers, expected = _numbers(ours), _numbers(theirs)
    if numbers is not None and expected is not None:
        # Sorted pairing is the best matching on a line: if it fails, every matching does.
        return len(numbers) == len(expected) and all(
            abs(a - b) <= TOLERANCE for a, b in zip(sorted(numbers), sorted(expected), strict=True)
        )
    if len(ours) == len(theirs) == 1:
        return ours == theirs
    return set(ours) == set(theirs)


def _numbers(values: Sequence[str]) -> list[float] | None:
    """`values` as finite floats, or None if one is no number (or there are none)."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    return numbers if numbers and all(map(math.isfinite, numbers)) else None


def table_md5(rows: Iterable[Row]) -> str:
    """MD5 of a table's state, 32 hex digits; the order of rows does not count.

    Per row the first 5 hex digits of the MD5 over CONCAT_WS(',', ...), which skips NULL; sorted; joined by
    GROUP_CONCAT, which cuts at 1024 characters; MD5 again. A table without rows has no digest (NULL): empty text.
    """
    hashes = sorted(_row_hash(",".join(str(cell) for cell in row if cell is not None)) for row in rows)
    return _md5(",".join(hashes)[:GROUP_CONCAT_MAX]) if hashes else ""


def digest_after(table: Table, result: SqlResult) -> str:
    """`table_md5` of `table` after what `result` added and removed."""
    after: Counter[Row] = Counter(table.rows)
    after.subtract(Counter(result.removed))
    after.update(result.added)
    return table_md5(after.elements())


def native_score(
    kind: str, table: Table, answer: Sequence[Cell], outcome: SqlResult | None, label: Sequence[Cell], digest: str
) -> float:
    """1.0 for right, else 0.0: the answer against `label` (SELECT), or the table afterwards against `digest`.

    Args:
        kind: `select`, `insert`, `update` or `delete`.
        table: before.
        answer: values answered; used by SELECT tasks only.
        outcome: what the submitted SQL did; None if there was none, which leaves the table as it was.
        label: right values of a SELECT task.
        digest: MD5 of the table after the reference SQL, for the other tasks.
    """
    if kind == "select":
        return float(answers_match(answer, label))
    return float(digest_after(table, outcome or SqlResult(None)) == digest)


def stored_digest(answer_md5: str) -> str | None:
    """The digest inside the file's `answer_md5`, the text of a one-tuple in a list; None if it is not that."""
    match = re.fullmatch(r"\[\('([0-9a-f]{32})',\)\]", answer_md5.strip())
    return match[1] if match else None


@lru_cache(maxsize=1 << 16)
def _row_hash(joined: str) -> str:
    return _md5(joined)[:5]


def _md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
