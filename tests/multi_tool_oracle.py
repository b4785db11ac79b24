"""Solves multi_tool tasks from their public text alone, without the setting's tools: floats, datetime and loops."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

Values = dict[str, float | str]

POUND, OUNCE, MILE = 0.45359237, 0.45359237 / 16, 1.609344


def solve(template: str, public: Mapping) -> Values:
    """Every quantity that the task asks for, by name."""
    tables = {
        name: [dict(zip(t["columns"], row, strict=True)) for row in t["rows"]] for name, t in public["tables"].items()
    }
    return SOLVERS[template](public["details"], public["title"], tables)


def find(pattern: str, text: str) -> tuple:
    match = re.search(pattern, text)
    assert match is not None, (pattern, text)
    return match.groups()


def one(rows, **wanted):
    (row,) = [r for r in rows if all(r[k] == v for k, v in wanted.items())]
    return row


def work(day: date, days: int, free=()) -> date:
    while days:
        day += timedelta(days=1)
        days -= day.weekday() < 5 and day not in free
    return day


def span(first: date, last: date) -> list[date]:
    return [first + timedelta(days=i) for i in range((last - first).days + 1)]


def trip_cost(text, title, tables) -> Values:
    (usage,) = map(float, find(r"([\d.]+) litres per 100 km", text))
    if not tables:
        (km,) = map(float, find(r"drives (\d+) km", text))
        return {"distance_km": km, "litres_per_100km": usage, "answer": km / 100 * usage}
    (miles,) = map(float, find(r"drives (\d+) miles", text))
    (land,) = find(r"bought in (\w+)", text)
    litres = miles * MILE / 100 * usage * (2 if "same way back" in text else 1)
    price = one(tables["fuel"], country=land)["diesel"]
    values = {"distance_km": miles * MILE, "litres": litres, "eur_per_litre": price, "answer": litres * price}
    if "rates" in tables:
        (money,) = find(r"paid in (\w+)", text)
        values["per_eur"] = one(tables["rates"], currency=money)["per_eur"]
        values["answer"] *= values["per_eur"]
    return values


def project_calendar(text, title, tables) -> Values:
    if not tables:
        start, days = find(r"comes in on (\S+)\. The work ends (\d+) business", text)
        end = work(date.fromisoformat(start), int(days))
        return {"start_date": start, "work_days": int(days), "answer": str(end)}
    team, start = find(r"Team (\w+) starts right after ([\d-]+)", text)

    def days(name):
        return sum(row["days"] for row in tables["jobs"] if row["team"] == name)

    values: Values = {"start_date": start, f"{team.lower()}_days": days(team)}
    if "review" in text:
        (wait,) = find(r"ends (\d+) calendar days after", text)
        built = work(date.fromisoformat(start), days(team))
        return values | {"built": str(built), "answer": str(built + timedelta(days=int(wait)))}
    free = [date.fromisoformat(day) for day in find(r"; (\S+) and (\S+) are holidays", text)]
    other, deadline = find(r"team (\w+) goes on.*deadline is ([\d-]+)\.", text)
    first = work(date.fromisoformat(start), days(team), free)
    second = work(first, days(other))
    return values | {
        f"{other.lower()}_days": days(other),
        "first_team_ends": str(first),
        "second_team_ends": str(second),
        "answer": (date.fromisoformat(deadline) - second).days,
    }


def recipe(text, title, tables) -> Values:
    serves, grams, item, guests = find(r"for (\d+) people takes (\d+) g of (\w+)\. (\d+) people", text)
    needed = int(grams) / int(serves) * int(guests)
    if not tables:
        return {"guests": int(guests), "serves": int(serves), "answer": needed}
    row = one(tables["stock"], item=item)
    stocked = row["ounces"] * OUNCE * 1000
    values = {"guests": int(guests), "needed_g": needed, "stock_oz": row["ounces"], "stock_g": stocked}
    if "whole packs" not in text:
        return values | {"answer": needed - stocked}
    return values | {"pack_g": row["pack_g"], "answer": math.ceil((needed - stocked) / row["pack_g"])}


def shipping(text, title, tables) -> Values:
    if not tables:
        count, each, price = map(float, find(r"(\d+) parcels of ([\d.]+) kg each go at ([\d.]+) EUR", text))
        return {"parcels": count, "kg_each": each, "answer": count * each * price}
    (zone,) = find(r"to zone (\w)", text)

    def price(kg):
        return next(r["eur"] for r in tables["bands"] if r["zone"] == zone and r["over_kg"] < kg <= r["up_to_kg"])

    if "items" not in tables:
        count, pounds = find(r"(\d+) parcels of ([\d.]+) lb", text)
        kg = float(pounds) * POUND
        return {"parcels": int(count), "weight_kg": kg, "eur_each": price(kg), "answer": int(count) * price(kg)}
    order, service = find(r"order (\d+) go .* the (\w+) surcharge", text)
    grams = sum(row["grams"] for row in tables["items"] if row["order"] == int(order))
    percent = one(tables["surcharges"], service=service)["percent"]
    eur = price(grams / 1000)
    answer = eur + eur * percent / 100
    return {"grams": grams, "weight_kg": grams / 1000, "band_eur": eur, "percent": percent, "answer": answer}


def meeting(text, title, tables) -> Values:
    (moment,) = find(r"(\d{4}-\d\d-\d\d \d\d:\d\d)", text)
    start = datetime.fromisoformat(moment)

    def after(minutes):
        return (start + timedelta(minutes=minutes)).isoformat(" ", "minutes")

    if "agenda" not in tables:
        (minutes,) = map(int, find(r"lasts (\d+) minutes", text))
        if not tables:
            return {"start": moment, "minutes": minutes, "answer": after(minutes)}
        ahead = one(tables["cities"], city=find(r"ends in (\w+)", title)[0])["utc_minutes"]
        return {"minutes": minutes, "offset": ahead, "local_start": after(ahead), "answer": after(ahead + minutes)}
    day, here, there = find(r"talks of day (\d) are held in (\w+) from .* local time in (\w+)", text)
    total = sum(row["minutes"] for row in tables["agenda"] if row["day"] == int(day))
    a, b = (one(tables["cities"], city=city)["utc_minutes"] for city in (here, there))
    shift = total + b - a
    return {"agenda_minutes": total, "offset_from": a, "offset_to": b, "shift": shift, "answer": after(shift)}


def purchase(text, title, tables) -> Values:
    if not tables:
        price, percent = map(float, find(r"costs ([\d.]+) EUR\. The discount is (\d+) %", text))
        return {"price": price, "percent": percent, "answer": price * (100 - percent) / 100}
    count, item = find(r"(\d+) pieces of item (\w+)", text)
    price = one(tables["prices"], item=item)["eur"]
    if "loans" not in tables:
        off, tax = map(int, find(r"with (\d+) % off, then (\d+) % tax", text))
        net = int(count) * price * (100 - off) / 100
        return {"unit_price": price, "percent_off": off, "net": net, "answer": net * (100 + tax) / 100}
    deposit, years = map(int, find(r"(\d+) EUR are paid at once, the rest is a loan over (\d) years", text))
    yearly = one(tables["loans"], years=years)["percent_a_year"]
    loan = debt = int(count) * price - deposit
    low, high = 0.0, loan  # the payment after which nothing is owed, by bisection
    for _ in range(100):
        monthly = (low + high) / 2
        debt = loan
        for _ in range(12 * years):
            debt += debt * yearly / 1200 - monthly
        low, high = (monthly, high) if debt > 0 else (low, monthly)
    interest = monthly * 12 * years - loan
    return {"unit_price": price, "loan": loan, "percent_a_year": yearly, "monthly": monthly, "answer": interest}


def rental(text, title, tables) -> Values:
    first, last = (date.fromisoformat(day) for day in find(r"taken on (\S+) and given back on ([\d-]+)", text))
    days = span(first, last)
    values: Values = {"from_date": str(first), "to_date": str(last)}
    if not tables:
        return values | {"answer": len(days) - 1}
    row = one(tables["halls"], hall=find(r"Hall (\w+) is", text)[0])
    values |= {"days_between": len(days) - 1, "weekday_rate": row["weekday_rate"]}
    if "weekend rate" not in text:
        return values | {"answer": len(days) * row["weekday_rate"]}
    weekdays = sum(day.weekday() < 5 for day in days)
    rent = sum(row["weekday_rate"] if day.weekday() < 5 else row["weekend_rate"] for day in days)
    return values | {"business_days": weekdays, "weekend_rate": row["weekend_rate"], "answer": rent}


SOLVERS: Mapping[str, Callable[[str, str, dict], Values]] = {
    solver.__name__: solver for solver in (trip_cost, project_calendar, recipe, shipping, meeting, purchase, rental)
}
