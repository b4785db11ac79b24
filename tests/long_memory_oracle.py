"""Answers long_memory questions from the whole text of a log by string search, with no code of the setting."""

from __future__ import annotations

from dataclasses import dataclass

THINGS = (
    "home city",
    "phone plan",
    "monthly rent",
    "gym",
    "employer",
    "car",
    "favourite tea",
    "locker code",
    "dentist appointment",
    "bank",
    "piano teacher",
    "running partner",
    "flatmate",
    "project lead",
)


@dataclass(frozen=True)
class Fact:
    number: int
    date: str
    owner: str
    thing: str
    value: str


def facts(sessions) -> list[Fact]:
    """Every `X's thing is value` that a user says, oldest first."""
    found = []
    for session in sessions:
        for turn in session.turns:
            speaker, _, said = turn.partition(": ")
            if speaker != "User" or " is " not in said:
                continue
            subject, _, rest = said.partition(" is ")
            thing = next((t for t in THINGS if subject.endswith(f" {t}")), None)
            if thing is None:
                continue
            who = subject.removesuffix(f" {thing}").split()[-1]
            value = rest.removesuffix(".").removeprefix("now ").removesuffix(" now").removesuffix(" from today")
            owner = "I" if who == "my" else who.removesuffix("'s")
            found.append(Fact(session.number, session.date, owner, thing, value))
    return found


def deeds(sessions, activity) -> list[int]:
    """Sessions in which the user says to have done it."""
    wanted = (f"User: Today I {activity}.", f"User: This morning I {activity}.")
    return [session.number for session in sessions if any(turn in wanted for turn in session.turns)]


def solve(query, sessions) -> tuple[str, set[int]]:
    """Answer and the sessions that show it."""
    kind, told = query["kind"], facts(sessions)

    def history(owner, thing):
        return [fact for fact in told if fact.owner == owner and fact.thing == thing]

    def last(owner, thing):
        return history(owner, thing)[-1]

    if kind == "count":
        numbers = deeds(sessions, query["thing"])
        return str(len(numbers)), {numbers[-1]}
    if kind == "latest_change":
        latest = max((last(query["owner"], thing) for thing in query["options"]), key=lambda fact: fact.number)
        return latest.thing, {latest.number}
    if kind == "whose":
        (fact,) = [f for who in query["options"] if (f := last(who, query["thing"])).value == query["value"]]
        return fact.owner, {fact.number}
    owner = last("I", query["role"]).value if kind == "chain" else query["owner"]
    known = history(owner, query["thing"])
    if kind == "as_of":
        known = [fact for fact in known if fact.date <= query["day"]]
    if kind == "previous":
        known = [fact for fact in known if fact.value != known[-1].value]
    value = known[-1].value
    return value, {fact.number for fact in known if fact.value == value}
