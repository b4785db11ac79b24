"""Solves tasks of `knowledge_work` a second time: in plain Python from the rows, and from the words of the memos."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Solution:
    figures: dict[str, float]
    limit: int
    stance: str
    decision: str
    owner: str


def solve(public) -> Solution:
    x = public["subject"]
    memos = {memo["title"]: memo["body"] for memo in public["memos"]}
    figures = _figures(public, x)
    key = next(iter(figures))
    guidance = memos["Guidance in force"]
    limit = int(re.search(r"The limit for the [\w ]+ is (\d+)", guidance)[1])
    own = memos.get("Exceptions to the guidance", "")
    if re.search(rf"\b{x}\b", own):
        limit = int(re.search(r"is (\d+)%? instead", own)[1])
    above = figures[key] > limit
    decision = re.search(r"Above the limit: ([\w ]+)\." if above else r"Within it: ([\w ]+)\.", guidance)[1]
    second = re.search(r"But if there are more than (\d+) ([\w ]+): ([\w ]+), whatever", guidance)
    if second and figures[second[2]] > int(second[1]):
        decision = second[3]
    owner = re.search(rf"{decision}: (\w+ \w+)", memos.get("Owners of decisions", ""))
    return Solution(figures, limit, "above" if above else "within", decision, owner[1] if owner else "")


def _figures(public, x) -> dict[str, float]:
    """Figures by label, the key figure first."""
    by_title = {table["title"]: table for table in public["tables"]}

    def rows(title):
        return [row[1:] for row in by_title[title]["rows"] if row[0] == x]

    def reference(title):
        return rows(title)[0][0]

    if "Ledger" in by_title:
        spent = [amount for state, amount in rows("Ledger") if state != "planned"]
        budget = reference("Budgets")
        return {
            "overrun": (sum(spent) - budget) / budget * 100,
            "spend": sum(spent),
            "open entries": sum(state == "open" for state, _ in rows("Ledger")),
        }
    if "Deliveries" in by_title:
        states = [state for state, _ in rows("Deliveries")]
        late = states.count("late")
        return {
            "late share": late / len(states) * 100,
            "late deliveries": late,
            "lost deliveries": states.count("lost"),
        }
    if "Sales" in by_title:
        net = sum(amount for channel, amount in rows("Sales") if channel != "returned")
        target = reference("Targets")
        return {
            "shortfall": (target - net) / target * 100,
            "net sales": net,
            "wholesale orders": sum(channel == "wholesale" for channel, _ in rows("Sales")),
        }
    if "Incidents" in by_title:
        lengths = [minutes for severity, minutes in rows("Incidents") if severity in ("major", "critical")]
        return {
            "mean outage": sum(lengths) / len(lengths),
            "downtime minutes": sum(lengths),
            "critical incidents": sum(severity == "critical" for severity, _ in rows("Incidents")),
        }
    if "Work log" in by_title:
        hours = sum(amount for kind, amount in rows("Work log") if kind in ("regular", "overtime"))
        return {
            "load": hours / reference("Capacity") * 100,
            "worked hours": hours,
            "overtime entries": sum(kind == "overtime" for kind, _ in rows("Work log")),
        }
    if "Orders" in by_title:
        demand = sum(units for state, units in rows("Orders") if state == "open")
        return {
            "stock use": demand / reference("Stock") * 100,
            "open demand": demand,
            "cancelled orders": sum(state == "cancelled" for state, _ in rows("Orders")),
        }
    quotes = [price for source, price in rows("Competitor quotes") if source in ("online", "catalogue")]
    mean = sum(quotes) / len(quotes)
    return {
        "price gap": (reference("Price list") - mean) / mean * 100,
        "mean quote": mean,
        "catalogue quotes": sum(source == "catalogue" for source, _ in rows("Competitor quotes")),
    }
