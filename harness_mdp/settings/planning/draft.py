"""The draft of planning: how a reply is read, and how a schedule is written down.

Canonical text: `{"schedule": [{"task": "A", "start": 0, "machine": "M1"}, ...]}`, by task name, without `machine`
where none is said. Read as well: a bare list, `{"A": 0, "B": 3}`, `{"A": [0, "M1"]}`, `{"A": {"start": 0}}`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from harness_mdp.hashing import Json
from harness_mdp.settings.planning.instance import Entry
from harness_mdp.settings.prompts import Unparsable

__all__ = ["parse_schedule", "schedule_text"]

_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=str)
_OPENING: Final = re.compile(r"[{\[]")
_NUMBER: Final = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?|[-+]?\d{1,12}(\.\d{1,12})?")
_PREFIX: Final = re.compile(r"^(TASK|JOB|MACHINE|OPERATION)[\s_#:]+(?=\S)")
_SHORT_NAME: Final = re.compile(r"[A-Z]\d?")
_SCHEDULE_KEYS: Final = ("schedule", "plan")
_ASIDES: Final = ("makespan", "end", "total", "length")
_TASK_KEYS: Final = ("task", "name", "job", "id")
_START_KEYS: Final = ("start", "start_time", "begin", "s")
_MACHINE_KEYS: Final = ("machine", "worker", "m")
_MAX_TRIES: Final = 200
_MAX_ENTRIES: Final = 50
_MAX_NAME: Final = 40
_MAX_TIME: Final = 1_000_000


def schedule_text(entries: Sequence[Entry]) -> str:
    """The canonical text of a schedule."""
    rows: list[dict[str, Json]] = []
    for entry in sorted(entries, key=lambda each: each.task):
        row: dict[str, Json] = {"task": entry.task, "start": entry.start}
        rows.append({**row, "machine": entry.machine} if entry.machine else row)
    return json.dumps({"schedule": rows}, ensure_ascii=False)


@lru_cache(maxsize=1024)  # claims, check, tool and rubric all read the same draft
def parse_schedule(reply: str) -> tuple[Entry, ...]:
    """The schedule in a model's reply: fenced, bare or amid text. The one with most entries counts, then the last.

    Raises:
        Unparsable: the reply is empty or holds no schedule; or an entry of it has no task or no time.
    """
    if not reply.strip():
        raise Unparsable("the reply is empty")
    best: tuple[Entry, ...] = ()
    reason = "the reply holds no JSON schedule"
    for value in _values(reply):
        rows = _rows(value)
        if not rows:
            continue
        try:
            entries = tuple(_entry(row) for row in rows)
        except Unparsable as problem:
            reason = str(problem)
            continue
        if len(entries) >= len(best):
            best = entries
    if not best:
        raise Unparsable(reason)
    if len(best) > _MAX_ENTRIES:
        raise Unparsable(f"the schedule has {len(best)} entries; at most {_MAX_ENTRIES} are read")
    return tuple(sorted(best, key=lambda entry: entry.task))


def _values(reply: str) -> Iterator[Json]:
    """Outermost JSON objects and lists in a text, in order."""
    at = 0
    for _ in range(_MAX_TRIES):
        mark = _OPENING.search(reply, at)
        if mark is None:
            return
        try:
            value, at = _DECODER.raw_decode(reply, mark.start())
        except (ValueError, RecursionError):  # no JSON here, a number too long, nested too deep
            at = mark.end()
            continue
        yield value


def _rows(value: Json) -> list[Mapping[str, Json]]:
    """The entries that a JSON value holds, each as an object with task, start and machine; none: no schedule."""
    if isinstance(value, dict):
        inner = _get(value, _SCHEDULE_KEYS)
        value = inner if isinstance(inner, (dict, list)) else value
    if isinstance(value, dict):
        short = [(_name(key), inner) for key, inner in value.items() if key.strip().lower() not in _ASIDES]
        if short and all(_SHORT_NAME.fullmatch(name) for name, _ in short):
            return [_short_row(name, inner) for name, inner in short]
        return []
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return value if any(_get(row, _TASK_KEYS) is not None for row in value) else []
    return []


def _short_row(name: str, value: Json) -> Mapping[str, Json]:
    if isinstance(value, dict):
        return {**value, "task": name}
    if isinstance(value, list) and len(value) == 2:
        return {"task": name, "start": value[0], "machine": value[1]}
    return {"task": name, "start": value}


def _entry(row: Mapping[str, Json]) -> Entry:
    task = _get(row, _TASK_KEYS)
    if not isinstance(task, str) or not task.strip():
        raise Unparsable("an entry of the schedule names no task")
    name = _name(task)
    machine = _get(row, _MACHINE_KEYS)
    return Entry(name, _time(name, _get(row, _START_KEYS)), _name(machine) if isinstance(machine, str) else "")


def _get(row: Mapping[str, Json], keys: Sequence[str]) -> Json:
    """The value under the first of `keys` that is there, whatever its case; else None."""
    folded = {key.strip().lower(): value for key, value in row.items()}
    return next((folded[key] for key in keys if key in folded), None)


def _name(text: str) -> str:
    """`task a` and ` A ` are `A`."""
    return _PREFIX.sub("", " ".join(text.split()).upper())[:_MAX_NAME]


def _time(task: str, value: Json) -> int | float:
    """A number, whole ones as int; that a start has to be whole is for the validator to say.

    Raises:
        Unparsable: it is none, or out of any reason.
    """
    number: int | float | None = None
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = float(value.strip().replace(",", ""))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        number = value
    if number is None or not math.isfinite(number) or abs(number) > _MAX_TIME:
        raise Unparsable(f"the start of {task} is no time")
    return int(number) if number == int(number) else number
