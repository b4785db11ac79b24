"""Tables made by a command inside pages written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.errors import InputError
from harness_mdp.hashing import Json

__all__ = ["expect_place", "interval", "line", "replace_between", "table"]


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the header in front."""
    return "\n".join([line(header), line(["---"] * len(header)), *map(line, rows)])


def interval(row: Mapping[str, Json], low: str, high: str, form: str) -> str:
    """`[low, high]` of a row of `Comparison.rows`, with `open` for an end that the data do not bound: it is cut at the
    values' range.
    """
    reach = 1.0 if low == "mean_low" or row["outcome"] == "quality" else 2.0
    ends = (
        "open" if "open end" in row["note"] and abs(row[end]) >= reach else format(row[end], form)
        for end in (low, high)
    )
    return f"[{', '.join(ends)}]"


def replace_between(page: Path, name: str, text: str) -> None:
    """Replace what stands between the comments `<!-- name: begin -->` and `<!-- name: end -->` of `page`.

    Raises:
        InputError: as `expect_place`.
    """
    begin, end = _marks(name)
    head, _, rest = expect_place(page, name).partition(begin)
    page.write_text(f"{head}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}")


def expect_place(page: Path, name: str) -> str:
    """The text of `page`, which has a place for what `replace_between` puts there.

    Raises:
        InputError: the page cannot be read, or lacks the comments.
    """
    begin, end = _marks(name)
    lines = f"a page with the lines {begin} and {end}"
    try:
        whole = page.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot be read ({problem})", file=page, expected=lines) from problem
    if end not in whole.partition(begin)[2]:
        raise InputError("holds no place for the tables", file=page, expected=lines)
    return whole


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
