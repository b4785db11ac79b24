"""Which number a bullet or sentence gives for a figure: the one next to its name, and only in plain words.

A text is read in pieces, cut at commas, brackets and `and`. A piece with the name of a figure gives it the numbers that
follow, up to the next name; without one that follows, the number just before (`2 late deliveries`). A piece without a
name goes on with the last one. Numbers after a word such as `limit` or `above` are what a figure is held against.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from harness_mdp.hashing import Json
from harness_mdp.settings.knowledge_work.brief import Figure, Unit, located

__all__ = ["ABOVE", "LIMIT", "WITHIN", "Reading", "label_pattern", "readings", "word_pattern"]

LIMIT = r"\b(?:limits?|thresholds?|maximum|cap|ceiling|allowance|allowed)\b"
WITHIN = r"\b(?:within|below|under|less than|lower than|at most)\b"
ABOVE = r"\b(?:above|exceed\w*|over|more than|higher than|greater than|beyond|breach\w*|outside)\b"

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "mean": ("average",),
    "share": ("percentage", "proportion", "rate"),
    "spend": ("spent", "expenditure"),
    "load": ("workload", "utili"),
    "use": ("usage", "utili"),
    "gap": ("difference",),
    "outage": ("downtime",),
    "entries": ("entry",),
    "deliveries": ("delivery",),
}
_PLAIN = frozenset(
    re.findall(
        r"\w+",
        """a about according all also amount amounted amounts and are as at averages based been budget by came capacity
    come comes computed count counted currently equal equals eur euro euros figure finding for from had has
    hours in is it item its key ledger lies list log minutes new now number of on our own per percent points
    product project records region reported result service shows sits source stand stands stock sum t table
    target team that the their there therefore this thus to total totals units usd value vendor was we were with
    work year""",
    )
)
"""Words that may stand around a figure without changing what is said of it."""
_FILLER = r"(?:of|the|in|for|all|that|are|is|were|own)"
_HARD = frozenset((";", ".", "and", "while", "whereas", "but", "which"))
_SOFT = frozenset((",", "(", ")", "|", "or"))
_TOKEN = re.compile(
    r"\x02\d+\x02|\x03\d+\x03|\x04|[a-z][a-z'-]*|[;,()|]|\.(?=\s)|[:=]\s*[-−–](?=\s*\x02)", re.IGNORECASE
)
_HELD_AGAINST = re.compile(f"{LIMIT}|{WITHIN}|{ABOVE}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """A number that a text gives for a figure."""

    label: str
    figure: Figure
    plain: bool
    """Nothing but plain words stands with it, so that it is stated and not denied, guessed or of something else."""


def word_pattern(word: str) -> str:
    """A regular expression for a word of a label, its synonyms and their endings; lower case."""
    stems = [re.sub(r"s$", "", word), *_SYNONYMS.get(word, ())]
    return rf"\b(?:{'|'.join(map(re.escape, stems))})[a-z]*"


@lru_cache(maxsize=256)
def label_pattern(label: str, filler: str = _FILLER) -> re.Pattern[str]:
    """A label in a text: its words in either order, with little words between."""
    words = [word_pattern(word) for word in label.lower().split()]
    between = rf"\s+(?:{filler}\s+)*"
    return re.compile(f"{between.join(words)}|{between.join(reversed(words))}", re.IGNORECASE)


def readings(unit: Unit, labels: Sequence[str], public: Mapping[str, Json]) -> list[Reading]:
    """All that a unit says of the figures called `labels`, in order."""
    text, found = _marked(unit.text, labels)
    own = {word for label in labels for word in label.lower().split()}
    plain = _PLAIN | own | set(re.findall(r"[a-z]+", str(public["subject"]).lower())) | {"s"}
    said: list[Reading] = []
    last: str | None = None
    clear = True
    for piece, hard in _pieces(text):
        words = [token for token in piece if token[0] not in "\x02\x03\x04"]
        clear = clear and all(word.removesuffix("'s") in plain for word in words)
        given, last = _given(piece, labels, found, last)
        said.extend(Reading(label, figure, clear) for label, figure in given)
        if hard:
            # A number after `and` may be a second one for the same name, and is never the first.
            clear = True
            last = last if any(reading.label == last for reading in said) else None
        elif given:
            clear = True
    return said


def _marked(text: str, labels: Sequence[str]) -> tuple[str, Sequence[Figure]]:
    """The text with marks for numbers (2), names of figures (3) and words for a limit (4), and the numbers."""
    plain, spans = located(text)
    for place, (start, end, _) in reversed(list(enumerate(spans))):
        plain = f"{plain[:start]} \x02{place}\x02 {plain[end:]}"
    filler = "|".join([_FILLER, *(word_pattern(word) for label in labels for word in label.lower().split())])
    matches = [(m, i) for i, label in enumerate(labels) for m in label_pattern(label, filler).finditer(plain)]
    kept: list[tuple[int, int, int]] = []
    for match, place in sorted(matches, key=lambda found: (found[0].start(), -found[0].end())):
        if not kept or match.start() >= kept[-1][1]:
            kept.append((match.start(), match.end(), place))
    for start, end, place in reversed(kept):
        plain = f"{plain[:start]} \x03{place}\x03 {plain[end:]}"
    return _HELD_AGAINST.sub(" \x04 ", plain), [figure for _, _, figure in spans]


def _pieces(text: str) -> Iterator[tuple[list[str], bool]]:
    """Tokens between stops, and whether a hard stop ends them."""
    piece: list[str] = []
    for token in _TOKEN.findall(text.lower()):
        if token in _HARD or token in _SOFT:
            yield piece, token in _HARD
            piece = []
        else:
            piece.append(token)
    yield piece, True


def _given(
    piece: Sequence[str], labels: Sequence[str], figures: Sequence[Figure], last: str | None
) -> tuple[list[tuple[str, Figure]], str | None]:
    """The numbers of one piece with the name that each belongs to, and the last name."""
    named = [token for token in piece if token[0] == "\x03"]
    given: list[tuple[str, Figure]] = []
    before: list[Figure] = []
    current = None if named else last
    against = met = False
    for token in piece:
        if token[0] == "\x04":
            against, met = True, False
        elif token[0] == "\x03" and not (against and not met):  # `the limit for the overrun is` names a limit
            against, current = False, labels[int(token.strip("\x03"))]
        elif token[0] == "\x02":
            figure, met = figures[int(token.strip("\x02"))], True
            if not against and current is not None:
                given.append((current, figure))
            elif not against:
                before.append(figure)
    if len(named) == 1 and current is not None and not given:
        given = [(current, figure) for figure in before]
    return given, current if named else last
