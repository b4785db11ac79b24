"""A tool call sent as JSON, spelled as the line form has it: `{"tool": "convert", "args": {...}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from harness_mdp.hashing import Json

__all__ = ["from_json"]

_TOOL_KEYS: Final = ("tool", "name", "tool_name", "function", "action")
_ARGUMENT_KEYS: Final = (
    "args", "arguments", "input", "parameters", "tool_input", "action_input", "expression", "call",
)  # fmt: skip
_ORDER: Final = (
    "operation", "op", "query", "expression", "table", "column", "date", "start", "start_date", "from", "date1",
    "end", "end_date", "to", "date2", "time", "n", "days", "months", "minutes", "amount", "count",
)  # fmt: skip
"""Arguments are spelled in this order, others after them as they come."""
_CONVERT_ORDER: Final = ("value", "amount", "number", "quantity", "from", "from_unit", "unit", "source")


def from_json(value: Mapping[str, Json], tools: Mapping[str, str]) -> tuple[str, str] | None:
    """Tool and arguments of the call in a JSON object; None when it names no tool.

    Args:
        value: the object; `{"function": {"name": ..., "arguments": "{...}"}}`, as chat APIs have it, is understood too.
        tools: name of a tool by every word that a model has for it.
    """
    function = value.get("function")
    fields = {str(key).lower(): item for key, item in (function if isinstance(function, dict) else value).items()}
    named = next((fields[key].strip().lower() for key in _TOOL_KEYS if isinstance(fields.get(key), str)), "")
    if named in tools:
        given = next((fields[key] for key in _ARGUMENT_KEYS if key in fields), None)
        if given is None:  # flat: {"tool": "convert", "value": 12, "from": "mi", "to": "km"}
            given = {key: item for key, item in fields.items() if key not in _TOOL_KEYS}
        return tools[named], _spelled(tools[named], given)
    if len(fields) == 1:  # {"calculator": "12 * 7"}
        key, item = next(iter(fields.items()))
        if key in tools:
            return tools[key], _spelled(tools[key], item)
    return None


def _spelled(tool: str, given: Json) -> str:
    if isinstance(given, str):
        try:
            parsed = json.loads(given)  # the form of chat APIs: arguments as JSON in a string
        except (ValueError, RecursionError):
            return given
        return _from_fields(tool, parsed) if isinstance(parsed, dict) else given
    return _from_fields(tool, given) if isinstance(given, dict) else _words(given)


def _from_fields(tool: str, given: Mapping[str, Json]) -> str:
    fields = {str(key).lower(): item for key, item in given.items()}
    where = _taken(fields, ("where", "conditions", "condition", "filter"))
    free = _taken(fields, ("except", "holidays"))
    target = _taken(fields, ("to", "to_unit", "target")) if tool == "convert" else None
    order = _CONVERT_ORDER if tool == "convert" else _ORDER
    ordered = sorted(fields, key=lambda key: order.index(key) if key in order else len(order))
    words = [_words(fields[key]) for key in ordered]
    if target is not None:
        words.append(f"to {_words(target)}")
    if where:
        words.append(f"where {_where(where)}")
    if free:
        words.append(f"except {_words(free)}")
    return " ".join(words)


def _taken(fields: dict[str, Json], names: Iterable[str]) -> Json:
    """The first of `names` that is there, taken out of `fields`; else None."""
    return next((fields.pop(name) for name in names if name in fields), None)


def _words(value: Json) -> str:
    """A scalar as text, a list as its members."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _where(given: Json) -> str:
    """`{"zone": "B", "kg": {"<=": 4}}`, a list of conditions, or a text, as `zone = B and kg <= 4`."""
    if isinstance(given, list):
        return " and ".join(map(_where, given))
    if not isinstance(given, dict):
        return re.sub(r"(?i)^\s*where\s+", "", str(given))
    if {"column", "value"} <= set(given):
        return f"{given['column']} {given.get('op', given.get('operator', '='))} {given['value']}"
    parts: list[str] = []
    for column, item in given.items():
        if isinstance(item, dict):
            parts += [f"{column} {sign} {value}" for sign, value in item.items()]
        else:
            parts.append(f"{column} {item}" if re.match(r"\s*[<>=!]", str(item)) else f"{column} = {item}")
    return " and ".join(parts)
