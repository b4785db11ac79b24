"""Tables made by a command inside pages written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.errors import InputError
from harness_mdp.hashing import Json

__all__ = ["interval", "line", "replace_between", "table"]


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
        InputError: the page cannot be read, or lacks the comments.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    try:
        whole = page.read_text()
    except OSError as problem:
        raise InputError(f"cannot be read ({problem.strerror})", file=page) from problem
    if begin not in whole or end not in whole:
        raise InputError("holds no place for the tables", file=page, expected=f"the lines {begin} and {end}")
    head, _, rest = whole.partition(begin)
    page.write_text(f"{head}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}")
