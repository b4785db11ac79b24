"""Search in a task's own sources by TF-IDF."""

from __future__ import annotations

from functools import lru_cache

from harness_mdp.settings.similarity import Corpus

__all__ = ["rank"]


@lru_cache(maxsize=256)  # a little more than the tasks of a setting; every `retrieve` of a task asks the same
def rank(query: str, passages: tuple[str, ...]) -> tuple[int, ...]:
    """Indices of all passages, most similar to `query` (cosine of TF-IDF) first; ties in the order given."""
    return tuple(Corpus(passages).ranked(query))
