"""Unit conversion with exact factors: international yard and pound, US gallon, nautical mile of 1852 m."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from harness_mdp.settings.multi_tool.numbers import NUMBER, ToolError, number_text, read_number

__all__ = ["UNITS", "Unit", "convert"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit: value in base units = factor * (value + shift)."""

    measure: str
    factor: Fraction
    shift: Fraction = Fraction(0)


def _units(measure: str, factors: Mapping[str, str]) -> dict[str, Unit]:
    return {name: Unit(measure, Fraction(factor)) for name, factor in factors.items()}


UNITS: Final[Mapping[str, Unit]] = {
    **_units("length", {"mm": "0.001", "cm": "0.01", "m": "1", "km": "1000", "in": "0.0254", "ft": "0.3048",
                        "yd": "0.9144", "mi": "1609.344", "nmi": "1852"}),
    **_units("mass", {"mg": "0.001", "g": "1", "kg": "1000", "t": "1000000", "oz": "28.349523125",
                      "lb": "453.59237"}),
    **_units("volume", {"ml": "0.001", "cl": "0.01", "dl": "0.1", "l": "1", "gal": "3.785411784",
                        "qt": "0.946352946", "pt": "0.473176473", "cup": "0.2365882365",
                        "floz": "0.0295735295625", "tbsp": "0.01478676478125", "tsp": "0.00492892159375"}),
    **_units("time", {"s": "1", "min": "60", "h": "3600", "d": "86400", "wk": "604800"}),
    **_units("speed", {"m/s": "1", "km/h": "5/18", "mph": "0.44704", "kn": "463/900"}),
    "k": Unit("temperature", Fraction(1)),
    "c": Unit("temperature", Fraction(1), Fraction("273.15")),
    "f": Unit("temperature", Fraction(5, 9), Fraction("459.67")),
}  # fmt: skip
"""By symbol, in lower case."""

_NAMES: Final[Mapping[str, str]] = {
    "meter": "m", "metre": "m", "kilometer": "km", "kilometre": "km", "centimeter": "cm", "centimetre": "cm",
    "millimeter": "mm", "millimetre": "mm", "inch": "in", "inche": "in", "foot": "ft", "feet": "ft", "yard": "yd",
    "mile": "mi", "nautical mile": "nmi", "gram": "g", "gramme": "g", "kilogram": "kg", "kilo": "kg",
    "milligram": "mg", "tonne": "t", "ounce": "oz", "pound": "lb", "liter": "l", "litre": "l", "milliliter": "ml",
    "millilitre": "ml", "gallon": "gal", "quart": "qt", "pint": "pt", "fluid ounce": "floz", "fl oz": "floz",
    "tablespoon": "tbsp", "teaspoon": "tsp", "second": "s", "sec": "s", "minute": "min", "hour": "h", "hr": "h",
    "day": "d", "week": "wk", "kph": "km/h", "kmh": "km/h", "knot": "kn", "celsius": "c", "°c": "c",
    "fahrenheit": "f", "°f": "f", "kelvin": "k",
}  # fmt: skip

_FORM = re.compile(rf"\s*([-+]?(?:{NUMBER}))\s*(.+?)\s+(?:to|in|into|as)\s+(.+?)\s*", re.IGNORECASE)


def convert(arguments: str) -> tuple[str, str]:
    """`12 mi to km` in canonical spelling, and the value in the second unit to four decimals.

    Raises:
        ToolError: not of that form, an unknown unit, or units of different measures.
    """
    match = _FORM.fullmatch(arguments)
    value = read_number(match[1]) if match else None
    if match is None or value is None:
        raise ToolError("convert takes NUMBER UNIT to UNIT, as in 12 mi to km")
    names = [_symbol(match[2]), _symbol(match[3])]
    source, target = (UNITS[name] for name in names)
    if source.measure != target.measure:
        raise ToolError(f"{names[0]} is a {source.measure}, {names[1]} a {target.measure}")
    result = source.factor * (value + source.shift) / target.factor - target.shift
    return f"{number_text(value, 6)} {names[0]} to {names[1]}", number_text(result)


def _symbol(text: str) -> str:
    name = " ".join(text.strip(" .").lower().split())
    for spelled in (name, name.removesuffix("s")):
        symbol = _NAMES.get(spelled, spelled)
        if symbol in UNITS:
            return symbol
    raise ToolError(f"unknown unit {text.strip()[:20]!r}")
