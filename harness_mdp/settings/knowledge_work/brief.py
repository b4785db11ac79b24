"""The draft of `knowledge_work`: a Markdown brief, brought into one form from whatever a model sends.

    ## Summary
    The overrun of Alder is above the limit of 10% [M2].
    ## Findings
    - spend of Alder: 12,340 [T1]
    ## Recommendation
    - Decision: freeze the project [M2]

The canonical form has no fence, emphasis, blank lines or other heading levels, one kind of bullet, and one id per
citation. It is what is stored, checked and scored; reading it again changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from harness_mdp.settings.prompts import Unparsable, fenced

__all__ = [
    "FINDINGS",
    "RECOMMENDATION",
    "SECTIONS",
    "SUMMARY",
    "Figure",
    "Unit",
    "figures",
    "located",
    "parse_brief",
    "units",
]

SUMMARY, FINDINGS, RECOMMENDATION = "Summary", "Findings", "Recommendation"
SECTIONS = (SUMMARY, FINDINGS, RECOMMENDATION)

_NAMES = r"(summary|findings?|recommendations?)"
_HASHED = re.compile(rf"^#{{1,6}}\s*(?:[^:]*\W)?{_NAMES}\b[^:]*(?::\s*(.*))?$", re.IGNORECASE)
_BARE = re.compile(
    rf"^(?:\d+[.)]\s*)?(?:(?:executive|short|key|main|final)\s+)?{_NAMES}\s*(?::\s*(.*))?$", re.IGNORECASE
)
_BULLET = re.compile(r"^(?:(?:[-+•–]|\d+[.)])\s+)+")
_CITATION = re.compile(r"\[([^\[\]]*)\]")
_ID = re.compile(r"\b([TM])[- ]?(\d{1,3})\b", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:sorry|as an ai|(?:i|we) (?:can(?:no|')t|am unable|won't|do(?: no|n')t have|would need|need more))\b",
    re.IGNORECASE,
)
_ARITHMETIC = " 0123456789.,%()+-−x×/÷"
_FIGURE = re.compile(
    r"(?<![\w.])(?<![A-Za-z]-)([-−–]?[$€£]?[-−–]?)(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:\s?(k|thousand|million)\b)?(?![\w])",
    re.IGNORECASE,
)
_SCALE = {"k": 1e3, "thousand": 1e3, "million": 1e6}
_PASSES = 8
"""Passes until a text is canonical; an ordinary reply takes two, the second to see that nothing changes."""
_SENTENCE = re.compile(r"(?<=[.!?\]])\s+(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in a text, with its sign."""

    value: float
    shown: str
    """As written, without currency and scale."""

    @property
    def decimals(self) -> int:
        """Digits after the point, as written."""
        return len(self.shown.partition(".")[2])


@dataclass(frozen=True, slots=True)
class Unit:
    """A bullet, or a sentence of a paragraph."""

    section: str
    """One of `SECTIONS`; empty where the brief has no headings."""
    text: str
    """Without citations."""
    figures: tuple[Figure, ...]
    citations: tuple[str, ...]
    """Ids, each once, in the order given."""
    words: frozenset[str]
    """Lower case."""


def parse_brief(reply: str) -> str:
    """The brief in a model's reply, in canonical form. What stands before the first section is dropped.

    Raises:
        Unparsable: there is no text under a section heading and, without headings, no figure; or a refusal.
    """
    inside = _canonical(fenced(reply))
    whole = _canonical(reply)
    lines = inside if _headings(inside) >= _headings(whole) else whole
    if not _headings(lines):
        text = "\n".join(lines)
        if not figures(_without_citations(text)) or _REFUSAL.search(text):
            raise Unparsable("the reply holds no section of a brief and no figure")
        return text
    first = next(i for i, line in enumerate(lines) if _is_heading(line))
    if not any(re.search(r"\w", line) for line in lines[first:] if not _is_heading(line)):
        raise Unparsable("the reply holds headings without text")
    return "\n".join(lines[first:])


