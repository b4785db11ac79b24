"""The sealed rubric of `long_memory`: for each question, is the answer right, and do session and date show it?

Weights a question: the answer 3, since it is what was asked for; the session 1.5, so that it can be looked up; the
date 0.5. A wrong answer with the right source stays at 0.4, a right one without any source at 0.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from harness_mdp.hashing import Json
from harness_mdp.settings.answers import says_only
from harness_mdp.settings.long_memory.draft import Finding, counted
from harness_mdp.settings.long_memory.reading import without_sources
from harness_mdp.settings.protocol import Criterion

__all__ = ["grade"]


def grade(findings: Sequence[Finding], keys: Sequence[Json], questions: Sequence[str]) -> tuple[Criterion, ...]:
    """Three criteria a question; the answers are taken in the order of the questions, the last ones of too many.

    Args:
        findings: what was submitted.
        keys: for each question `answer`, `sessions`, `dates` and `rivals`.
        questions: their public texts, whose words may be repeated in an answer.
    """
    criteria: list[Criterion] = []
    answers = counted(findings, len(keys))
    for number, (finding, key, question) in enumerate(zip_longest(answers, keys, questions), start=1):
        finding = finding or Finding("")
        said = without_sources(finding.answer)
        right = says_only(said, key["answer"], question=without_sources(question), rivals=key["rivals"])
        criteria += (
            Criterion(f"answer_{number}", float(right), 3.0),
            Criterion(f"session_{number}", float(finding.session in key["sessions"]), 1.5),
            Criterion(f"date_{number}", float(finding.date in key["dates"]), 0.5),
        )
    return tuple(criteria)
