"""The sealed rubric of `multi_tool`, and when two values are the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from harness_mdp.hashing import Json
from harness_mdp.settings.multi_tool.draft import Draft
from harness_mdp.settings.multi_tool.numbers import close
from harness_mdp.settings.protocol import Criterion

__all__ = ["grade", "says"]


def grade(draft: Draft | None, sealed: Mapping[str, Json]) -> tuple[Criterion, ...]:
    """`answer` (weight 3), `steps` (1.5) and `results_used` (0.5).

    Args:
        draft: what was submitted; None scores nothing.
        sealed: `answer`, `steps` (values by name), `required` (values of the tool calls that the task needs). A
            required result counts as used where its value stands in the draft, under whatever name.
    """
    steps: Mapping[str, Json] = sealed["steps"]
    required: list[Json] = sealed["required"]
    said = {} if draft is None else draft.values
    right = sum(name in said and says(said[name], value) for name, value in steps.items())
    used = sum(any(says(value, result) for value in said.values()) for result in required)
    return (
        Criterion("answer", float(draft is not None and says(draft.answer, sealed["answer"])), 3.0),
        Criterion("steps", right / len(steps), 1.5),
        Criterion("results_used", used / len(required), 0.5),
    )


def says(value: Fraction | str, reference: Json) -> bool:
    """Numbers within tolerance (`numbers.close`), texts without regard to case and spaces."""
    if isinstance(value, Fraction) and isinstance(reference, int | float):
        return close(value, Fraction(str(reference)))
    if isinstance(value, Fraction) or not isinstance(reference, str):
        return False
    return _folded(value) == _folded(reference)


def _folded(text: str) -> str:
    words: Iterable[str] = text.casefold().split()
    return " ".join(words)
