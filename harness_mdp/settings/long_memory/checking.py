"""What a check can know when deployed: it reads the evidence at hand, and nothing of how the log was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness_mdp.settings.answers import normalised, says
from harness_mdp.settings.long_memory.draft import Finding
from harness_mdp.settings.long_memory.queries import Kind, Query
from harness_mdp.settings.long_memory.reading import Statement, statements
from harness_mdp.settings.long_memory.sessions import Log

__all__ = ["Heard", "heard", "held", "newest_problem"]


@dataclass(frozen=True, slots=True)
class Heard:
    """A statement with the session that it was read in."""

    number: int
    said: Statement

    @property
    def subject(self) -> tuple[str, str]:
        """Whose thing it is about."""
        return self.said.owner, self.said.thing


def heard(evidence: Mapping[str, str], *, opened: bool = False) -> list[Heard]:
    """Statements in hits and open sessions (in open ones only, if `opened`), each once, in order of time."""
    found: dict[Heard, None] = {}
    for name, text in evidence.items():
        number = _number(name, opened)
        if number:
            found.update((Heard(number, said), None) for said in statements(text))
    return sorted(found, key=lambda each: each.number)


def held(query: Query, finding: Finding, evidence: Mapping[str, str]) -> bool:
    """Whether open sessions show the answer.

    Its span stands in the session named, or a value stated there stands in the answer, if that is a sentence; a count
    needs as many open sessions that say so.
    """
    if query.kind is Kind.COUNT:
        numbers = _deeds(query, heard(evidence, opened=True))
        return finding.number in numbers and normalised(finding.answer) == str(len(numbers))
    text = evidence.get(finding.session, "") if finding.session else ""
    stated = (said.value for said in statements(text) if said.value and said.thing == query.thing)
    return says(text, finding.answer) or any(says(finding.answer, value) for value in stated)


def newest_problem(query: Query, finding: Finding, known: Sequence[Heard], log: Log) -> str:
    """What speaks against the answer as of the day asked about, in one line; empty if nothing at hand does."""
    match query.kind:
        case Kind.COUNT:
            return _more_than_counted(query, finding, known)
        case Kind.LATEST_CHANGE:
            return _changed_later(query, finding, known)
        case Kind.PREVIOUS:
            return _not_the_one_before(query, finding, known)
        case Kind.AS_OF:
            if log.date(finding.number) > query.day:
                return f"{finding.session} is later than {query.day}"
            return _replaced(finding, [h for h in known if log.date(h.number) <= query.day], (query.owner, query.thing))
        case Kind.CHAIN:
            return _holder_replaced(query, finding, known)
        case Kind.CURRENT:
            return _replaced(finding, known, (query.owner, query.thing))
        case Kind.WHOSE:
            owner = next((name for name in query.options if says(finding.answer, name)), "")
            return _replaced(Finding(query.value, finding.session), known, (owner, query.thing))


def _replaced(finding: Finding, known: Sequence[Heard], subject: tuple[str, str]) -> str:
    """A later session states another value for the same thing of the same person."""
    later = [h for h in known if h.subject == subject and h.number > finding.number]
    if later and not says(finding.answer, later[-1].said.value):
        return f"S{later[-1].number} is later and states another value"
    return ""


def _holder_replaced(query: Query, finding: Finding, known: Sequence[Heard]) -> str:
    """The session is about somebody who does not have the role any more, or a later value is known."""
    owner = next((h.said.owner for h in known if h.number == finding.number and h.said.thing == query.thing), "")
    roles = [h for h in known if h.said.thing == query.role]
    if owner and roles and roles[-1].said.value != owner:
        return f"S{roles[-1].number} names somebody else as {query.role}"
    return _replaced(finding, known, (owner, query.thing)) if owner else ""


def _not_the_one_before(query: Query, finding: Finding, known: Sequence[Heard]) -> str:
    history = [h for h in known if h.subject == (query.owner, query.thing)]
    if history and says(finding.answer, history[-1].said.value):
        return "no later value is known, but the question asks for the one before"
    between = [h for h in history[:-1] if h.number > finding.number]
    return f"S{between[-1].number} changed it in between" if between else ""


def _changed_later(query: Query, finding: Finding, known: Sequence[Heard]) -> str:
    later = [h for h in known if h.said.owner == query.owner and h.said.thing in query.options]
    last = later[-1] if later else None
    if last and last.number > finding.number and not says(finding.answer, last.said.thing):
        return f"S{last.number} is later and changes another of them"
    return ""


def _more_than_counted(query: Query, finding: Finding, known: Sequence[Heard]) -> str:
    numbers = _deeds(query, known)
    answer = normalised(finding.answer)
    if numbers and not (answer.isdecimal() and int(answer) >= len(numbers)):
        return f"{len(numbers)} sessions at hand say so, the answer is {finding.answer[:20]}"
    if numbers and max(numbers) > finding.number:
        return f"S{max(numbers)} is later and says so too"
    return ""


def _deeds(query: Query, known: Sequence[Heard]) -> set[int]:
    return {h.number for h in known if h.subject == (query.owner, query.thing)}


def _number(name: str, opened: bool) -> int:
    """Session number of an evidence id; 0 if it is none, or a hit where open sessions are asked for."""
    session = name if opened else name.removeprefix("hit-")
    return int(session[1:]) if session[:1] == "S" and session[1:].isdecimal() else 0
