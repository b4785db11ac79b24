"""Search in a task's own corpus: TF-IDF, and the names of documents that a text mentions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from harness_mdp.settings.answers import says
from harness_mdp.settings.similarity import Corpus

__all__ = ["mentioned", "rank"]

_CORPORA = 256
"""Fitted corpora kept: a little more than the tasks of a setting, some hundred kB each."""


@lru_cache(maxsize=_CORPORA)
def _fit(passages: tuple[str, ...]) -> Corpus:
    return Corpus(passages)


def rank(query: str, passages: Sequence[str]) -> list[tuple[int, float]]:
    """(index, cosine of TF-IDF with `query`) of all passages, most similar first; ties in corpus order."""
    similarity = _fit(tuple(passages)).similarity(query)
    return sorted(enumerate(similarity), key=lambda item: (-item[1], item[0]))


def mentioned(titles: Sequence[str], text: str) -> list[str]:
    """Those of `titles` that `text` names, in the order of `titles`."""
    return [title for title in titles if says(text, title)]
