"""The draft of `long_memory`: for each question an answer, the session that shows it, and the date of that session.

Canonical text, one line of JSON an answer: `{"answer": "Orbit Flex", "session": "S12", "date": "2023-05-04"}`.
Prompts ask for a line that even a very small model can write, which is read as well: `Orbit Flex [S12, 2023-05-04]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from harness_mdp.hashing import Json
from harness_mdp.settings.answers import is_refusal, labelled, retracted
from harness_mdp.settings.long_memory.words import ROLES, THINGS
from harness_mdp.settings.prompts import Unparsable, fenced

__all__ = ["Finding", "counted", "draft_text", "parse_draft", "read_draft"]

MAX_ANSWER_CHARS: Final = 120
"""A longer answer is no answer to a question that asks for a value."""
MAX_ANSWERS: Final = 6
_MAX_TRIES: Final = 100

_MAX_CLEANED: Final = 2_000
"""Characters of a line that are looked at; cleaning takes one pass for each label that stands before another."""

_SESSION: Final = re.compile(r"\b(?:hit[-_ ]?)?(?:S|session[-_ #]{0,2})0*(\d{1,4})\b", re.IGNORECASE)
_DATE: Final = re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b")
_BRACKETED: Final = re.compile(r"[\[(]([^\[\]()]*)[\])]?")
_SOURCE_INSIDE: Final = re.compile(r"\b(?:S\d+|\d{4}-\d|session|source|date)|\bS\?|^\s*$", re.IGNORECASE)
_LABEL: Final = re.compile(
    rf"^[*_]*(?:(?:my|the) )?(?:{'|'.join((*THINGS, *ROLES))}|name|number|thing)[*_]*:[*_]*\s+", re.IGNORECASE
)
"""A line may begin with what is asked for; any other words before an answer may turn it round, and stay."""
_IN_FORM: Final = re.compile(r"[\[(][^\[\]()]*(?:\bS\d+|\d{4}-\d)[^\[\]()]*[\])]\W*$", re.IGNORECASE)
_SOURCE_LABEL: Final = re.compile(r"^[\W_]*(?:sessions?|sources?|date)[*_\s]*[:=]", re.IGNORECASE)
_SOURCE_WORDS: Final = frozenset(("and", "from", "in", "of", "on", "said", "date", "session", "source", "by"))
_DASHES: Final = re.compile(r"^[-–\s]+(?!\d)|[-–\s]+$")
"""Dashes at either end; one before a number is a minus."""
_NUMBERED: Final = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_CUT_ANSWER: Final = re.compile(r'"answer"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d[\d,.]*)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer with its source."""

    answer: str
    session: str = ""
    """`S12`; empty where none was named."""
    date: str = ""
    """ISO; empty where none was named."""

    @property
    def number(self) -> int:
        """Number of the session; 0 for none."""
        return int(self.session[1:]) if self.session else 0


def draft_text(findings: Sequence[Finding]) -> str:
    """The canonical lines."""
    rows = ({"answer": each.answer, "session": each.session, "date": each.date} for each in findings)
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def parse_draft(reply: str) -> tuple[Finding, ...]:
    """The answers in a model's reply, in order: JSON first, then labelled lines, then lines that end with a source in
    brackets, then lines with a session, then one line.

    Of these kinds the first that is there counts alone: labelled lines are preferred to unlabelled ones, whether those
    think aloud before or explain after. A line that takes an answer back is a labelled one (see `answers`). Where
    there are more answers than questions, the last ones count (`counted`).

    Raises:
        Unparsable: no short answer was found, or the reply is a refusal.
    """
    text = fenced(reply)
    found = list(_from_json(text)) or list(_from_json(reply)) or _cut_json(text) or _from_lines(text)
    findings = [replace(each, answer=_clean(each.answer)) for each in found[-MAX_ANSWERS:]]
    if not any(re.search(r"\w", each.answer) for each in findings):
        raise Unparsable("the answer is empty")
    for each in findings:
        if is_refusal(each.answer):
            raise Unparsable(f"the reply refuses: {each.answer[:100]}")
        if len(each.answer) > MAX_ANSWER_CHARS:
            raise Unparsable(f"an answer holds {len(each.answer)} characters; at most {MAX_ANSWER_CHARS} are read")
    return tuple(findings)


def counted(findings: Sequence[Finding], questions: int) -> Sequence[Finding]:
    """Those that answer the questions, in order: the last ones, where a reply corrects itself and gives more."""
    return findings[-questions:]


def read_draft(artifact: str) -> tuple[Finding, ...]:
    """The answers in canonical text; none for any other text, which then scores nothing."""
    try:
        return parse_draft(artifact)
    except Unparsable:
        return ()


def _from_json(text: str) -> Iterator[Finding]:
    """Every JSON object with an answer, also inside other objects and lists."""
    decoder = json.JSONDecoder(strict=False)
    at = 0
    for _ in range(_MAX_TRIES):
        start = text.find("{", at)
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
            found = list(_from_value(value))
        except (ValueError, RecursionError):  # no JSON here, a number too long, nested too deep
            at = start + 1
            continue
        at = end
        yield from found


