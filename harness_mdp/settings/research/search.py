"""Search in a task's own corpus: TF-IDF, and the names of documents that a text mentions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from harness_mdp.settings.research.draft import says

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

__all__ = ["mentioned", "rank"]

_CORPORA = 256
"""Fitted corpora kept: a little more than the tasks of a setting, some hundred kB each."""


@lru_cache(maxsize=_CORPORA)
def _fit(passages: tuple[str, ...]) -> tuple[TfidfVectorizer, csr_matrix]:
    from sklearn.feature_extraction.text import TfidfVectorizer  # loads for a second, so only when used

    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    return vectorizer, vectorizer.fit_transform(passages)


def rank(query: str, passages: Sequence[str]) -> list[int]:
    """Indices of all passages, most similar to `query` (cosine of TF-IDF) first; ties in corpus order."""
    from sklearn.metrics.pairwise import linear_kernel

    vectorizer, matrix = _fit(tuple(passages))
    similarity = linear_kernel(vectorizer.transform([query]), matrix)[0]
    return sorted(range(len(passages)), key=lambda i: (-round(float(similarity[i]), 9), i))


def mentioned(titles: Sequence[str], text: str) -> list[str]:
    """Those of `titles` that `text` names, in the order of `titles`."""
    return [title for title in titles if says(text, title)]
