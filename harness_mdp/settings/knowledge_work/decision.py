"""What a kind of decision is made of: the figures asked for, the limit, the options."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Asked", "Option", "Relation", "Template"]


class Relation(Enum):
    """How the figure of the reference table relates to what the records add up to, and so what the key figure is."""

    OVER = "percent by which the records exceed it"
    SHORT = "percent by which the records fall short of it"
    SHARE = "the records in percent of it"
    GAP = "percent by which it exceeds the records"
    NONE = "there is no reference table"


@dataclass(frozen=True)
class Asked:
    """A figure that the brief has to report."""

    label: str
    """Without the subject."""
    query: str
    wrong: tuple[str, ...]
    unit: str = ""
    """`%`, or nothing."""
    decimals: int = 0


@dataclass(frozen=True)
class Option:
    """A decision, and the beginnings of the words by which a brief names it."""

    text: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """One kind of decision."""

    name: str
    subject: str
    """What is decided about, e.g. `project`."""
    subjects: tuple[str, ...]
    records: str
    """Title of the table of records."""
    flag: str
    """Its second column."""
    flags: tuple[str, str, str]
    """Values of that column."""
    counted: tuple[str, ...]
    """Those that the records counted against the reference have."""
    amount: str
    """Its third column."""
    amounts: tuple[int, int]
    reference: str
    """Title of the reference table; empty for none."""
    reference_column: str
    relation: Relation
    first: Asked
    second: Asked
    key: Asked
    definition: str
    """How the key figure is defined; stands in the rule memo."""
    options: tuple[Option, Option, Option]
    """Above the limit; within it; when `second` is above its own limit."""
    group: str
    """What subjects with a limit of their own are called."""
    key_range: tuple[float, float] = (8.0, 60.0)
    """Values of the key figure that make a sensible task."""
