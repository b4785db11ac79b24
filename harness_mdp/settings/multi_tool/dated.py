"""Templates about dates and times of day: `project_calendar`, `rental`, `meeting`."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Final

from harness_mdp.settings.multi_tool.chains import FROM_CALENDAR, FROM_TABLE, Chain, Plan, table

__all__ = ["meeting", "project_calendar", "rental"]

_JOBS: Final = ("plan", "floor", "walls", "roof", "pipes", "wiring", "paint", "doors", "garden")
_CITIES: Final = ("Arvik", "Belmar", "Corda", "Dunmore", "Elstow", "Farro", "Gilda")
"""Made up, since their offsets are drawn."""


def project_calendar(chain: Chain, difficulty: str) -> Plan:
    """When work ends: business days, summed per team from a table; holidays and a deadline when hard."""
    start = chain.day()
    if difficulty == "easy":
        days = chain.whole(6, 40)
        chain.given("start_date", str(start), [str(start + timedelta(days=1))], "start_date may be misread", "date")
        chain.given("work_days", str(days), [str(days + 1), str(days - 1)], "work_days may be misread")
        _end(chain, "answer", str(start), days)
        details = f"An order comes in on {start}. The work ends {days} business days after that day."
        return chain.plan("Date on which the work ends", details, f"calendar: add_business_days {start}")
    teams = chain.pick(("Red", "Blue", "Green", "Gold"), 3)
    rows = [
        [name, teams[i % 3], chain.whole(2, 12)] for i, name in enumerate(_JOBS[: 9 if difficulty == "hard" else 6])
    ]
    chain.tables["jobs"] = table(("job", "team", "days"), rows, "a team does its jobs one after the other")
    chain.given("start_date", str(start), [str(start + timedelta(days=1))], "start_date may be misread", "date")
    first = _team_days(chain, teams[0], teams[1])
    if difficulty == "standard":
        wait = chain.whole(5, 20)
        built = _end(chain, "built", str(start), int(first))
        chain.step(
            "answer",
            f"calendar: add_days {built} {wait}",
            wrong=(f"calendar: add_days {built} {wait - 1}", f"calendar: add_business_days {built} {wait}"),
            fault="the calendar days may be counted wrong",
            kind="date",
            needs=FROM_CALENDAR,
        )
        details = (
            f"Team {teams[0]} starts right after {start} and does all its jobs, one business day for each day listed. "
            f"The review ends {wait} calendar days after the last job. {chain.asides(difficulty)}"
        )
        return chain.plan("Date on which the review ends", details, f"table: sum jobs where team = {teams[0]}")
    free = _holidays(chain, str(start), int(first))
    built = _end(chain, "first_team_ends", str(start), int(first), free)
    second = _team_days(chain, teams[1], teams[2])
    done = _end(chain, "second_team_ends", built, int(second))
    deadline = _later(done, chain.whole(5, 60))
    chain.step(
        "answer",
        f"calendar: days_between {done} {deadline}",
        wrong=(f"calendar: days_between {done} {_later(deadline, 1)}", f"calendar: days_between {built} {deadline}"),
        fault="the days left may be off by one",
        needs=FROM_CALENDAR,
    )
    details = (
        f"Team {teams[0]} starts right after {start}; {free.replace(' ', ' and ')} are holidays for it. "
        f"When its last job is done, team {teams[1]} goes on from the next business day (no holidays there). "
        f"One business day for each day listed. The deadline is {deadline}. {chain.asides(difficulty)}"
    )
    title = "Calendar days from the end of the work to the deadline"
    return chain.plan(title, details, f"calendar: days_between {deadline}")


def _team_days(chain: Chain, team: str, other: str) -> str:
    return chain.step(
        f"{team.lower()}_days",
        f"table: sum jobs days where team = {team}",
        wrong=(f"table: sum jobs days where team = {other}", "table: sum jobs days"),
        fault=f"rows of a team other than {team} may be added",
        needs=FROM_TABLE,
    )


def _end(chain: Chain, name: str, start: str, days: int, free: str = "") -> str:
    """The last of `days` business days after `start`, less the days in `free`."""
    but = f" except {free}" if free else ""
    plain = (f"calendar: add_business_days {start} {days}",) if free else (f"calendar: add_days {start} {days}",)
    return chain.step(
        name,
        f"calendar: add_business_days {start} {days}{but}",
        wrong=(f"calendar: add_business_days {start} {days - 1}{but}", *plain),
        fault="the business days may be off by one",
        kind="date",
        needs=FROM_CALENDAR,
    )


def _holidays(chain: Chain, start: str, days: int) -> str:
    """Two of the first `days` business days after `start`, with a space between."""
    later = (date.fromisoformat(start) + timedelta(days=i) for i in range(1, 2 * days + 4))
    working = [str(day) for day in later if day.weekday() < 5][:days]
    return " ".join(sorted(chain.pick(working, 2)))


def _later(day: str, days: int) -> str:
    return str(date.fromisoformat(day) + timedelta(days=days))


def rental(chain: Chain, difficulty: str) -> Plan:
    """Days between two dates, both counted or not, times the rate of a table."""
    start = chain.day()
    end = start + timedelta(days=chain.whole(9, 60))
    chain.given("from_date", str(start), [str(start + timedelta(days=1))], "from_date may be misread", "date")
    chain.given("to_date", str(end), [str(end - timedelta(days=1))], "to_date may be misread", "date")
    between = f"calendar: days_between {start} {end}"
    working = f"calendar: business_days_between {start} {end}"
    plus_one = str((end - start).days + 1)
    if difficulty == "easy":
        wrong = (plus_one, working)
        chain.step("answer", between, wrong=wrong, fault="the days may be off by one", needs=FROM_CALENDAR)
        details = f"A hall is taken on {start} and given back on {end}. The first day is free, every later day counts."
        return chain.plan("Days that are paid", details, f"calendar: days_between {start}")
    halls = chain.pick(("Oak", "Elm", "Ash", "Fir", "Yew"), 5 if difficulty == "hard" else 4)
    rows = [[hall, chain.whole(60, 140, 5), chain.whole(145, 240, 5)] for hall in sorted(halls)]
    chain.tables["halls"] = table(("hall", "weekday_rate", "weekend_rate"), rows, "EUR a day; Sat and Sun are weekend")
    hall, other = halls[0], halls[1]
    span = chain.step(
        "days_between", between, wrong=(plus_one, working), fault="the days may be off by one", needs=FROM_CALENDAR
    )
    opening = f"Hall {hall} is taken on {start} and given back on {end}; both days are paid."
    rates: dict[str, str] = {}

    def rate(kind: str, twin: str) -> str:
        rates[kind] = chain.step(
            f"{kind}_rate",
            f"table: lookup halls {kind}_rate where hall = {hall}",
            wrong=(
                f"table: lookup halls {kind}_rate where hall = {other}",
                f"table: lookup halls {twin}_rate where hall = {hall}",
            ),
            fault=f"the wrong {kind} rate may be read",
            needs=FROM_TABLE,
        )
        return rates[kind]

    if difficulty == "standard":
        price = rate("weekday", "weekend")
        chain.step(
            "answer",
            f"calculator: ({span} + 1) * {price}",
            wrong=(f"calculator: {span} * {price}", f"calculator: ({span} + 2) * {price}"),
            fault="the first or last day may be left out",
        )
        details = f"{opening} Every day costs the weekday rate. {chain.asides(difficulty)}"
        return chain.plan("Rent in EUR", details, f"table: lookup halls weekday_rate where room = {hall}")
    days = chain.step(
        "business_days",
        working,
        wrong=(
            f"calendar: business_days_between {start + timedelta(days=1)} {end}",
            f"calendar: business_days_between {start} {end + timedelta(days=3)}",
        ),
        fault="the business days may be off by one",
        needs=FROM_CALENDAR,
    )
    week, weekend = rate("weekday", "weekend"), rate("weekend", "weekday")
    chain.step(
        "answer",
        f"calculator: {days} * {week} + ({span} + 1 - {days}) * {weekend}",
        wrong=(
            f"calculator: {days} * {week} + ({span} - {days}) * {weekend}",
            f"calculator: ({span} + 1) * {week}",
        ),
        fault="the first or last day may be left out",
    )
    details = f"{opening} Business days cost the weekday rate, the others the weekend rate. {chain.asides(difficulty)}"
    return chain.plan("Rent in EUR", details, f"calendar: business_days_between {start}")


def meeting(chain: Chain, difficulty: str) -> Plan:
    """When a meeting ends, in the local time of another city, its length from an agenda when hard."""
    start = f"{chain.day()} {chain.whole(7, 20):02d}:{chain.whole(0, 45, 15):02d}"
    minutes = chain.whole(50, 240, 5)
    if difficulty == "easy":
        chain.given("start", start, [_moved(start, 60)], "start may be misread", "datetime")
        chain.given("minutes", str(minutes), [str(minutes + 5), str(minutes + 60)], "minutes may be misread")
        chain.step(
            "answer",
            f"calendar: add_minutes {start} {minutes}",
            wrong=(f"calendar: add_minutes {start} {minutes + 60}", f"calendar: add_minutes {start} {minutes - 40}"),
            fault="the minutes may be carried wrong",
            kind="datetime",
            needs=FROM_CALENDAR,
        )
        details = f"A talk starts at {start} and lasts {minutes} minutes."
        return chain.plan("When the talk ends (YYYY-MM-DD HH:MM)", details, f"calendar: add_minutes {start}")
    cities = chain.pick(_CITIES, 7 if difficulty == "hard" else 4)
    offsets = chain.pick(tuple(str(m) for m in range(-480, 721, 30) if m), len(cities))
    rows = [[name, int(offset)] for name, offset in sorted(zip(cities, offsets, strict=True))]
    chain.tables["cities"] = table(("city", "utc_minutes"), rows, "minutes that local time is ahead of UTC")
    here, there, other = cities[:3]

    def offset(city: str, name: str) -> str:
        return chain.step(
            name,
            f"table: lookup cities utc_minutes where city = {city}",
            wrong=(f"table: lookup cities utc_minutes where city = {other}",),
            fault=f"the wrong row may be read for {city}",
            needs=FROM_TABLE,
        )

    if difficulty == "standard":
        chain.given("minutes", str(minutes), [str(minutes + 5), str(minutes + 60)], "minutes may be misread")
        ahead = offset(here, "offset")
        local = chain.step(
            "local_start",
            f"calendar: add_minutes {start} {ahead}",
            wrong=(f"calendar: add_minutes {start} {-int(ahead)}",),
            fault="the offset may be applied the wrong way",
            kind="datetime",
            needs=FROM_CALENDAR,
        )
        chain.step(
            "answer",
            f"calendar: add_minutes {local} {minutes}",
            wrong=(f"calendar: add_minutes {start} {minutes}", f"calendar: add_minutes {local} {minutes + 60}"),
            fault="the end may be in the wrong local time",
            kind="datetime",
            needs=FROM_CALENDAR,
        )
        details = f"A call starts at {start} UTC and lasts {minutes} minutes. {chain.asides(difficulty)}"
        title = f"When the call ends in {here}, local time (YYYY-MM-DD HH:MM)"
        return chain.plan(title, details, f"table: lookup cities offset where city = {here}")
    talks = [[f"talk{i + 1}", 1 + i % 2, chain.whole(15, 70, 5)] for i in range(8)]
    chain.tables["agenda"] = table(("talk", "day", "minutes"), talks, "talks follow each other without a break")
    day = chain.whole(1, 2)
    total = chain.step(
        "agenda_minutes",
        f"table: sum agenda minutes where day = {day}",
        wrong=(f"table: sum agenda minutes where day = {3 - day}", "table: sum agenda minutes"),
        fault="talks of the wrong day may be added",
        needs=FROM_TABLE,
    )
    ahead_here, ahead_there = offset(here, "offset_from"), offset(there, "offset_to")
    shift = chain.step(
        "shift",
        f"calculator: {ahead_there} - {ahead_here} + {total}",
        wrong=(
            f"calculator: {ahead_here} - {ahead_there} + {total}",
            f"calculator: {ahead_there} + {ahead_here} + {total}",
        ),
        fault="the offsets may be applied the wrong way",
    )
    chain.step(
        "answer",
        f"calendar: add_minutes {start} {shift}",
        wrong=(f"calendar: add_minutes {start} {int(shift) + 60}", f"calendar: add_minutes {start} {total}"),
        fault="the end may be in the wrong local time",
        kind="datetime",
        needs=FROM_CALENDAR,
    )
    details = (
        f"All talks of day {day} are held in {here} from {start} local time. shift = minutes from that time to the "
        f"local time in {there} when the last talk ends. {chain.asides(difficulty)}"
    )
    title = f"When the last talk ends in {there}, local time (YYYY-MM-DD HH:MM)"
    return chain.plan(title, details, f"calendar: add_minutes {start} {here}")


def _moved(moment: str, minutes: int) -> str:
    return (datetime.fromisoformat(moment) + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M")
