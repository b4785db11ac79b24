"""Search over the sessions of a log: TF-IDF, fitted once per log and kept while the log is."""

from __future__ import annotations

from typing import Final

from harness_mdp.settings.long_memory.kept import Kept
from harness_mdp.settings.long_memory.sessions import LOGS, log_of
from harness_mdp.settings.similarity import Corpus
from harness_mdp.settings.tasks import Task

__all__ = ["rank"]

_FITTED: Final = Kept[Corpus](LOGS)


def rank(task: Task, query: str) -> list[int]:
    """Numbers of the sessions that share a word with `query`, most similar (cosine of TF-IDF) first."""
    corpus = _FITTED.get(task.hash, lambda: Corpus([session.text for session in log_of(task).sessions]))
    similarity = corpus.similarity(query)
    found = [at for at, value in enumerate(similarity) if value > 0]
    return [at + 1 for at in sorted(found, key=lambda at: (-similarity[at], -at))]  # ties: the newer session
