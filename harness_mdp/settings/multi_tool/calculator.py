"""The calculator: exact arithmetic by a small recursive-descent parser; nothing is ever evaluated as code.

Grammar: sum = product (+|- product)*, product = power (*|/ power)*, power = [-|+] atom [** power],
atom = NUMBER [%] | ( sum ) | FUNCTION ( sum, ... ). Values are fractions, so 0.1 + 0.2 is 0.3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from harness_mdp.settings.multi_tool.numbers import NUMBER, ToolError, number_text

__all__ = ["calculate"]

MAX_CHARS = 200
MAX_DEPTH = 20
MAX_BITS = 20_000
"""Size of a numerator or denominator beyond which nothing is worth computing."""

_TOKEN = re.compile(rf"\s*({NUMBER}|\*\*|[-+*/^%(),×÷−]|[A-Za-z_]+)")
_SPELLED: Mapping[str, str] = {"^": "**", "×": "*", "÷": "/", "−": "-", "x": "*", "X": "*"}


def _round(values: Sequence[Fraction]) -> Fraction:
    digits = values[1] if len(values) > 1 else Fraction(0)
    if digits.denominator != 1 or not 0 <= digits <= 10:
        raise ToolError("round takes 0 to 10 decimals")
    return Fraction(number_text(values[0], int(digits)))


def _abs(values: Sequence[Fraction]) -> Fraction:
    return abs(values[0])


def _ceil(values: Sequence[Fraction]) -> Fraction:
    return Fraction(math.ceil(values[0]))


def _floor(values: Sequence[Fraction]) -> Fraction:
    return Fraction(math.floor(values[0]))


def _min(values: Sequence[Fraction]) -> Fraction:
    return min(values)


def _max(values: Sequence[Fraction]) -> Fraction:
    return max(values)


_FUNCTIONS: Final[Mapping[str, tuple[int, int, Callable[[Sequence[Fraction]], Fraction]]]] = {
    "abs": (1, 1, _abs),
    "ceil": (1, 1, _ceil),
    "floor": (1, 1, _floor),
    "round": (1, 2, _round),
    "min": (1, 20, _min),
    "max": (1, 20, _max),
}
"""Name -> fewest arguments, most arguments, function."""


def calculate(expression: str) -> tuple[str, str]:
    """The expression in canonical spacing, and its value to four decimals.

    Raises:
        ToolError: it is no expression of the grammar, too long, too deep or too large, or divides by zero.
    """
    tokens = _tokens(expression)
    value = _Parser(tokens).whole()
    return _spaced(tokens), number_text(value)


def _tokens(expression: str) -> list[str]:
    if len(expression) > MAX_CHARS:
        raise ToolError(f"the expression has {len(expression)} characters; at most {MAX_CHARS} are read")
    tokens: list[str] = []
    place, text = 0, expression.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ToolError(f"{text[place:].strip()[:20]!r} is not arithmetic")
        tokens.append(_SPELLED.get(match[1], match[1].lower().replace(",", "") if match[1] != "," else ","))
        place = match.end()
    if not tokens:
        raise ToolError("the expression is empty")
    return tokens


def _spaced(tokens: Sequence[str]) -> str:
    """`( 1 + 2 ) * ceil ( 3 )` as `(1 + 2) * ceil(3)`."""
    text = " ".join(tokens)
    text = re.sub(r"([a-z]) \(", r"\1(", text).replace("( ", "(").replace(" )", ")")
    return text.replace(" ,", ",").replace(" %", "%")


class _Parser:
    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens
        self.place = 0
        self.depth = 0

    def whole(self) -> Fraction:
        value = self.sum()
        if self.place < len(self.tokens):
            raise ToolError(f"{self.tokens[self.place]!r} is not expected there")
        return value

    @property
    def next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token if it is one of `wanted`, else an empty text and nothing is taken."""
        found = self.next
        if found not in wanted or not found:
            return ""
        self.place += 1
        return found

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            raise ToolError(f"{wanted!r} is missing {f'before {self.next!r}' if self.next else 'at the end'}")

    def sum(self) -> Fraction:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ToolError(f"the expression is nested more than {MAX_DEPTH} deep")
        value = self.product()
        while sign := self.take("+", "-"):
            other = self.product()
            value = _sized(value + other if sign == "+" else value - other)
        self.depth -= 1
        return value

    def product(self) -> Fraction:
        value = self.power()
        while sign := self.take("*", "/"):
            other = self.power()
            if sign == "/" and other == 0:
                raise ToolError("division by zero", valid=True)
            value = _sized(value * other if sign == "*" else value / other)
        return value

    def power(self) -> Fraction:
        negative = False
        while sign := self.take("-", "+"):
            negative ^= sign == "-"
        value = self.atom()
        if self.take("**"):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise ToolError(f"the expression is nested more than {MAX_DEPTH} deep")
            value = _raised(value, self.power())
            self.depth -= 1
        return -value if negative else value

    def atom(self) -> Fraction:
        token = self.next
        if self.take("("):
            value = self.sum()
            self.expect(")")
            return value
        self.place += 1
        if token in _FUNCTIONS:
            return self.function(token)
        if not token[:1].isdigit() and not token.startswith("."):
            raise ToolError(f"a number is missing {f'before {token!r}' if token else 'at the end'}")
        value = Fraction(token)
        return value / 100 if self.take("%") else value

    def function(self, name: str) -> Fraction:
        fewest, most, compute = _FUNCTIONS[name]
        self.expect("(")
        values = [self.sum()]
        while self.take(","):
            values.append(self.sum())
        self.expect(")")
        if not fewest <= len(values) <= most:
            raise ToolError(f"{name} takes {fewest} to {most} arguments, not {len(values)}")
        return compute(values)


def _raised(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise ToolError("an exponent has to be a whole number")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > MAX_BITS:
        raise ToolError("the power is too large", valid=True)
    if base == 0 and exponent < 0:
        raise ToolError("division by zero", valid=True)
    return base ** int(exponent)


def _sized(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ToolError("the numbers are too large", valid=True)
    return value
