"""A correct answer with the places where a model goes wrong: what the simulated executor writes from.

A `SlottedText` is literal text with slots; each slot holds the correct piece and concrete wrong ones. The
simulated executor renders it with some slots wrong, and reads its own text back to know which are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

__all__ = ["Slot", "SlottedText"]


@dataclass(frozen=True)
class Slot:
    """One place where a fault can be."""

    correct: str
    wrong: tuple[str, ...]
    """At least one; each differs from `correct` and lowers the rubric score."""
    problem: str
    """How a reviewer would name a fault here, e.g. `the upper bound of the range may be off by one`."""
    helped_by: tuple[str, ...] = ()
    """Evidence ids that make a fault here less likely; empty: any evidence helps."""

    def __post_init__(self) -> None:
        if not self.wrong or self.correct in self.wrong:
            raise ValueError(f"slot {self.correct!r} needs wrong pieces that differ from it, has {self.wrong}")

    @property
    def options(self) -> tuple[str, ...]:
        """Correct piece first."""
        return (self.correct, *self.wrong)


@dataclass(frozen=True)
class SlottedText:
    """Text with slots. `choices` is one index per slot into `Slot.options`; 0 is correct."""

    parts: Sequence[str | Slot]
    fence: str = ""
    """Info string of the code fence that a reply wraps the text in, e.g. `python`, `json`; empty: no fence."""
    slots: tuple[Slot, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots", tuple(part for part in self.parts if isinstance(part, Slot)))

    def render(self, choices: Sequence[int]) -> str:
        """The text with option `choices[i]` in slot i.

        Raises:
            ValueError: not one choice per slot.
        """
        if len(choices) != len(self.slots):
            raise ValueError(f"{len(choices)} choices for {len(self.slots)} slots")
        pieces = iter(zip(self.slots, choices, strict=True))
        out: list[str] = []
        for part in self.parts:
            if isinstance(part, Slot):
                slot, choice = next(pieces)
                out.append(slot.options[choice])
            else:
                out.append(part)
        return "".join(out)

    @property
    def reference(self) -> str:
        """The correct text."""
        return self.render([0] * len(self.slots))

    def reply(self, choices: Sequence[int]) -> str:
        """The text as a chat model would send it, in a code fence where there is one."""
        text = self.render(choices)
        return f"```{self.fence}\n{text}\n```" if self.fence else text

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces: list[str] = []
        for part in self.parts:
            if isinstance(part, Slot):
                # Longest first, so that an option which begins like another is read whole.
                options = sorted(part.options, key=len, reverse=True)
                pieces.append("(" + "|".join(re.escape(option) for option in options) + ")")
            else:
                pieces.append(re.escape(part))
        return re.compile(r"\s*" + "".join(pieces) + r"\s*", re.DOTALL)

    def read(self, text: str) -> list[int] | None:
        """The choices that render `text`, or None when the text was not made from this one."""
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        return [slot.options.index(piece) for slot, piece in zip(self.slots, match.groups(), strict=True)]