def _from_value(value: Json) -> Iterator[Finding]:
    if isinstance(value, list):
        for item in value:
            yield from _from_value(item)
    if not isinstance(value, dict):
        return
    fields = {str(key).strip().lower(): item for key, item in value.items()}
    answer = fields.get("answer")
    if isinstance(answer, str | int | float) and not isinstance(answer, bool):
        cited = next((fields[key] for key in ("session", "sessions", "source") if key in fields), "")
        if isinstance(cited, int) and not isinstance(cited, bool):
            cited = str(cited) if 0 <= cited < 10_000 else ""
        named = f"S{cited}" if isinstance(cited, str) and cited.strip().isdecimal() else str(cited)
        yield Finding(str(answer), _session(named), _date(str(fields.get("date", ""))))
        return
    for item in value.values():
        if isinstance(item, dict | list):
            yield from _from_value(item)


def _cut_json(text: str) -> list[Finding]:
    """Answers of JSON that is cut off or broken, each with what stands before the next one."""
    marks = list(_CUT_ANSWER.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    found: list[Finding] = []
    for mark, end in zip(marks, ends, strict=False):
        rest = text[mark.end() : end]
        found.append(Finding(mark[1].strip('"'), _session(rest), _date(rest)))
    return found


def _from_lines(text: str) -> list[Finding]:
    """Lines with a label or a session; a line of sources alone belongs to what stands above it; or one bare line."""
    if text.lstrip().startswith(("{", "[{")) or '"answer"' in text:
        raise Unparsable("the JSON holds no short answer")
    lines = [line.strip() for line in text.splitlines() if re.search(r"\w", line)]
    labels: list[Finding] = []
    in_form: list[Finding] = []
    loose: list[Finding] = []
    bare: list[str] = []
    latest = loose
    for number, line in enumerate(lines):
        said = labelled(_NUMBERED.sub("", line))
        if said is None and number:
            said = retracted(line)
        if _SOURCE_LABEL.match(line) or not _clean(line):
            if bare and not latest:
                latest.append(Finding(bare.pop()))
            if latest:
                last = latest[-1]
                latest[-1] = replace(last, session=last.session or _session(line), date=last.date or _date(line))
        elif said is None and not _session(line):
            bare.append(line)
        else:
            latest = labels if said is not None else in_form if _IN_FORM.search(line) else loose
            latest.append(Finding(line if said is None else said, _session(line), _date(line)))
    if found := labels or in_form or loose:
        return found
    if len(bare) != 1:
        raise Unparsable(f"expected lines like 'the answer [S1, 2023-01-31]', found {len(bare)} others")
    return [Finding(bare[0], "", _date(bare[0]))]


def _session(text: str) -> str:
    mark = _SESSION.search(text)
    return f"S{int(mark[1])}" if mark and int(mark[1]) else ""


def _date(text: str) -> str:
    mark = _DATE.search(text)
    return f"{mark[1]}-{int(mark[2]):02d}-{int(mark[3]):02d}" if mark else ""


def _clean(answer: str) -> str:
    """One line without label, bullet, source, quotes, and punctuation at the ends; cleaning twice changes nothing."""
    line, before = answer[:_MAX_CLEANED].encode("utf-8", "replace").decode(), None
    while line != before:
        before = line
        line = _NUMBERED.sub("", " ".join(line.split()))
        said = labelled(line)
        line = _LABEL.sub("", line if said is None else said)
        line = _without_source(_BRACKETED.sub(_unbracketed, line).split()).strip(" \"'`*_.,;:|“”‘’")
        line = _DASHES.sub("", line)
    return line


def _unbracketed(bracket: re.Match[str]) -> str:
    """Nothing, where brackets hold a source; else what they hold."""
    return " " if _SOURCE_INSIDE.search(bracket[1]) else f" {bracket[1]} "


def _without_source(words: list[str]) -> str:
    """The words without session ids and dates at either end, and without what leads to them, as in `said on ...`."""
    first, last = 0, len(words)
    while first < last and (_is_source(words[first]) or words[first : first + 1] == ["Session"]):
        first += 1
    end, seen = last, False
    while end > first:
        word = words[end - 1].strip(" ,;.:()|-–=").lower()
        after_session = word.isdecimal() and words[end - 2 : end - 1] == ["session"]
        if not (_is_source(words[end - 1]) or after_session or not word or word in _SOURCE_WORDS):
            break
        seen = seen or after_session or _is_source(words[end - 1])
        end -= 1
    return " ".join(words[first : end if seen and end > first else last])


def _is_source(word: str) -> bool:
    bare = word.strip(" ,;.:()|-–=")
    return bool(_SESSION.fullmatch(bare) or _DATE.fullmatch(bare))
