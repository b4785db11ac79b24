"""Search by TF-IDF over a task's own texts: what `retrieve` is made of."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Corpus"]


class Corpus:
    """Passages fitted once, searched many times.

    Args:
        passages: n texts, at least one with a word that is no stop word.
    """

    def __init__(self, passages: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer  # loads for a second, so only when used

        self._vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
        self._matrix = self._vectorizer.fit_transform(passages)

    def similarity(self, query: str) -> list[float]:
        """The n cosines in [0, 1], rounded to 9 digits, so that no platform's last bit decides an order."""
        from sklearn.metrics.pairwise import linear_kernel

        cosines = linear_kernel(self._vectorizer.transform([query]), self._matrix)[0]
        return [round(float(value), 9) for value in cosines]

    def ranked(self, query: str) -> list[int]:
        """Indices of all passages, most similar first; ties in the order given."""
        similarity = self.similarity(query)
        return sorted(range(len(similarity)), key=lambda index: (-similarity[index], index))
