"""The log of a task: many dated chat sessions, kept as a compact plan and written out when they are read.

A session is planned as `[date, topic, exchanges, entries]`, an entry as `[form, owner, thing, value]`. Its text is a
pure function of the log's seed, its number and its plan, so a task holds a few kB while its log is some 100 kB of text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from harness_mdp.hashing import Json, generator
from harness_mdp.settings.long_memory.kept import Kept
from harness_mdp.settings.long_memory.reading import content_words, passages
from harness_mdp.settings.long_memory.words import ASSISTANT_CHATTER, TOPICS, USER_CHATTER, genitive
from harness_mdp.settings.tasks import Task

__all__ = ["Entry", "Form", "Log", "Session", "excerpt", "log_of", "snippet"]

LOGS: Final = 128
"""Logs kept written out: a little more than the tasks of a setting, some hundred kB each."""
SNIPPET: Final = 120
"""Characters of a search hit, at most."""
EXCERPT: Final = 380
"""Characters of an opened session, at most."""


class Form(StrEnum):
    """How an entry is said."""

    STATED = "stated"
    TEASED = "teased"
    """Stated after an announcement that holds no value."""
    CONSIDERED = "considered"
    """A value that was talked about and never became true."""
    DID = "did"
    MIGHT = "might"
    """An activity that was only planned."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing said in a session."""

    form: Form
    owner: str
    """`I` or a name."""
    thing: str
    value: str = ""
    """Empty for an activity."""


_STATEMENTS = (
    "By the way, {whose} {thing} is {value} now.",
    "Since this week {whose} {thing} is {value}.",
    "You should know that {whose} {thing} is now {value}.",
    "For the record, {whose} {thing} is {value} from today.",
)
_TEASERS = ("There is news about {whose} {thing}.", "Something about {whose} {thing}, before I forget.")
_CONSIDERED = (
    "I wonder whether {value} would be better as {whose} {thing}.",
    "Somebody suggested {value} for {whose} {thing}, but nothing came of it.",
)
_DID = ("Today {who} {thing}.", "This morning {who} {thing}.")
_MIGHT = ("Nobody {thing} this week, that has to wait.", "A friend asked whether we {thing}; not yet.")
_REPLIES = ("Thank you, I will keep that in mind.", "Noted.", "All right, good to know.")
_PROMPTS = ("Tell me.", "Please go on.")


@dataclass(frozen=True, slots=True)
class Session:
    """A session that is written out."""

    number: int
    """From 1, in order of time."""
    date: str
    topic: str
    turns: tuple[str, ...]
    """Each begins with `User: ` or `Assistant: `."""

    @property
    def id(self) -> str:
        """E.g. `S12`."""
        return f"S{self.number}"

    @property
    def text(self) -> str:
        """All turns, one a line."""
        return "\n".join(self.turns)


@dataclass(frozen=True)
class Log:
    """All sessions of a task."""

    seed: str
    plan: tuple[tuple[str, str, int, tuple[Entry, ...]], ...]
    """Date, topic, exchanges of chatter and entries of each session, in order of time."""

    @classmethod
    def read(cls, public: Json) -> Log:
        """The log in the public part of a task."""
        rows = public["sessions"]
        plan = tuple((date, topic, n, tuple(Entry(Form(e[0]), *e[1:]) for e in said)) for date, topic, n, said in rows)
        return cls(public["log_seed"], plan)

    def __len__(self) -> int:
        return len(self.plan)

    def date(self, number: int) -> str:
        """ISO date of session `number`; empty where there is no such session."""
        return self.plan[number - 1][0] if 1 <= number <= len(self.plan) else ""

    def write(self, number: int) -> Session:
        """Session `number`, written out."""
        date, topic, exchanges, entries = self.plan[number - 1]
        rng = generator("long_memory", "session", self.seed, number)
        draws: list[int] = rng.integers(0, 2**31, size=4 * exchanges + 5 * len(entries)).tolist()
        words = TOPICS[topic]
        blocks: list[tuple[str, ...]] = []
        for at in range(0, 4 * exchanges, 4):
            user, assistant, first, second = draws[at : at + 4]
            x, y = words[first % len(words)], words[(first + 1 + second % (len(words) - 1)) % len(words)]
            asked = USER_CHATTER[user % len(USER_CHATTER)].format(x=x, y=y)
            told = ASSISTANT_CHATTER[assistant % len(ASSISTANT_CHATTER)].format(x=x, y=y)
            blocks.append((f"User: {asked}", f"Assistant: {told}"))
        for index, entry in enumerate(entries):
            at = 4 * exchanges + 5 * index
            blocks.insert(draws[at] % (len(blocks) + 1), _said(entry, draws[at + 1 : at + 5]))
        return Session(number, date, topic, tuple(turn for block in blocks for turn in block))

    @cached_property
    def sessions(self) -> tuple[Session, ...]:
        """All of them, written out once."""
        return tuple(self.write(number) for number in range(1, len(self) + 1))


_LOGS: Final = Kept[Log](LOGS)


def log_of(task: Task) -> Log:
    """The log of a task, kept for the next step; at most `LOGS` are."""
    return _LOGS.get(task.hash, lambda: Log.read(task.public))


def snippet(session: Session, question: str) -> str:
    """What a search shows of a session: the turn that has most words of the question."""
    best = passages(session.turns, content_words(question), most=1)
    turn = session.turns[best[0] if best else 0]
    return turn[:SNIPPET]


def excerpt(session: Session, question: str) -> str:
    """What opening a session brings: up to two places that have most words of the question, three turns each."""
    chosen: list[int] = []
    for start in passages(session.turns, content_words(question), most=2) or [0]:
        chosen.extend(at for at in range(start, min(start + 3, len(session.turns))) if at not in chosen)
    return " ".join(session.turns[at] for at in chosen)[:EXCERPT]


def _said(entry: Entry, draws: list[int]) -> tuple[str, ...]:
    """Turns of an entry; the last is the assistant's reply."""
    fields = {"whose": genitive(entry.owner), "who": entry.owner, "thing": entry.thing, "value": entry.value}

    def user(wordings: tuple[str, ...], draw: int) -> str:
        return f"User: {wordings[draw % len(wordings)].format(**fields)}"

    reply = f"Assistant: {_REPLIES[draws[1] % len(_REPLIES)]}"
    match entry.form:
        case Form.STATED:
            return (user(_STATEMENTS, draws[0]), reply)
        case Form.TEASED:
            prompt = f"Assistant: {_PROMPTS[draws[3] % len(_PROMPTS)]}"
            return (user(_TEASERS, draws[2]), prompt, user(_STATEMENTS, draws[0]), reply)
        case Form.CONSIDERED:
            return (user(_CONSIDERED, draws[0]), reply)
        case Form.DID:
            return (user(_DID, draws[0]), reply)
        case Form.MIGHT:
            return (user(_MIGHT, draws[0]), reply)
