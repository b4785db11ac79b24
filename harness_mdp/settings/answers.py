"""What settings that ask for a short answer share: which line of a reply is the answer, and whether it says only that.

Two rules, the same wherever this module is used:

* The last labelled answer counts (`Answer: ...`, `... the answer is ...`, or a line that takes an earlier one back),
  since chat models think aloud and correct themselves; without a label the first line does, since they explain after.
* A reply gives an answer if it holds the answer, and nothing besides but words that cannot change what is said:
  a short list of neutral ones, and the words of the question. There is no list of what is forbidden: a denial, a
  doubt, a past or a second answer needs a word that is on no list.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

__all__ = ["MAX_WORDS", "is_refusal", "labelled", "normalised", "retracted", "says", "says_only"]

MAX_WORDS: Final = 20
"""A right answer may be put into a sentence; a longer text that happens to hold it is a copy of the evidence."""

_ARTICLES: Final = frozenset(("a", "an", "the", "at"))
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NO_CENTS: Final = re.compile(r"(?<=\d)\.0+(?!\d)")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEUTRAL: Final = _words(
    "according answer answers as author book bridge by called captain city company designer document eur euro euros "
    "final found founder has i in is it its mayor name named number of on person port question river s session "
    "sessions ship since source that thing this time times to town was were which who year"
)
_ORDER: Final = _words("after before change current earlier first last later latest now previous")
"""Words that turn an answer round if they stand alone: allowed where the reply repeats all that the question has."""
_OPEN: Final = _words("all any both either how many more most no none not or other some")
"""Words of a question that leave the answer open."""
_NUMBERS: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_GAP: Final = "|"
"""Stands where a phrase was; no word holds it."""
_DIGITS: Final = {word: str(number) for number, word in enumerate(_NUMBERS)}
_FOREIGN: Final = re.compile(r"[^\w\s.,;:'\"`´’‘“”()\[\]*/&$€\-\u2013\u2014]|(?<![\w-])[-\u2013\u2212]\d")
"""Signs that may turn an answer round (`?`, `~`, `<`, `!=`, a minus before a number), and others of unknown use."""
_NAME: Final = re.compile(r"[A-Z]\w*(?: [A-Z]\w*)+")

_MARKS: Final = r"[\s>=*_#|\"'(\[\-]*"
_TAKES_BACK: Final = (
    r"no|wait|correction|corrected|actually|sorry|scratch that|on second thoughts?|(?:i|that|this) was wrong"
    r"|my mistake|oops|rather|instead|edit|update|revised"
)
_LEADS: Final = (
    r"so|then|thus|hence|therefore|ok|okay|sure|yes|well|here(?: it)? is|here's"
    r"|based on (?:this|that|the (?:evidence|documents?|sessions?))"
)
_NAMED: Final = (
    r"(?:(?:the|my) )?(?:(?:final|correct|right|real|corrected|new|actual) )*answers?\b[ \d]*+[*_\s]*+"
    r"(?:[:=]|(?:is|was|should be|must be)\b:?)"
)
_LABEL: Final = re.compile(rf"^{_MARKS}(?:(?:{_TAKES_BACK}|{_LEADS})\b[\W_]*+)*+(?:{_NAMED}|a:)[*_\s]*", re.IGNORECASE)
_INNER_LABEL: Final = re.compile(rf"(?<=[.:;,!?]) +{_NAMED}", re.IGNORECASE)
_RETRACTION: Final = re.compile(rf"^{_MARKS}(?:{_TAKES_BACK})\b(?:[*_]*[,:.!;\u2013\u2014-]+[\s*_]*)?", re.IGNORECASE)
_REFUSAL: Final = re.compile(
    r"\b(?:sorry|as an ai|(?:i|we) (?:can(?:no|')t|am unable|do(?: no|n')t (?:know|have)|would need|need more)"
    r"|(?:not|no|insufficient) (?:enough )?information)\b",
    re.IGNORECASE,
)


def labelled(line: str) -> str | None:
    """What follows the label of an answer in `line`; None where there is no label.

    All of the line, if something else than a mere lead (`So the answer is`) stands before the label: it may turn the
    answer round, as in `It is wrong to say: the answer is`.
    """
    mark = _LABEL.match(line)
    if mark is not None:
        return line[mark.end() :]
    return line if _INNER_LABEL.search(line) else None


def retracted(line: str) -> str | None:
    """What a line that takes back an answer above it says instead; None where it is no such line.

    All of the line, if no sign parts the two: `No, Halstead` names an answer, `No Halstead` does not.
    """
    mark = _RETRACTION.match(line)
    if mark is None:
        return None
    return line[mark.end() :] if not mark[0][-1:].isalpha() else line


def is_refusal(answer: str) -> bool:
    """Whether `answer` declines to give one."""
    return _REFUSAL.search(answer) is not None


@lru_cache(maxsize=8192)  # evidence is compared again at every step
def normalised(text: str) -> str:
    """Lower case, no accents, articles or punctuation, 1,234.0 as 1234, words joined by one space."""
    plain = unicodedata.normalize("NFKD", _NO_CENTS.sub("", _THOUSANDS.sub("", text)).casefold())
    words = re.findall(r"\w+", "".join(c for c in plain if not unicodedata.combining(c)))
    return " ".join(word for word in words if word not in _ARTICLES)


def says(text: str, phrase: str) -> bool:
    """Whether the normalised `phrase` stands in the normalised `text` as whole words."""
    wanted = normalised(phrase)
    return bool(wanted) and f" {wanted} " in f" {normalised(text)} "


def says_only(text: str, answer: str, *, question: str, rivals: Iterable[str], phrases: Iterable[str] = ()) -> bool:
    """Whether `text` gives `answer`, alone or in a short sentence of neutral words and words of the question.

    Case, articles, accents, punctuation and number format do not count (`normalised`); `three` is 3 where a number is
    asked for. Words of order in the question (`first`, `before the last change`) count only together, and words of a
    rival never do: `Which was last, A or B?` is not answered by `A B`.

    Args:
        text: one answer, without its sources.
        answer: the right one.
        question: what was asked; it may be repeated before the answer.
        rivals: wrong answers of the same kind.
        phrases: further texts that may stand around an answer, as in `was built by`; each only as a whole, or as what
            stands before or after the answer in it.
    """
    bare = text.replace(question, " ") if question else text
    if _FOREIGN.search(unicodedata.normalize("NFKC", bare.lstrip(" =>").rstrip(" .!"))):
        return False
    said = normalised(bare)
    if answer.isdecimal():
        said = " ".join(_DIGITS.get(word, word) for word in said.split())
    wanted, others = normalised(answer), [normalised(rival) for rival in rivals]
    rest = _without(said, wanted)
    if rest == said or len(said.split()) > MAX_WORDS or any(_without(said, rival) != said for rival in others):
        return False
    order = _ORDER.intersection(re.findall(r"[a-z]+", question))  # not `Last` of a name
    around = (piece.strip() for phrase in phrases for piece in _without(normalised(phrase), wanted).split(_GAP))
    kept = (piece for piece in around if not (order and _ORDER & set(piece.split())))
    for phrase in sorted([*map(normalised, _NAME.findall(question)), *kept], key=len, reverse=True):
        rest = _without(rest, phrase)
    left = set(rest.split()) - {_GAP}
    options = {word for name in (wanted, *others) for word in name.split()}
    asked = set(normalised(question).split()) - _ORDER - _OPEN - options
    return left <= (_NEUTRAL | asked | order) and (not left & order or order <= left)


def _without(text: str, phrase: str) -> str:
    """`text` with a gap for each place where `phrase` stands as whole words; both normalised."""
    return re.sub(rf"(?<!\S){re.escape(phrase)}(?!\S)", _GAP, text) if phrase else text
