"""The draft of `multi_tool`: named quantities and the answer, read from whatever a model sends.

Canonical text: `{"steps":{"distance_km":675.92},"answer":43.94}`, compact JSON. Values are numbers or texts; a text
that is a number, a date or a time is written in one form (`1,234.0 EUR` is 1234, `2 March 2026` is 2026-03-02).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Final

from harness_mdp.hashing import Json
from harness_mdp.settings.multi_tool.numbers import NUMBER, number_text, read_number
from harness_mdp.settings.multi_tool.objects import objects_in
from harness_mdp.settings.prompts import Unparsable

__all__ = ["Draft", "field_name", "parse_draft", "piece", "read_draft"]

MAX_STEPS = 30
MAX_TEXT = 80
"""Characters of a value that is a text; what is asked for is a number, a date or a time."""
MAX_NAME = 60
MAX_NUMBER = 10**15
MAX_REPLY = 50_000

_ANSWERS: Final = ("answer", "final_answer", "final", "result")
_STEPS: Final = ("steps", "quantities", "intermediate", "intermediates", "values")
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:\n?```|\Z)", re.DOTALL)
_WITH_UNIT = re.compile(rf"(?:[A-Z]{{3}}\s*|[$€£]\s*)?(-?\s*(?:{NUMBER}))\s*(?:[%°$€£]|[A-Za-z/°]{{1,12}})?\.?")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ,]+(?:at )?(\d\d:\d\d)(?::00(?:\.0+)?)?Z?)?")
_LINE = re.compile(
    r"^[ \t*_#>-]*(?:the\s+)?(?:final\s+)?answer[\s*_]*(?::|\bis\b)[\s*_`]*(.+?)[\s*_`.]*$",
    re.IGNORECASE | re.MULTILINE,
)
_PAIR = re.compile(r'"([^"\\\n]{1,60})"\s*:\s*("(?:[^"\\]|\\.)*"|-?[\d.]+(?:[eE][-+]?\d+)?)(?=\s*[,}\n])')
_REFUSAL = re.compile(
    r"\b(?:sorry|cannot|can't|unable|unknown|not (?:enough|sure)|don't know|as an ai|need more)\b", re.IGNORECASE
)
_WRITTEN_DATES: Final = ("%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y", "%A %d %B %Y", "%A %B %d %Y", "%Y/%m/%d")


@dataclass(frozen=True, slots=True)
class Draft:
    """Values are `Fraction` or text, by name; names in lower case with underscores."""

    answer: Fraction | str
    steps: Mapping[str, Fraction | str] = field(default_factory=dict[str, Fraction | str])

    @property
    def text(self) -> str:
        """The canonical artifact text."""
        steps = ",".join(f"{piece(name)}:{piece(value)}" for name, value in self.steps.items())
        return f'{{"steps":{{{steps}}},"answer":{piece(self.answer)}}}'

    @property
    def values(self) -> dict[str, Fraction | str]:
        """All values by name, the answer first under `answer`."""
        return {"answer": self.answer, **self.steps}


def piece(value: Fraction | str) -> str:
    """A value as it stands in canonical JSON; numbers to at most six decimals."""
    return number_text(value, 6) if isinstance(value, Fraction) else json.dumps(value, ensure_ascii=False)


def field_name(text: str) -> str:
    """`Distance (km)` and `distance-km` as `distance_km`."""
    return re.sub(r"\W+", "_", text.strip().lower()).strip("_")[:MAX_NAME].strip("_")


def parse_draft(reply: str) -> Draft:
    """The draft in a model's reply.

    The last JSON object with an answer counts (models think before they answer), then one that was cut off after its
    answer, then a line `Answer: ...`, then a reply that is nothing but a value.

    Raises:
        Unparsable: there is no answer, or the reply refuses.
    """
    if not reply.strip():
        raise Unparsable("the reply is empty")
    reply = reply[-MAX_REPLY:]
    texts = [*(match[1] for match in _FENCE.finditer(reply)), reply]
    for text in texts:
        drafts = [draft for value in objects_in(text) if (draft := _from_json(value)) is not None]
        if drafts:
            return drafts[-1]
    draft = _from_pairs(reply) or _from_line(reply)
    if draft is None:
        raise Unparsable('the reply holds no JSON with "answer" and no line "Answer: ..."')
    return draft


@lru_cache(maxsize=4096)  # a draft is read again for claims at every step, and for its score
def read_draft(artifact: str) -> Draft | None:
    """The draft in an artifact; None where there is none, which then scores nothing."""
    try:
        return parse_draft(artifact)
    except Unparsable:
        return None


def _from_json(value: Mapping[str, Json]) -> Draft | None:
    fields: dict[str, Json] = {field_name(str(key)): item for key, item in value.items()}
    key = next((name for name in _ANSWERS if name in fields), None)
    answer = _value(fields.pop(key)) if key is not None else None
    if answer is None:
        return None
    nested = next((fields.pop(name) for name in _STEPS if isinstance(fields.get(name), dict | list)), {})
    steps: dict[str, Fraction | str] = {}
    for name, item in (*_named(nested), *fields.items()):  # flat JSON has its quantities beside the answer
        said = _value(item)
        if said is not None and field_name(name) not in ("", *_ANSWERS) and len(steps) < MAX_STEPS:
            steps[field_name(name)] = said
    return Draft(answer, steps)


def _named(steps: Json) -> Iterator[tuple[str, Json]]:
    """Quantities in `{"km": 3}`, `[{"km": 3}]` or `[{"name": "km", "value": 3}]`."""
    if isinstance(steps, dict):
        for name, item in steps.items():
            yield str(name), item
    elif isinstance(steps, list):
        for item in steps[:MAX_STEPS]:
            if isinstance(item, dict) and "name" in item and "value" in item:
                yield str(item["name"]), item["value"]
            elif isinstance(item, dict):
                yield from _named(item)


def _value(item: Json) -> Fraction | str | None:
    """A number, or a text in one form; None for what is no value (null, lists, refusals, long texts)."""
    if isinstance(item, dict):
        return _value(item.get("value"))
    if item is None or isinstance(item, bool | list):
        return None
    if isinstance(item, int | float):
        return _number(item)
    text = " ".join(str(item).split())
    number = _WITH_UNIT.fullmatch(text)
    if number is not None and (value := read_number(number[1].replace(" ", ""))) is not None:
        return value if abs(value) <= MAX_NUMBER else None
    if not text or len(text) > MAX_TEXT or _REFUSAL.search(text):
        return None
    return _moment(text) or text


def _number(item: int | float) -> Fraction | None:
    """Exact value of the decimal digits sent; None when it is not finite or out of all proportion."""
    if item != item or abs(item) > MAX_NUMBER:
        return None
    return Fraction(number_text(Fraction(str(item)), 6))


def _moment(text: str) -> str | None:
    """A date or a date with time in ISO form."""
    match = _ISO.fullmatch(text)
    if match is not None:
        return f"{match[1]} {match[2]}" if match[2] else match[1]
    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", text.replace(",", " "))
    for form in _WRITTEN_DATES:
        try:
            return datetime.strptime(" ".join(plain.split()), form).date().isoformat()
        except ValueError:
            continue
    return None


def _from_pairs(reply: str) -> Draft | None:
    """JSON that was cut off: its complete pairs, if the answer is among them."""
    fields: dict[str, Json] = {}
    for name, raw in _PAIR.findall(reply):
        try:
            fields[name] = json.loads(raw)
        except ValueError:
            continue
    return _from_json(fields)


def _from_line(reply: str) -> Draft | None:
    lines = _LINE.findall(reply)
    lone = reply.strip().strip("`*. ")
    for text in (*reversed(lines), *((lone,) if len(lone) <= MAX_TEXT else ())):
        value = _value(text)
        is_moment = isinstance(value, str) and _ISO.fullmatch(value) is not None
        if value is not None and (text in lines or isinstance(value, Fraction) or is_moment):
            return Draft(value)
    return None
