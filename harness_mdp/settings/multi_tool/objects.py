"""JSON objects in what a model sends: fenced, bare or amid text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from harness_mdp.hashing import Json

__all__ = ["objects_in"]

MAX_OBJECTS = 50
MAX_DEPTH = 6
"""Nesting beyond which an object is nothing that was asked for."""

_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=str)


def objects_in(text: str) -> Iterator[dict[str, Json]]:
    """The outermost objects of `text` that can be read, in order."""
    start = text.find("{")
    for _ in range(MAX_OBJECTS):
        if start < 0:
            return
        end = start + 1
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and _depth_within(value, MAX_DEPTH):
            yield value
        start = text.find("{", end)


def _depth_within(value: Json, limit: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return limit > 0 and all(_depth_within(item, limit - 1) for item in items)
