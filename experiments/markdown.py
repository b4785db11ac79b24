"""Tables made by a command inside pages written by hand."""

from __future__ import annotations

from pathlib import Path

from harness_mdp.errors import InputError

__all__ = ["replace_between"]


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
