"""Arithmetic of the `calculate` tool: numbers, + - * / ( ) and spaces, rounded to cents; never `eval`."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping

__all__ = ["evaluate"]

_ALLOWED = frozenset("0123456789+-*/(). ")
_MAX_CHARS = 1000
_MAX_EXPONENT = 1000
_MAX_BASE = 1e6

Number = int | float

_BINARY: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def evaluate(expression: str) -> float:
    """The value of `expression`, rounded to two decimals, as upstream's `calculate` gives it.

    Raises:
        ValueError: a character outside the allowed ones, a text that is no expression, a division by zero, or
            a number too large to be worth computing (a power above 1e6 ** 1000, a text above 1,000 characters).
    """
    if not _ALLOWED.issuperset(expression):
        raise ValueError("an expression may hold digits, + - * / ( ) . and spaces only")
    if len(expression) > _MAX_CHARS:
        raise ValueError(f"an expression may have at most {_MAX_CHARS} characters, not {len(expression)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(expression.lstrip(" "), mode="eval")
        return round(float(_value(tree.body)), 2)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{expression[:80]!r} is no arithmetic expression") from None
    except (ArithmeticError, TypeError) as problem:
        raise ValueError(f"{expression[:80]!r} cannot be computed: {problem}") from None


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return +_value(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left), _value(right))
        case _:
            raise TypeError("only numbers and + - * / can be used")


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > _MAX_EXPONENT or abs(base) > _MAX_BASE:
        raise OverflowError("the power is too large")
    value = base**exponent
    if isinstance(value, complex):
        raise TypeError("the result is no real number")
    return value
