"""The tools of multi_tool: right results, canonical calls, and a reason for everything that is refused."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp.settings.multi_tool.calls import call_tool, result_text
from harness_mdp.settings.multi_tool.units import UNITS

FUEL = {
    "columns": ["country", "diesel", "since"],
    "rows": [["Avia", 1.5, "2026-01-02"], ["Dorn", 1.625, "2026-03-04"], ["New Land", 2, "2026-02-01"]],
    "note": "",
}
TABLES = {"fuel": FUEL}


def result(call: str) -> str:
    outcome = call_tool(call, TABLES)
    assert outcome.ok, outcome.text
    return result_text(outcome.text)


def reason(call: str) -> str:
    outcome = call_tool(call, TABLES)
    assert not outcome.ok
    assert not outcome.call
    return outcome.text


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("12 * 7", "84"),
        ("0.1 + 0.2", "0.3"),
        ("2 + 3 * 4 - 6 / 4", "12.5"),
        ("(1 + 2) * -(3 - 5)", "6"),
        ("2 ** 3 ** 2", "512"),
        ("-2 ** 2", "-4"),
        ("2 ^ -2", "0.25"),
        ("1,234.5 × 2", "2469"),
        ("8% * 250", "20"),
        ("1 / 3", "0.3333"),
        ("2 / 3", "0.6667"),
        ("ceil(7 / 2) + floor(7 / 2)", "7"),
        ("max(1, 5, 3) - min(4)", "1"),
        ("round(2.345, 2)", "2.35"),
        ("abs(3 - 10)", "7"),
        ("3 x 4", "12"),
    ],
)
def test_arithmetic(expression, value):
    assert result(f"calculator: {expression}") == value


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "empty"),
        ("12 *", "a number is missing at the end"),
        ("(1 + 2", "')' is missing at the end"),
        ("1 2", "'2' is not expected there"),
        ("__import__('os')", "is not arithmetic"),
        ("sqrt(4)", "a number is missing before 'sqrt'"),
        ("2 ** 0.5", "whole number"),
        ("(" * 30 + "1" + ")" * 30, "nested"),
        ("-" * 150 + "(" * 25 + "1", "nested"),
        ("1 + " * 100 + "1", "characters"),
        ("round(1, 2, 3)", "arguments"),
    ],
)
def test_what_is_no_arithmetic_is_invalid(expression, said):
    outcome = call_tool(f"calculator: {expression}", {})
    assert (outcome.valid, outcome.ok) == (False, False)
    assert said in outcome.text


@pytest.mark.parametrize("expression", ["1 / 0", "0 ** -1", "9 ** 9 ** 9", "99999 ** 5000", "1 / (3 - 3)"])
def test_what_cannot_be_computed_is_a_valid_call_without_a_result(expression):
    outcome = call_tool(f"calculator: {expression}", {})
    assert (outcome.valid, outcome.ok) == (True, False)


@given(st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 999)), min_size=1, max_size=8))
def test_arithmetic_agrees_with_python(terms):
    expression = "7 " + " ".join(f"{sign} {number}" for sign, number in terms)
    assert float(result(f"calculator: {expression}")) == float(eval(expression))


@given(st.text("0123456789+-*/(). %,^", max_size=60))
def test_any_expression_gives_a_result_or_a_reason_and_spelling_is_stable(expression):
    outcome = call_tool(f"calculator: {expression}", {})
    if outcome.ok:
        assert call_tool(outcome.call, {}) == outcome


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("12 mi to km", "19.3121"),
        ("1 lb to g", "453.5924"),
        ("16 oz to lb", "1"),
        ("5 feet to inches", "60"),
        ("2 cups to ml", "473.1765"),
        ("90 km/h to m/s", "25"),
        ("36 hours to days", "1.5"),
        ("212 F to C", "100"),
        ("-40 °C to °F", "-40"),
        ("1 nautical mile to m", "1852"),
        ("1,000 g into kg", "1"),
    ],
)
def test_conversion(call, value):
    assert result(f"convert: {call}") == value


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("12 mi", "NUMBER UNIT to UNIT"),
        ("mi to km", "NUMBER UNIT to UNIT"),
        ("12 mi to kg", "mi is a length, kg a mass"),
        ("12 parsecs to km", "unknown unit 'parsecs'"),
    ],
)
def test_conversion_refuses(call, said):
    assert said in reason(f"convert: {call}")


def test_conversion_there_and_back():
    for name, unit in UNITS.items():
        other = next(n for n, u in UNITS.items() if u.measure == unit.measure and n != name)
        forth = result(f"convert: 5000 {name} to {other}")
        if abs(float(forth)) > 1:
            assert float(result(f"convert: {forth} {other} to {name}")) == pytest.approx(5000, rel=1e-3)


DAYS = st.dates(date(1950, 1, 1), date(2100, 1, 1))


@given(DAYS, st.integers(-2000, 2000))
def test_days_are_added_and_counted(day, n):
    later = str(day + timedelta(days=n))
    assert result(f"calendar: add_days {day} {n}") == later
    assert result(f"calendar: days_between {day} {later}") == str(n)
    assert result(f"calendar: weekday {day}") == day.strftime("%A")


@given(DAYS, st.integers(1, 60), st.sets(st.integers(1, 80), max_size=4))
def test_business_days_agree_with_counting_one_by_one(day, n, off):
    free = sorted(day + timedelta(days=i) for i in off)
    but = f" except {' '.join(map(str, free))}" if free else ""
    left, last = n, day
    while left:
        last += timedelta(days=1)
        left -= last.weekday() < 5 and last not in free
    assert result(f"calendar: add_business_days {day} {n}{but}") == str(last)
    first = day + timedelta(days=1)
    assert result(f"calendar: business_days_between {first} {last}{but}") == str(n)


@given(st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)), st.integers(-5000, 5000))
def test_minutes_are_added(moment, n):
    later = (moment + timedelta(minutes=n)).strftime("%Y-%m-%d %H:%M")
    assert result(f"calendar: add_minutes {moment:%Y-%m-%d %H:%M} {n}") == later
    assert result(f"calendar: add_minutes {moment:%Y-%m-%dT%H:%M} {n} minutes") == later


def test_months_end_where_the_month_does():
    assert result("calendar: add_months 2028-01-31 1") == "2028-02-29"
    assert result("calendar: add_months 2026-03-31 -13") == "2025-02-28"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("tomorrow", "unknown operation 'tomorrow'"),
        ("", "unknown operation"),
        ("weekday 2026-02-30", "no date"),
        ("weekday 2 March", "takes DATE"),
        ("add_days 2026-03-02", "takes DATE N"),
        ("add_days 2026-03-02 many", "no whole number"),
        ("add_days 2026-03-02 99999999", "no whole number"),
        ("add_days 2199-12-31 1", "outside the years"),
        ("add_business_days 2199-12-30 900", "outside the years"),
        ("add_months 2199-12-31 1", "outside 1900"),
        ("weekday 2026-03-02 except 2026-03-03", "no except"),
        ("business_days_between 2026-03-05 2026-03-02", "before the first"),
        ("add_minutes 2026-03-02 25:00 5", "no time"),
    ],
)
def test_the_calendar_refuses(call, said):
    assert said in reason(f"calendar: {call}")


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("lookup fuel diesel where country = Dorn", "1.625"),
        ("lookup FUEL Diesel WHERE Country = 'dorn'", "1.625"),
        ("lookup diesel_missing", None),
        ("lookup fuel diesel where country = New Land", "2"),
        ("lookup fuel country where diesel > 1.5 and diesel <= 1.7", "Dorn"),
        ("lookup fuel country where since < 2026-01-31", "Avia"),
        ("sum fuel diesel", "5.125"),
        ("sum fuel diesel where country != Avia", "3.625"),
        ("count fuel where diesel >= 1.6", "2"),
        ("count fuel where diesel > 9", "0"),
        ("filter fuel where diesel < 2 and country is Avia", "country Avia; diesel 1.5; since 2026-01-02"),
    ],
)
def test_tables(call, value):
    if value is None:
        assert "lookup takes TABLE COLUMN" in reason(f"table: {call}")
    else:
        assert result(f"table: {call}") == value


@pytest.mark.parametrize(
    ("call", "valid", "said"),
    [
        ("erase fuel", False, "unknown operation"),
        ("lookup prices diesel", False, "unknown table 'prices'; expected one of fuel"),
        ("lookup fuel petrol", False, "unknown column 'petrol'; expected one of country, diesel, since"),
        ("lookup fuel diesel where land = Dorn", False, "unknown column 'land'"),
        ("lookup fuel diesel where Dorn", False, "no condition"),
        ("sum fuel country", False, "holds texts"),
        ("lookup fuel diesel where country = Nowhere", True, "no row"),
        ("lookup fuel diesel", True, "3 rows fit"),
    ],
)
def test_tables_refuse(call, valid, said):
    outcome = call_tool(f"table: {call}", TABLES)
    assert (outcome.valid, outcome.ok) == (valid, False)
    assert said in outcome.text


@pytest.mark.parametrize(
    "reply",
    [
        "calculator: 12 * 7",
        "Calculator: 12*7",
        "**calculator:** 12 * 7",
        "`calculator: 12 * 7`",
        "```\ncalculator: 12 * 7\n```",
        "calculator(12 * 7)",
        'calculator("12 * 7")',
        "I need the product first.\nTool: calculator: 12 * 7\nThen I go on.",
        "calc: 12 * 7 = 84",
        "- calculator: 12 x 7",
        '{"tool": "calculator", "args": {"expression": "12 * 7"}}',
        '{"tool": "calculator", "args": "12 * 7"}',
        '{"tool": "calculator", "expression": "12 * 7"}',
        '{"name": "Calculator", "arguments": "{\\"expression\\": \\"12 * 7\\"}"}',
        'Sure:\n```json\n{"function": {"name": "calculator", "arguments": {"input": "12*7"}}}\n```',
        '{"calculator": "12 * 7"}',
        '{"thought": "x", "action": "calculator", "action_input": "12 * 7"}',
    ],
)
def test_a_call_is_understood_however_it_is_said(reply):
    assert call_tool(reply, {}).text == "calculator: 12 * 7 = 84"


@pytest.mark.parametrize(
    ("reply", "call"),
    [
        ('{"tool": "convert", "args": {"to": "km", "from": "mi", "value": 12}}', "convert: 12 mi to km"),
        ('{"tool": "unit", "args": {"amount": 12, "from_unit": "miles", "to_unit": "km"}}', "convert: 12 mi to km"),
        ('{"tool": "convert", "value": 12, "from": "mi", "to": "km"}', "convert: 12 mi to km"),
        (
            '{"tool": "calendar", "args": {"n": 10, "date": "2026-03-02", "operation": "add_days"}}',
            "calendar: add_days 2026-03-02 10",
        ),
        (
            '{"tool": "calendar", "args": {"operation": "business_days_between", "start": "2026-03-02", '
            '"end": "2026-03-20", "except": ["2026-03-05", "2026-03-04"]}}',
            "calendar: business_days_between 2026-03-02 2026-03-20 except 2026-03-04 2026-03-05",
        ),
        (
            '{"tool": "table", "args": {"operation": "lookup", "table": "fuel", "column": "diesel", '
            '"where": {"country": "Dorn"}}}',
            "table: lookup fuel diesel where country = Dorn",
        ),
        (
            '{"tool": "table", "args": {"operation": "count", "table": "fuel", '
            '"where": [{"column": "diesel", "op": "<", "value": 2}, "country != Avia"]}}',
            "table: count fuel where diesel < 2 and country != Avia",
        ),
        (
            '{"tool": "table", "args": {"operation": "count", "table": "fuel", "where": {"diesel": {">": 1}}}}',
            "table: count fuel where diesel > 1",
        ),
        ("table(lookup fuel diesel where country = Dorn)", "table: lookup fuel diesel where country = Dorn"),
    ],
)
def test_json_calls_are_spelled_like_lines(reply, call):
    assert call_tool(reply, TABLES).call == call
    assert call_tool(call, TABLES).call == call


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "none",
        "I am sorry, I would need more information to do that.",
        '{"tool": "browser", "args": {"url": "x"}}',
        '{"tool": "calculator"',
        '{"tool": null}',
        "{" * 2000,
        '{"a":' * 900 + "1" + "}" * 900,
        '{"tool": "table", "args": {"where": ' + "[" * 300 + "]" * 300 + "}}",
    ],
)
def test_a_reply_without_a_call_is_invalid(reply):
    outcome = call_tool(reply, TABLES)
    assert (outcome.tool, outcome.valid, outcome.ok, outcome.call) == ("none", False, False, "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
TOOL = st.sampled_from(["calculator", "convert", "calendar", "table"])
WORDS = st.sampled_from(
    [
        "operation",
        "add_days",
        "lookup",
        "fuel",
        "where",
        "diesel",
        "=",
        "1.5",
        "2026-03-02",
        "to",
        "mi",
        "except",
        "9:99",
    ]
)


@given(TOOL, st.dictionaries(WORDS, JSON, max_size=4))
def test_no_json_arguments_raise(tool, arguments):
    outcome = call_tool(json.dumps({"tool": tool, "args": arguments}), TABLES)
    assert outcome.ok or outcome.text


@given(TOOL, st.lists(WORDS | st.text(max_size=8), max_size=6).map(" ".join))
def test_no_arguments_raise_and_a_result_can_be_asked_for_again(tool, arguments):
    outcome = call_tool(f"{tool}: {arguments}", TABLES)
    assert " = " in outcome.text if outcome.ok else outcome.text
    if outcome.ok:
        assert call_tool(outcome.call, TABLES) == outcome


def test_huge_numbers_are_refused_at_once():
    assert result("calculator: " + "9" * 190) == "9" * 190
    assert "too large" in call_tool("calculator: 999999999 ** 999", {}).text
    assert math.isfinite(float(result("calculator: 99999999999999999999 * 99999999999999999999")))
