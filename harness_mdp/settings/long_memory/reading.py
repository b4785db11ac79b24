"""What can be read in the text of a session without knowing how it was made: statements, words, spans."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from harness_mdp.settings.long_memory.words import ACTIVITIES, ME, ROLES, THINGS

__all__ = ["Statement", "content_words", "passages", "statements", "without_sources"]


@dataclass(frozen=True, slots=True)
class Statement:
    """Somebody's thing has a value, or somebody did something (then `value` is empty)."""

    owner: str
    """`I` or a name."""
    thing: str
    value: str = ""


_THING: Final = "|".join(map(re.escape, (*THINGS, *ROLES)))
_STATED: Final = re.compile(
    rf"\b([Mm]y|[A-Z]\w+(?='s))(?:'s)? ({_THING}) is (?:now )?([^.!?]+?)(?: now| from today)?\.(?=\s|$)"
)
_DID: Final = re.compile(rf"\b(?:Today|This morning) (I|[A-Z]\w+) ({'|'.join(ACTIVITIES)})\b")
_WORD: Final = re.compile(r"[a-z0-9]+")
_GLUE: Final = frozenset(
    _WORD.findall(
        "a an and are as at before by change changed did do does for had has have how i in is it last many me my now "
        "name of on or s said say session sessions tell that the them to was were what when which who whose with you"
    )
)


@lru_cache(maxsize=8192)  # evidence is read again at every step
def statements(text: str) -> tuple[Statement, ...]:
    """Facts and deeds that `text` states, in its order of each kind; what is only wondered about is none."""
    facts = [Statement(ME if m[1].lower() == "my" else m[1], m[2], m[3]) for m in _STATED.finditer(text)]
    deeds = [Statement(m[1], m[2]) for m in _DID.finditer(text)]
    return (*facts, *deeds)


def content_words(question: str) -> frozenset[str]:
    """Words of a question that say what it is about."""
    return frozenset(_WORD.findall(question.lower())) - _GLUE


def passages(turns: Sequence[str], wanted: Collection[str], *, most: int) -> list[int]:
    """Indices of the turns with most of the `wanted` words, best first, ties in order; at least three turns apart."""
    shared = [len(set(_WORD.findall(turn.lower())) & set(wanted)) for turn in turns]
    chosen: list[int] = []
    for at in sorted(range(len(turns)), key=lambda i: (-shared[i], i)):
        if not shared[at] or len(chosen) == most:
            break
        if all(abs(at - other) >= 3 for other in chosen):
            chosen.append(at)
    return chosen


def without_sources(text: str) -> str:
    """`text` without ISO dates and session ids, whose figures would count as numbers."""
    return re.sub(r"\b\d{4}-\d\d-\d\d\b|\b(?:S|session )\d+\b", " ", text)
