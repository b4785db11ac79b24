"""One maker for each kind of question: it plans the facts into the diary and says what answers the question.

The wrong ways are real ones: an outdated value, another person's value, one that was only considered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from harness_mdp.settings.long_memory.diary import Diary, Said
from harness_mdp.settings.long_memory.queries import Kind, Query
from harness_mdp.settings.long_memory.sessions import Form
from harness_mdp.settings.long_memory.words import ACTIVITIES, ME, ROLES, THINGS

__all__ = ["MAKERS", "Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A question and what answers it."""

    query: Query
    answer: str
    right: tuple[int, ...]
    """Sessions that show the answer, ascending; the last one is the reference."""
    needed: tuple[int, ...]
    """Sessions to know, to be sure of the answer."""
    wrong: tuple[Said, ...]
    """Wrong answers, most tempting first, with the session that misleads."""


def _current(diary: Diary) -> Plan:
    owner, thing = _owner(diary), diary.ask_about([*THINGS])
    values = [diary.fresh(thing) for _ in range(diary.level.changes + 1)]
    again = [values[-1]] if diary.rng.random() < 0.3 else []
    history = diary.history(owner, thing, values + again)
    right = _stating(history, values[-1])
    wrong = (*reversed(history[: -len(right)]), *_distractors(diary, owner, thing))
    return Plan(Query(Kind.CURRENT, owner, thing), values[-1], right, right[-1:], wrong)


def _previous(diary: Diary) -> Plan:
    owner, thing = _owner(diary), diary.ask_about([*THINGS])
    history = diary.history(owner, thing, [diary.fresh(thing) for _ in range(diary.level.changes + 1)])
    *older, before, newest = history
    wrong = (newest, *reversed(older), *_distractors(diary, owner, thing))
    needed = (before.number, newest.number)
    return Plan(Query(Kind.PREVIOUS, owner, thing), before.value, (before.number,), needed, wrong)


def _as_of(diary: Diary) -> Plan:
    owner, thing = _owner(diary), diary.ask_about([*THINGS])
    history = diary.history(owner, thing, [diary.fresh(thing) for _ in range(diary.level.changes + 1)])
    at = int(diary.rng.integers(len(history) - 1))
    then, later = history[at], history[at + 1]
    first, last = (date.fromisoformat(diary.dates[said.number - 1]) for said in (then, later))
    day = first + timedelta(days=int(diary.rng.integers(1, (last - first).days)))
    others = [said for said in reversed(history) if said is not then]
    query = Query(Kind.AS_OF, owner, thing, day=day.isoformat())
    wrong = (*others, *_distractors(diary, owner, thing))
    return Plan(query, then.value, (then.number,), (then.number,), wrong)


def _count(diary: Diary) -> Plan:
    activity, level = diary.ask_about(ACTIVITIES), diary.level
    mine = diary.mention(Form.DID, ME, activity, level.changes + int(diary.rng.integers(1, 3)))
    theirs = [said for who in _others(diary, ME) for said in diary.mention(Form.DID, who, activity, 1)]
    talk = diary.mention(Form.MIGHT, ME, activity, level.considered + 1)
    numbers = tuple(said.number for said in mine)
    misleading = [theirs[0].number, talk[0].number, numbers[0]]
    counts = [len(mine) + len(theirs), len(mine) + 1, max(1, len(mine) - 1)]
    wrong = [Said(str(n), at) for n, at in zip(counts, misleading, strict=True) if n != len(mine)]
    return Plan(Query(Kind.COUNT, ME, activity), str(len(mine)), numbers[-1:], numbers, tuple(wrong))


def _chain(diary: Diary) -> Plan:
    thing, role = diary.ask_about([*THINGS]), diary.ask_about(ROLES)
    roles = diary.history(ME, role, [diary.fresh(role) for _ in range(diary.level.changes + 1)])
    holder = roles[-1].value
    history = diary.history(holder, thing, [diary.fresh(thing) for _ in range(min(diary.level.changes, 2) + 1)])
    former = [diary.history(said.value, thing, [diary.fresh(thing)])[0] for said in reversed(roles[:-1])]
    wrong = (*former, *reversed(history[:-1]))
    number = history[-1].number
    return Plan(
        Query(Kind.CHAIN, thing=thing, role=role), history[-1].value, (number,), (roles[-1].number, number), wrong
    )


def _latest_change(diary: Diary) -> Plan:
    owner, count = _owner(diary), 2 + (diary.level.changes > 2)
    things = [diary.ask_about([*THINGS]) for _ in range(count)]
    # Two values each and one more for every change asked of the level; no two in the same session.
    order = [*things, *things, *(diary.pick(things) for _ in range(diary.level.changes - 1))]
    order = [order[int(i)] for i in diary.rng.permutation(len(order))]
    numbers = diary.places(things, len(order))
    for thing, number in zip(order, numbers, strict=True):
        diary.state(owner, thing, diary.fresh(thing), number)
    last = dict(zip(order, numbers, strict=True))
    for thing in things:
        _distractors(diary, owner, thing)
    answer = max(things, key=lambda thing: last[thing])
    wrong = tuple(Said(thing, last[thing]) for thing in things if thing != answer)
    query = Query(Kind.LATEST_CHANGE, owner, options=tuple(things))
    return Plan(query, answer, (last[answer],), tuple(sorted(last.values())), wrong)


def _whose(diary: Diary) -> Plan:
    thing, level = diary.ask_about([*THINGS]), diary.level
    people = _others(diary, ME, level.others + 1)
    owner, *rivals = people
    value = diary.fresh(thing)
    history = diary.history(owner, thing, [*(diary.fresh(thing) for _ in range(level.changes - 1)), value])
    misleading: list[Said] = []
    needed = [history[-1].number]
    for rival in rivals:
        former, newest = diary.history(rival, thing, [value, diary.fresh(thing)])
        misleading.append(Said(rival, former.number))
        needed.append(newest.number)
    shown = tuple(people[int(i)] for i in diary.rng.permutation(len(people)))
    query = Query(Kind.WHOSE, thing=thing, value=value, options=shown)
    return Plan(query, owner, (history[-1].number,), tuple(sorted(needed)), tuple(misleading))


MAKERS: Final[Mapping[Kind, Callable[[Diary], Plan]]] = {
    Kind.CURRENT: _current,
    Kind.PREVIOUS: _previous,
    Kind.AS_OF: _as_of,
    Kind.COUNT: _count,
    Kind.CHAIN: _chain,
    Kind.LATEST_CHANGE: _latest_change,
    Kind.WHOSE: _whose,
}


def _owner(diary: Diary) -> str:
    """The user in half of the cases."""
    return ME if diary.rng.random() < 0.5 else diary.pick(diary.cast)


def _others(diary: Diary, owner: str, count: int | None = None) -> list[str]:
    """The user, unless it is the owner, and people of the cast: as many as the level asks for."""
    names = [ME, *(diary.cast[int(i)] for i in diary.rng.permutation(len(diary.cast)))]
    return [name for name in names if name != owner][: diary.level.others if count is None else count]


def _distractors(diary: Diary, owner: str, thing: str) -> list[Said]:
    """The same thing of other people, newest value first; then what was only considered."""
    theirs = [diary.history(who, thing, [diary.fresh(thing)])[-1] for who in _others(diary, owner)]
    return [*theirs, *diary.mention(Form.CONSIDERED, owner, thing, diary.level.considered, values=True)]


def _stating(history: Sequence[Said], value: str) -> tuple[int, ...]:
    return tuple(said.number for said in history if said.value == value)
