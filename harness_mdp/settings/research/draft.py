"""The draft of `research`: a short answer and the documents it rests on, read from whatever a model sends.

Its canonical form, which prompts ask for and show, is one line that even a very small model can write:

    Halstead [doc-3] [doc-5]

Labelled lines (`Answer: ...`, `Sources: ...`), JSON with `answer` and `citations`, and a first line with
explanations after it are understood too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness_mdp.hashing import Json
from harness_mdp.settings.answers import is_refusal, labelled, retracted
from harness_mdp.settings.prompts import Unparsable, fenced

__all__ = ["MAX_ANSWER_CHARS", "Draft", "parse_draft", "read_draft"]

MAX_ANSWER_CHARS = 200
"""A longer answer is no answer to a question that asks for a name or a year."""

_MAX_STARTS = 50
"""Opening braces that are tried as the start of the JSON."""

_ID = re.compile(r"\b(?:doc|hit)[-_ ]?0*(\d+)\b", re.IGNORECASE)
_BRACKETED = re.compile(
    r"[\[(](?=[^\[\]()]*\b(?:doc|hit|source))(?:(?:doc|document|hit|source|id)s?|number|and|see|[\d\s,;:&#._-])*(?:[\])]|$)",
    re.IGNORECASE,
)
"""Ids in brackets and nothing that could take the answer back; where a reply was cut off, the last one is open."""
_HEADING = re.compile(r"^ *={2,}")
"""A section mark of the prompt, which small models repeat before they answer."""
_SOURCES = re.compile(r"^(?:[^\w\n]|_)*(?:sources?|citations?)[*_\s]*:(.*)$", re.IGNORECASE | re.MULTILINE)
_INLINE_SOURCES = re.compile(r"(?<![\s.;,(])[\s.;,(]*\b(?:sources?|citations?)\s*:.*$", re.IGNORECASE)
_JSON_ANSWER = re.compile(r'"answer"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer and the ids of the documents cited for it, in the order given, each once."""

    answer: str
    citations: tuple[str, ...]

    @property
    def text(self) -> str:
        """The canonical line."""
        return self.answer + "".join(f" [{name}]" for name in self.citations)


def parse_draft(reply: str) -> Draft:
    """The draft in a model's reply.

    JSON comes first, then the last labelled line (`Answer: ...`, or one that takes an answer back, see `answers`), then
    the first line of text, if it is short. Documents count as cited where the reply names them in a `Sources:` line,
    else in the labelled line, else anywhere; a retrieval hit stands for its document.

    Raises:
        Unparsable: no short answer was found, or the reply is a refusal.
    """
    text = fenced(reply)
    draft = _finished(_from_json(text) or _from_json(reply) or _from_lines(text))
    if is_refusal(draft.answer):
        raise Unparsable(f"the reply refuses: {draft.answer[:100]}")
    if _finished(_from_lines(draft.text)) != draft:  # an answer that holds labels or sources of its own
        raise Unparsable(f"the answer is not plain text: {draft.answer[:100]}")
    return draft


def read_draft(artifact: str) -> Draft:
    """The draft in canonical text; an empty draft for any other text, which then scores nothing."""
    try:
        return parse_draft(artifact)
    except Unparsable:
        return Draft("", ())


def _from_json(text: str) -> Draft | None:
    """The last JSON object with an answer; one that is cut off after the answer counts where there is no other."""
    decoder, found, at = json.JSONDecoder(), None, 0
    for _ in range(_MAX_STARTS):
        start = text.find("{", at)
        if start < 0:
            break
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        found = _from_object(value) or found
    if found is not None:
        return found
    cut = _JSON_ANSWER.search(text)
    if cut is None:
        return None
    try:
        return Draft(str(json.loads(cut[1], strict=False)), _ids(text[cut.end() :]))
    except ValueError:  # an escape that JSON does not know
        return Draft(cut[1].strip('"'), _ids(text[cut.end() :]))


def _from_object(value: Json) -> Draft | None:
    if not isinstance(value, dict):
        return None
    fields = {str(key).lower(): item for key, item in value.items()}
    answer = fields.get("answer")
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        return None
    cited = next((fields[key] for key in ("citations", "sources", "source") if key in fields), "")
    listed: Sequence[Json] = cited if isinstance(cited, list) else [cited]
    return Draft(str(answer), _ids(" ".join(map(str, listed))))


def _from_lines(text: str) -> Draft:
    """A labelled answer, or the first line that says something: chat models answer first and explain after."""
    sources = _SOURCES.findall(text)
    citations = _ids("\n".join(sources) if sources else text)
    rest = _SOURCES.sub("", text)
    lines = [line for line in rest.splitlines() if re.search(r"\w", _BRACKETED.sub("", line))]
    lines = [line for line in lines if not _HEADING.match(line)]
    named = [said for number, line in enumerate(lines) if (said := _named(line, first=not number))]
    if named:
        inline = () if sources else _ids(named[-1])
        return Draft(_INLINE_SOURCES.sub("", named[-1]), inline or citations)
    lines = [line for line in lines if labelled(line) is None]  # a label without an answer
    lines = [line for line in lines if not line.rstrip().endswith((":", "?"))]  # an announcement, the question again
    if not lines or '"answer"' in lines[0].lower():
        raise Unparsable("expected a line 'Answer: ...' or a short first line, found neither")
    return Draft(_INLINE_SOURCES.sub("", lines[0]), citations)


def _named(line: str, *, first: bool) -> str:
    """The answer that a label, or below another line a retraction, gives in this line; empty if there is none."""
    said = labelled(line)
    if said is None and not first:
        said = retracted(line)
    return said if said is not None and _clean(_INLINE_SOURCES.sub("", said)) else ""


def _finished(draft: Draft) -> Draft:
    answer = _clean(draft.answer)
    if not re.search(r"\w", answer):
        raise Unparsable("the answer is empty")
    if len(answer) > MAX_ANSWER_CHARS:
        raise Unparsable(f"the answer holds {len(answer)} characters; at most {MAX_ANSWER_CHARS} are read")
    return Draft(answer, draft.citations)


def _ids(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"doc-{int(number)}" for number in _ID.findall(text)))


def _clean(answer: str) -> str:
    """One line without bracketed ids, quotes, emphasis, and punctuation at the ends; a question mark stays."""
    bare = " ".join(re.sub(r"[`{}]", " ", _BRACKETED.sub(" ", answer)).split())
    return bare.strip(" \"'`*_.,;:“”‘’")
