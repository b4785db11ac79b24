"""The sealed rubric of `research`: is the answer right, are its sources cited, does what is cited hold the answer?

Weights: the answer counts 3 of 5, since it is what was asked for; finding every supporting document 1, citing no
other 0.5, and an answer that really stands in what is cited 0.5. A wrong answer with perfect sources stays below 0.5,
a right one without any source at 0.6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness_mdp.settings.protocol import Criterion
from harness_mdp.settings.research.draft import Draft, normalised, says

__all__ = ["MAX_WORDS", "grade", "says_only"]

MAX_WORDS = 20
"""A right answer may be put into a sentence; a longer text that happens to hold it is a copy of the evidence."""

_DENIAL = frozenset(
    ("cannot", "either", "isn", "neither", "never", "no", "nor", "not", "or", "unknown", "wasn", "weren")
)


def grade(draft: Draft, question: str, texts: Mapping[str, str], sealed: Mapping[str, object]) -> tuple[Criterion, ...]:
    """The four criteria.

    Args:
        draft: what was submitted.
        question: the public question; numbers in it may be repeated in an answer.
        texts: public text by document id.
        sealed: `answer`, `supporting` (document ids) and `rivals` (other values of the answer's kind).
    """
    answer, supporting, rivals = str(sealed["answer"]), _strings(sealed["supporting"]), _strings(sealed["rivals"])
    right = says_only(draft.answer, answer, rivals, question)
    cited = set(draft.citations)
    found = cited & set(supporting)
    span = answer if right else draft.answer
    held = any(says(texts.get(name, ""), span) for name in cited)
    return (
        Criterion("answer", float(right), 3.0),
        Criterion("sources_found", len(found) / len(supporting), 1.0),
        Criterion("sources_precise", len(found) / len(cited) if cited else 0.0, 0.5),
        Criterion("supported", float(held), 0.5),
    )


def says_only(text: str, answer: str, rivals: Sequence[str], question: str) -> bool:
    """Whether `text` gives `answer`, alone or in a short sentence, and neither a rival, another number, nor a denial.

    Case, articles, accents and punctuation do not count (`normalised`).
    """
    words = normalised(text).split()
    if len(words) > MAX_WORDS or not says(text, answer) or _DENIAL & (set(words) - set(normalised(question).split())):
        return False
    known = set(re.findall(r"\d+", f"{answer} {question}"))
    return known.issuperset(re.findall(r"\d+", text)) and not any(says(text, rival) for rival in rivals)


def _strings(value: object) -> Sequence[str]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list of strings, found {value!r}")
    return [str(item) for item in value]
