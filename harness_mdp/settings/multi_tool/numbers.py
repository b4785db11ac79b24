"""Numbers as the tools write them, and when two of them are the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

__all__ = ["NUMBER", "TOLERANCE", "ToolError", "close", "number_text", "numbers_in", "read_number"]

NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
"""A plain number, thousands commas allowed; no sign, no exponent."""

TOLERANCE = Fraction(75, 10_000)
"""Half a cent for rounding to two decimals, and half of that again for what tools that round to four decimals lose on
the way (at most 0.002 in a chain of five). A slip of one unit never fits in."""

_SIGNED = re.compile(rf"[-+]?(?:{NUMBER})")
_LONE = re.compile(rf"(?<![\w.-])-?(?:{NUMBER})(?!\w)")
_MAX_CHARS = 40
_DATE_OR_TIME = re.compile(r"\d{4}-\d\d-\d\d|\b\d{1,2}:\d\d\b")


class ToolError(Exception):
    """A call that gave nothing; the message says why, in one line."""

    def __init__(self, reason: str, *, valid: bool = False) -> None:
        """`valid`: the arguments were fine, and still there is no result (a division by zero, no such row)."""
        super().__init__(reason)
        self.valid = valid


def read_number(text: str) -> Fraction | None:
    """The exact value of `1,234.5`; None for any other text."""
    text = text.strip()
    if len(text) > _MAX_CHARS or _SIGNED.fullmatch(text) is None:
        return None
    return Fraction(text.replace(",", ""))


def number_text(value: Fraction, decimals: int = 4) -> str:
    """`value` rounded half away from zero, no trailing zeros, no commas: `12.5`, `-3`, `0`."""
    scale = 10**decimals
    scaled = abs(value) * scale
    units = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    whole, part = divmod(units, scale)
    digits = f"{part:0{decimals}d}".rstrip("0") if decimals else ""
    sign = "-" if value < 0 and units else ""
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


def numbers_in(text: str) -> Iterator[Fraction]:
    """Numbers that stand alone in `text`; dates and times of day are none."""
    for match in _LONE.finditer(_DATE_OR_TIME.sub(" ", text)):
        value = read_number(match[0])
        if value is not None:
            yield value


def close(value: Fraction, reference: Fraction) -> bool:
    """Within `TOLERANCE`, however large the numbers are."""
    return abs(value - reference) <= TOLERANCE
