"""The sealed rubric of `research`: is the answer right, are its sources cited, does what is cited hold the answer?

Weights, of 5: `answer` 3, since it is what was asked for; `sources_found` 0.5, the share of the supporting documents
that is cited; `sources_precise` 1, the share of what is cited that is supporting; `supported` 0.5, the same share if
the answer stands in a cited document, else nothing, so that a heap of citations does not bring it along. So precision
counts more than completeness: citing the whole corpus is never better than citing one supporting document. A wrong
answer with perfect sources stays below 0.5, a right one without any source at 0.6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from harness_mdp.hashing import Json
from harness_mdp.settings.answers import says, says_only
from harness_mdp.settings.protocol import Criterion
from harness_mdp.settings.research.draft import Draft
from harness_mdp.settings.research.world import RELATIONS, TRADES

__all__ = ["grade"]

_WORDINGS: Final = tuple(
    part.strip()
    for relations in RELATIONS.values()
    for _, wordings in relations.values()
    for wording in wordings
    for part in re.split(r"\{\d\}", wording)
    if part.strip()
)
"""How documents state facts: an answer may be a sentence of theirs."""
_NEUTRAL: Final = (*_WORDINGS, *TRADES, *sorted({word for part in _WORDINGS for word in part.split()} - {"first"}))
_ID: Final = re.compile(r"\b(?:doc|hit)[-_ ]?\d+\b", re.IGNORECASE)


def grade(
    draft: Draft, question: str, documents: Sequence[Mapping[str, Json]], sealed: Mapping[str, object]
) -> tuple[Criterion, ...]:
    """The four criteria.

    Args:
        draft: what was submitted.
        question: the public question; its words may be repeated in an answer.
        documents: the public corpus; of each `id`, `title` and `text`.
        sealed: `answer`, `supporting` (document ids) and `rivals` (other values of the answer's kind).
    """
    answer, supporting, rivals = str(sealed["answer"]), _strings(sealed["supporting"]), _strings(sealed["rivals"])
    texts = {str(each["id"]): str(each["text"]) for each in documents}
    titles = [str(each["title"]) for each in documents if each["id"] in supporting]
    sentences = [line for name in supporting for line in re.split(r"(?<=\.)\s+", texts.get(name, ""))]
    said = _ID.sub(" ", draft.answer)
    right = says_only(said, answer, question=question, rivals=rivals, phrases=(*_NEUTRAL, *titles, *sentences))
    cited = set(draft.citations)
    found = len(cited & set(supporting))
    precision = found / len(cited) if cited else 0.0
    span = answer if right else draft.answer
    held = any(says(texts.get(name, ""), span) for name in cited)
    return (
        Criterion("answer", float(right), 3.0),
        Criterion("sources_found", found / len(supporting), 0.5),
        Criterion("sources_precise", precision, 1.0),
        Criterion("supported", precision if held else 0.0, 0.5),
    )


def _strings(value: object) -> Sequence[str]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list of strings, found {value!r}")
    return [str(item) for item in value]
