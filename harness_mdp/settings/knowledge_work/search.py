"""Search in a task's own sources by TF-IDF."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["rank"]


@lru_cache(maxsize=256)  # a little more than the tasks of a setting; every `retrieve` of a task asks the same
def rank(query: str, passages: tuple[str, ...]) -> tuple[int, ...]:
    """Indices of all passages, most similar to `query` (cosine of TF-IDF) first; ties in the order given."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # loads for a second, so only when used
    from sklearn.metrics.pairwise import linear_kernel

    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    matrix = vectorizer.fit_transform(passages)
    similarity = linear_kernel(vectorizer.transform([query]), matrix)[0]
    return tuple(sorted(range(len(passages)), key=lambda i: (-round(float(similarity[i]), 9), i)))
