"""The tables that generated DB-Bench tasks are about: a few domains, filled at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

__all__ = ["DOMAINS", "Domain", "Made", "choose", "make_table"]

T = TypeVar("T")


@dataclass(frozen=True)
class Domain:
    """What a table is about: one column of unique names, two of categories, two of whole numbers."""

    table: str
    noun: str
    key: str
    names: tuple[tuple[str, ...], tuple[str, ...]]
    """First and second words of the unique names."""
    categories: tuple[tuple[str, tuple[str, ...]], ...]
    numbers: tuple[tuple[str, int, int], ...]
    """(column, lowest, highest); ranges span several digit counts, where comparing text goes wrong."""
    extra: tuple[tuple[str, int, int], ...]
    """Further number columns of hard tables, near in name to others."""


_PLACES = ("Oslo", "Lyon", "Porto", "Graz", "Turku", "Bergen", "Ghent", "Malmo")
_FIRST = ("Ada", "Bruno", "Clara", "Dario", "Elena", "Felix", "Greta", "Hugo", "Ines", "Jonas", "Katia", "Luca")
_LAST = ("Berg", "Costa", "Dahl", "Ernst", "Fabre", "Gallo", "Holm", "Ivers", "Janssen", "Keller", "Lund", "Moreau")
_AIR = ("North", "Silver", "Old", "Green", "Royal", "River", "Harbour", "Stone", "Little", "Grand")

DOMAINS: tuple[Domain, ...] = (
    Domain(
        table="Club Members",
        noun="member",
        key="Name",
        names=(_FIRST, _LAST),
        categories=(("Home City", _PLACES), ("Sport", ("Rowing", "Judo", "Tennis", "Chess", "Sailing"))),
        numbers=(("Age", 8, 71), ("Yearly Fee", 60, 1450)),
        extra=(("Member No", 100, 9999), ("Guests", 0, 12)),
    ),
    Domain(
        table="book_stock",
        noun="book",
        key="Title",
        names=(("The Glass", "A Quiet", "The Last", "Paper", "Winter", "Seven", "Hidden", "Blue"), _LAST),
        categories=(("Genre", ("Crime", "History", "Poetry", "Travel")), ("Language", ("Danish", "French", "Polish"))),
        numbers=(("Pages", 48, 1240), ("Copies", 1, 240)),
        extra=(("Pages Read", 10, 400), ("Year", 1950, 2023)),
    ),
    Domain(
        table="Freight Trains",
        noun="train",
        key="Train",
        names=(_AIR, ("Express", "Arrow", "Carrier", "Runner", "Line", "Comet", "Hauler", "Star")),
        categories=(("Operator", ("Norrail", "Cargex", "Transalp", "Baltic Rail")), ("Destination", _PLACES)),
        numbers=(("Wagons", 6, 120), ("Load ( t )", 90, 4200)),
        extra=(("Empty Wagons", 0, 30), ("Delay ( min )", 0, 180)),
    ),
    Domain(
        table="Museum Visits",
        noun="museum",
        key="Museum",
        names=(_AIR, ("Gallery", "Archive", "House", "Collection", "Mill", "Tower", "Hall", "Cabinet")),
        categories=(("Town", _PLACES), ("Kind", ("Art", "Nature", "Science", "Local history"))),
        numbers=(("Rooms", 3, 140), ("Visitors", 800, 99000)),
        extra=(("Evening Visitors", 20, 9000), ("Founded", 1790, 2015)),
    ),
    Domain(
        table="phone_models",
        noun="model",
        key="Model",
        names=(
            ("Alto", "Brio", "Core", "Dune", "Echo", "Flint", "Glide", "Halo"),
            ("X1", "X2", "S5", "S9", "Pro", "Max"),
        ),
        categories=(("Maker", ("Nordtel", "Kiwi", "Orbit")), ("Colour", ("Black", "White", "Red", "Sand"))),
        numbers=(("Storage GB", 16, 1024), ("Price", 89, 1399)),
        extra=(("Old Price", 99, 1599), ("Rating", 1, 10)),
    ),
)


@dataclass(frozen=True)
class Made:
    """A filled table."""

    domain: Domain
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str]:
        """Cells of column `name`, in row order."""
        index = self.columns.index(name)
        return [row[index] for row in self.rows]


def choose(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of `options`."""
    return options[int(rng.integers(len(options)))]


def make_table(rng: np.random.Generator, *, wide: bool) -> Made:
    """A table of 8 to 16 rows and 5 columns, 7 if `wide`."""
    domain = choose(rng, DOMAINS)
    numbers = domain.numbers + (domain.extra if wide else ())
    columns = (domain.key, *(name for name, _ in domain.categories), *(name for name, _, _ in numbers))
    firsts, seconds = domain.names
    n = min(int(rng.integers(8, 17)), len(firsts) * len(seconds))
    picks = rng.permutation(len(firsts) * len(seconds))[:n]
    rows = tuple(
        (
            f"{firsts[pick // len(seconds)]} {seconds[pick % len(seconds)]}",
            *(choose(rng, values) for _, values in domain.categories),
            *(str(_spread(rng, low, high)) for _, low, high in numbers),
        )
        for pick in map(int, picks)
    )
    return Made(domain, columns, rows)


def _spread(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from `low` to `high`, half the time from the lowest tenth, so that digit counts mix."""
    top = low + max(1, (high - low) // 10) if rng.random() < 0.5 else high
    return int(rng.integers(low, top + 1))
