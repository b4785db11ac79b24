"""What is asked: seven kinds of question, each about facts as of a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness_mdp.hashing import Json
from harness_mdp.settings.long_memory.words import genitive

__all__ = ["Kind", "Query", "full_question"]


class Kind(StrEnum):
    """The templates of the setting."""

    CURRENT = "current"
    """The newest value wins."""
    PREVIOUS = "previous"
    """The value before the newest one."""
    AS_OF = "as_of"
    """The newest value on a day of the past."""
    COUNT = "count"
    """In how many sessions something was said; the source is the last of them."""
    CHAIN = "chain"
    """Two facts: who has a role now, and that person's newest value."""
    LATEST_CHANGE = "latest_change"
    """Which of several things changed last."""
    WHOSE = "whose"
    """Which of several people has a value now."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question, taken apart as a harness would: public, without the answer."""

    kind: Kind
    owner: str = ""
    """`I` or a name; empty for `chain` (not known before) and `whose` (the answer)."""
    thing: str = ""
    """Thing or activity; empty for `latest_change`."""
    day: str = ""
    """ISO date for `as_of`."""
    role: str = ""
    """For `chain`."""
    value: str = ""
    """For `whose`."""
    options: tuple[str, ...] = ()
    """Things for `latest_change`, people for `whose`."""

    @property
    def text(self) -> str:
        """The question in words."""
        match self.kind:
            case Kind.CURRENT:
                return f"What is {genitive(self.owner)} {self.thing} now?"
            case Kind.PREVIOUS:
                return f"What was {genitive(self.owner)} {self.thing} before the last change?"
            case Kind.AS_OF:
                return f"What was {genitive(self.owner)} {self.thing} on {self.day}?"
            case Kind.COUNT:
                return f"In how many sessions did I say that I {self.thing}? Name the last of them."
            case Kind.CHAIN:
                return f"What is the {self.thing} of my {self.role} now?"
            case Kind.LATEST_CHANGE:
                return f"Which changed last, {_either([f'{genitive(self.owner)} {name}' for name in self.options])}?"
            case Kind.WHOSE:
                return f"Whose {self.thing} is {self.value} now, {_either([genitive(n) for n in self.options])}?"

    @property
    def wanted(self) -> str:
        """What the answer is, in one or two words, e.g. `phone plan`."""
        match self.kind:
            case Kind.COUNT:
                return "number"
            case Kind.LATEST_CHANGE:
                return "thing"
            case Kind.WHOSE:
                return "name"
            case _:
                return self.thing

    def public(self) -> dict[str, Json]:
        """JSON for the public part of a task; what is empty is left out."""
        fields: dict[str, Json] = {
            "kind": self.kind.value,
            "owner": self.owner,
            "thing": self.thing,
            "day": self.day,
            "role": self.role,
            "value": self.value,
            "options": list(self.options),
        }
        return {name: value for name, value in fields.items() if value}

    @classmethod
    def read(cls, value: Json) -> Query:
        """The inverse of `public`."""
        fields: dict[str, Json] = dict(value)
        kind, options = Kind(fields.pop("kind")), tuple(fields.pop("options", ()))
        return cls(kind, options=options, **fields)


def full_question(queries: Sequence[Query]) -> str:
    """One question, or several with their numbers."""
    if len(queries) == 1:
        return queries[0].text
    return " ".join(f"{number}) {query.text}" for number, query in enumerate(queries, start=1))


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
