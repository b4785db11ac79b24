"""The calendar tool: weekdays, differences and sums of days, business days (Monday to Friday), times of day."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final

import numpy as np

from harness_mdp.settings.multi_tool.numbers import ToolError

__all__ = ["calendar_call"]

YEARS = (1900, 2199)
MAX_COUNT = 10_000
"""Days, months or business days that may be added."""
MAX_MINUTES = 1_000_000

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DAY = timedelta(days=1)


def calendar_call(arguments: str) -> tuple[str, str]:
    """`add_days 2026-03-02 10` in canonical spelling, and its result.

    Raises:
        ToolError: an unknown operation, arguments that do not fit it, or a date outside the years 1900 to 2199.
    """
    head, _, free = arguments.replace(",", " ").replace("T", " ").lower().partition("except")
    words = head.split()
    operation = words[0].replace("-", "_") if words else ""
    if operation not in _OPERATIONS:
        raise ToolError(f"unknown operation {operation[:20]!r}; expected one of {', '.join(_OPERATIONS)}")
    form, run = _OPERATIONS[operation]
    given = [word for word in words[1:] if word not in ("and", "to", "days", "day", "minutes", "months")]
    holidays = sorted({_date(word) for word in free.split() if word != "and"})
    if holidays and "business" not in operation:
        raise ToolError(f"{operation} takes no except")
    if len(given) != len(form.split()):
        raise ToolError(f"{operation} takes {form}")
    result = run(given, holidays)
    exceptions = f" except {' '.join(map(str, holidays))}" if holidays else ""
    return f"{operation} {' '.join(given)}{exceptions}", result


def _date(text: str) -> date:
    try:
        value = date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        value = None
    if value is None:
        raise ToolError(f"{text[:20]!r} is no date YYYY-MM-DD")
    return _bounded(value)


def _bounded(value: date) -> date:
    if not YEARS[0] <= value.year <= YEARS[1]:
        raise ToolError(f"{value} lies outside the years {YEARS[0]} to {YEARS[1]}")
    return value


def _count(text: str, limit: int = MAX_COUNT) -> int:
    if not re.fullmatch(r"[-+]?\d{1,9}", text) or abs(int(text)) > limit:
        raise ToolError(f"{text[:20]!r} is no whole number up to {limit}")
    return int(text)


def _weekday(given: Sequence[str], _holidays: Sequence[date]) -> str:
    return calendar.day_name[_date(given[0]).weekday()]


def _add_days(given: Sequence[str], _holidays: Sequence[date]) -> str:
    return str(_bounded(_date(given[0]) + timedelta(days=_count(given[1]))))


def _add_months(given: Sequence[str], _holidays: Sequence[date]) -> str:
    """The same day of the month, or the last one where the month is shorter."""
    day = _date(given[0])
    months = day.year * 12 + day.month - 1 + _count(given[1])
    year, month = divmod(months, 12)
    if not YEARS[0] <= year <= YEARS[1]:
        raise ToolError(f"the year {year} lies outside {YEARS[0]} to {YEARS[1]}")
    last = calendar.monthrange(year, month + 1)[1]
    return str(date(year, month + 1, min(day.day, last)))


def _days_between(given: Sequence[str], _holidays: Sequence[date]) -> str:
    return str((_date(given[1]) - _date(given[0])).days)


def _add_business_days(given: Sequence[str], holidays: Sequence[date]) -> str:
    """Counted from the day after the date; 0 gives the date, or the next business day."""
    day, count = _date(given[0]), _count(given[1])
    roll = "backward" if count > 0 else "forward"
    moved = np.busday_offset(np.datetime64(day), count, roll=roll, holidays=_as_days(holidays))
    return str(_bounded(date.fromisoformat(str(moved))))


def _business_days_between(given: Sequence[str], holidays: Sequence[date]) -> str:
    first, last = _date(given[0]), _date(given[1])
    if last < first:
        raise ToolError("the second date lies before the first")
    days = np.busday_count(np.datetime64(first), np.datetime64(last + _DAY), holidays=_as_days(holidays))
    return str(int(days))


def _as_days(holidays: Sequence[date]) -> list[np.datetime64]:
    return [np.datetime64(day) for day in holidays]


def _add_minutes(given: Sequence[str], _holidays: Sequence[date]) -> str:
    try:
        start = datetime.strptime(f"{_date(given[0])} {given[1]}", "%Y-%m-%d %H:%M")
    except ValueError:
        raise ToolError(f"{given[1][:20]!r} is no time HH:MM") from None
    moved = start + timedelta(minutes=_count(given[2], MAX_MINUTES))
    _bounded(moved.date())
    return moved.strftime("%Y-%m-%d %H:%M")


_OPERATIONS: Final[Mapping[str, tuple[str, Callable[[Sequence[str], Sequence[date]], str]]]] = {
    "weekday": ("DATE", _weekday),
    "add_days": ("DATE N", _add_days),
    "add_months": ("DATE N", _add_months),
    "days_between": ("DATE DATE", _days_between),
    "add_business_days": ("DATE N", _add_business_days),
    "business_days_between": ("DATE DATE", _business_days_between),
    "add_minutes": ("DATE HH:MM N", _add_minutes),
}
