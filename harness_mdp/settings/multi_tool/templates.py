"""The templates by name. Each makes up one task with one tool call (easy), three or four (standard), or five (hard).

A template draws an instance, makes the calls that solve it with the real tools, and says for every quantity which
slip would give which wrong value: wrong unit factor, off by one day, wrong row, wrong direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from harness_mdp.settings.multi_tool.chains import Chain, Plan
from harness_mdp.settings.multi_tool.dated import meeting, project_calendar, rental
from harness_mdp.settings.multi_tool.goods import recipe, shipping
from harness_mdp.settings.multi_tool.money import purchase, trip_cost

__all__ = ["TEMPLATES", "Maker"]

Maker = Callable[[Chain, str], Plan]
"""Makes up a task of a difficulty from an empty chain."""

TEMPLATES: Final[Mapping[str, Maker]] = {
    "trip_cost": trip_cost,
    "project_calendar": project_calendar,
    "recipe": recipe,
    "shipping": shipping,
    "meeting": meeting,
    "purchase": purchase,
    "rental": rental,
}
