"""What each field of a controller's manifest must hold, on the way out as on the way in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from reprlib import Repr
from typing import cast

from controllers.config import DecisionRule
from harness_mdp.errors import InputError
from harness_mdp.hashing import Json

__all__ = ["check_fields", "shown"]

MAX_DEPTH = 32
"""Objects and lists inside each other; far above what training writes, far below Python's recursion limit."""

_WHOLE_LIMIT = 2**63
_HEX = frozenset("0123456789abcdef")

_repr = Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 80


def check_fields(values: Mapping[str, Json], file: Path, remedy: str | None = None) -> None:
    """Checks type, range and nesting of every field of a manifest.

    Raises:
        InputError: names `file`, the field and what it should be.
    """
    missing, extra = sorted(set(_FIELDS) - set(values)), sorted(set(values) - set(_FIELDS))
    if missing or extra:
        raise InputError(f"fields missing: {missing}, unknown: {shown(extra)}", file=file, remedy=remedy)
    for name, (fault, expected) in _FIELDS.items():
        found = fault(values[name])
        if found is not None:
            raise InputError(found, file=file, field=name, expected=expected, remedy=remedy)


def shown(value: Json) -> str:
    """A value in a message: cut short, and never an error of its own."""
    try:
        return _repr.repr(value)
    except ValueError:  # Python prints no whole number of more than 4300 digits
        return f"a {type(value).__name__} that is too large to show"


_Fault = Callable[[Json], str | None]
"""What is wrong with a value; None if nothing is."""


def _unless(fits: Callable[[Json], bool]) -> _Fault:
    return lambda value: None if fits(value) else f"is {shown(value)}"


def _is_text(value: Json) -> bool:
    """A text that can be a file's content and a path: no unpaired surrogates, no NUL."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_line(value: Json) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_lines(value: Json) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_line, cast("list[Json]", value)))


def _is_distinct(value: Json) -> bool:
    return _is_lines(value) and len(set(value)) == len(value)


def _is_folds(value: Json) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_distinct, cast("list[Json]", value)))


def _is_whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_WHOLE_LIMIT <= value < _WHOLE_LIMIT


def _is_version(value: Json) -> bool:
    return _is_whole(value) and value >= 0


def _is_versions(value: Json) -> bool:
    if not isinstance(value, dict):
        return False
    versions = cast("dict[Json, Json]", value)
    return all(map(_is_line, versions)) and all(map(_is_version, versions.values()))


def _is_digest(value: Json) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= _HEX


def _object_fault(value: Json) -> str | None:
    """Walks without recursion, so that no nesting is too deep for it."""
    if not isinstance(value, dict):
        return f"is {shown(value)}"
    waiting: list[tuple[str, int, Json]] = [("", 0, cast("Json", value))]
    while waiting:
        where, depth, item = waiting.pop()
        if depth > MAX_DEPTH:
            return f"is nested more than {MAX_DEPTH} deep"
        if isinstance(item, dict):
            inside = cast("dict[Json, Json]", item)
            wrong = [key for key in inside if not _is_text(key)]
            if wrong:
                return f"holds the key {shown(wrong[0])}{f' in {where}' if where else ''}"
            waiting += [(f"{where}.{key}" if where else key, depth + 1, inner) for key, inner in inside.items()]
        elif isinstance(item, list | tuple):
            waiting += [(f"{where}[{i}]", depth + 1, inner) for i, inner in enumerate(cast("list[Json]", item))]
        elif not _is_plain(item):
            return f"holds {shown(item)} at {where if len(where) <= 80 else where[:80] + '…'}"
    return None


def _is_plain(value: Json) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    return _is_whole(value) or _is_text(value)


_LINE = (_unless(_is_line), "a line of text")
_LINES = (_unless(_is_lines), "a list of lines of text")
_OBJECT = (_object_fault, "an object of texts, truth values, finite numbers (whole ones of at most 64 bits) and null")

_FIELDS: Mapping[str, tuple[_Fault, str]] = {
    "name": _LINE,
    "method": _LINE,
    "kind": _LINE,
    "seed": (_unless(_is_whole), "a whole number of at most 64 bits"),
    "decision": (
        _unless(lambda value: isinstance(value, str) and value in list(DecisionRule)),
        f"one of {', '.join(DecisionRule)}",
    ),
    "feature_schema_id": _LINE,
    "feature_names": _LINES,
    "settings": (_unless(_is_versions), "a version number by setting"),
    "executors": _LINES,
    "buffer_path": (_unless(_is_text), "a path as UTF-8 text"),
    "buffer_version": (_unless(lambda value: value is None or _is_version(value)), "a version number or null"),
    "task_hashes": (_unless(_is_distinct), "a list of distinct task hashes"),
    "folds": (_unless(_is_folds), "a list of lists of distinct task hashes"),
    "config": _OBJECT,
    "metrics": _OBJECT,
    "actions": _LINES,
    "weights_sha256": (_unless(_is_digest), "64 hex digits"),
}
"""Field -> (what is wrong with a value, what is expected, in words)."""
