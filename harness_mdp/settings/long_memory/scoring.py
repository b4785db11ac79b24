"""The sealed rubric of `long_memory`: for each question, is the answer right, and do session and date show it?

Weights a question: the answer 3, since it is what was asked for; the session 1.5, so that it can be looked up; the
date 0.5. A wrong answer with the right source stays at 0.4, a right one without any source at 0.6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from harness_mdp.hashing import Json
from harness_mdp.settings.long_memory.draft import Finding
from harness_mdp.settings.long_memory.reading import normalised, says, without_sources
from harness_mdp.settings.protocol import Criterion

__all__ = ["MAX_WORDS", "grade", "says_only"]

MAX_WORDS: Final = 16
"""A right answer may be put into a sentence; a longer text that happens to hold it is a copy of the evidence."""

_DENIAL: Final = frozenset(re.findall(r"\w+", "cannot either isn neither never no nor not or unknown wasn weren"))
_NUMBERS: Final = re.findall(r"\w+", "zero one two three four five six seven eight nine ten")
_NUMBER_WORDS: Final = {word: str(number) for number, word in enumerate(_NUMBERS)}


def grade(findings: Sequence[Finding], keys: Sequence[Json]) -> tuple[Criterion, ...]:
    """Three criteria a question; the answers are taken in the order of the questions, those too many do not count.

    Args:
        findings: what was submitted.
        keys: for each question `answer`, `sessions`, `dates` and `rivals`.
    """
    criteria: list[Criterion] = []
    for number, (finding, key) in enumerate(zip_longest(findings[: len(keys)], keys), start=1):
        finding = finding or Finding("")
        right = says_only(finding.answer, key["answer"], key["rivals"])
        criteria += (
            Criterion(f"answer_{number}", float(right), 3.0),
            Criterion(f"session_{number}", float(finding.session in key["sessions"]), 1.5),
            Criterion(f"date_{number}", float(finding.date in key["dates"]), 0.5),
        )
    return tuple(criteria)


def says_only(text: str, answer: str, rivals: Sequence[str]) -> bool:
    """Whether `text` gives `answer`, alone or in a short sentence, and neither a rival, another number, nor a denial.

    Case, articles, accents, punctuation and number format do not count (`normalised`); `three` is 3.
    """
    words = normalised(without_sources(text)).split()
    if answer.isdecimal():
        words = [_NUMBER_WORDS.get(word, word) for word in words]
    said = " ".join(words)
    if len(words) > MAX_WORDS or not says(said, answer) or _DENIAL & set(words):
        return False
    known = set(re.findall(r"\d+", answer))
    return known.issuperset(re.findall(r"\d+", said)) and not any(says(said, rival) for rival in rivals)
