"""Search over the sessions of a log: TF-IDF, fitted once per log and kept while the log is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness_mdp.settings.long_memory.kept import Kept
from harness_mdp.settings.long_memory.sessions import LOGS, Log, log_of
from harness_mdp.settings.tasks import Task

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

__all__ = ["rank"]


@dataclass(frozen=True, eq=False)
class _Fitted:
    vectorizer: TfidfVectorizer
    matrix: csr_matrix
    """(sessions, words)"""


_FITTED: Final = Kept[_Fitted](LOGS)


def rank(task: Task, query: str) -> list[int]:
    """Numbers of the sessions that share a word with `query`, most similar (cosine of TF-IDF) first."""
    fitted = _FITTED.get(task.hash, lambda: _fit(log_of(task)))
    product = (fitted.matrix @ fitted.vectorizer.transform([query]).T).toarray()[:, 0]
    similarity = [round(float(value), 9) for value in product]  # so that no platform's last bit decides
    found = [at for at, value in enumerate(similarity) if value > 0]
    return [at + 1 for at in sorted(found, key=lambda at: (-similarity[at], -at))]  # ties: the newer session


def _fit(log: Log) -> _Fitted:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer  # loads for a second, so only when used

    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    matrix = csr_matrix(vectorizer.fit_transform([session.text for session in log.sessions]))
    return _Fitted(vectorizer, matrix)