@lru_cache(maxsize=4096)  # the same draft is read by check, claims and rubric
def units(artifact: str) -> tuple[Unit, ...]:
    """Bullets and sentences of a canonical brief."""
    found: list[Unit] = []
    section = ""
    for line in artifact.splitlines():
        if _is_heading(line):
            section = line.removeprefix("## ")
            continue
        pieces = [line[2:]] if line.startswith("- ") else _SENTENCE.split(line)
        found.extend(_unit(section, piece) for piece in pieces if piece.strip())
    return tuple(found)


@lru_cache(maxsize=4096)
def figures(text: str) -> tuple[Figure, ...]:
    """Numbers of a text in order: 1,234.0 and $1234 and 1.234k are one value; of `2 + 3 = 5` only the 5 counts."""
    return tuple(figure for _, _, figure in located(text)[1])


def located(text: str) -> tuple[str, list[tuple[int, int, Figure]]]:
    """The text as it is read for numbers, and those with start and end in it."""
    plain = _results(text.replace("\u00a0", " ").replace("\u202f", ",").replace("’", ","))
    return plain, [(match.start(), match.end(), _figure(match)) for match in _FIGURE.finditer(plain)]


def _figure(match: re.Match[str]) -> Figure:
    sign = "-" if re.search("[-−–]", match[1]) else ""
    return Figure(float(sign + match[2].replace(",", "")) * _SCALE.get((match[3] or "").lower(), 1.0), sign + match[2])


def _results(text: str) -> str:
    """The text without the working before each equals sign."""
    *working, last = text.split("=")
    return "=".join([*(piece.rstrip(_ARITHMETIC) for piece in working), last])


def _unit(section: str, piece: str) -> Unit:
    cited = [
        f"{kind.upper()}{int(number)}" for group in _CITATION.findall(piece) for kind, number in _ID.findall(group)
    ]
    text = _without_citations(piece)
    words = frozenset(re.findall(r"[a-z][a-z_'-]*", text.lower()))
    return Unit(section, text, figures(_ID.sub(" ", text)), tuple(dict.fromkeys(cited)), words)


def _without_citations(text: str) -> str:
    return " ".join(_CITATION.sub(lambda m: " " if _ID.search(m[1]) else m[0], text).split())


def _canonical(reply: str) -> list[str]:
    """Lines in canonical form; headings as `## Name`. What one pass uncovers (a heading in a bullet) the next reads."""
    lines = reply.replace("【", "[").replace("】", "]").splitlines()
    for _ in range(_PASSES):
        again = _pass(lines)
        if again == lines:
            break
        lines = again
    return lines


def _pass(raw_lines: list[str]) -> list[str]:
    lines: list[str] = []
    for raw in raw_lines:
        stripped = re.sub(r"^\s*\*\s+", "- ", raw)
        line = re.sub(r"(?<=\d)\s\*\s(?=\d)", " x ", stripped)
        line = re.sub(r"__+", "", re.sub(r"[*`]|={3,}", "", line))
        line = " ".join(_CITATION.sub(_split_citation, line).split())
        heading = _HASHED.match(line) or _BARE.match(line)
        if heading:
            lines.append(f"## {_section_name(heading[1])}")
            line = (heading[2] or "").strip()
        bullet = _BULLET.match(line + " ")
        bare = _BULLET.sub("", line + " ").lstrip("#").strip()
        if re.search(r"\w", bare):
            lines.append(f"- {bare}" if bullet else bare)
    return lines


def _split_citation(match: re.Match[str]) -> str:
    """`[t1, M02]` as `[T1] [M2]`; brackets that name no source stay."""
    ids = [f"[{kind.upper()}{int(number)}]" for kind, number in _ID.findall(match[1])]
    return " ".join(ids) if ids else match[0]


def _section_name(word: str) -> str:
    return next(name for name in SECTIONS if word[:5].lower() == name[:5].lower())


def _is_heading(line: str) -> bool:
    return line.startswith("## ") and line.removeprefix("## ") in SECTIONS


def _headings(lines: list[str]) -> int:
    return sum(map(_is_heading, lines))
