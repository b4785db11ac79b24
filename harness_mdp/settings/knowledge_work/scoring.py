"""The sealed rubric of `knowledge_work`, and how limits and the side of them are found in free text.

How figures are read stands in `statements`, how the decision and its owner are in `recommending`.

Weights: the decision 5 of 10, since a brief is written for it (half of it when the key figure is wrong: a lucky guess);
the figures 2.5; the limit that applies, the side of it and the owner 1.5; citations of what is right 1. A brief with
the wrong decision, or with the right one and no right figure, stays below 0.5.

A statement counts when a bullet or sentence makes it *and nothing contradicts it*: another number for the label,
another option anywhere, another limit or owner. So listing every possibility scores nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from harness_mdp.hashing import Json
from harness_mdp.settings.knowledge_work.brief import FINDINGS, RECOMMENDATION, SUMMARY, Figure, Unit, units
from harness_mdp.settings.knowledge_work.recommending import names_owner, options_named
from harness_mdp.settings.knowledge_work.statements import ABOVE, LIMIT, WITHIN, readings, word_pattern
from harness_mdp.settings.protocol import Criterion

__all__ = ["about", "grade", "same_figure"]

MAX_FIGURES = 5
"""Numbers that one bullet or sentence may hold and still state something."""

_LIMIT = re.compile(LIMIT, re.IGNORECASE)
_DENIED = re.compile(r"\b(?:false|wrong|untrue|incorrect|mistaken|opposite|invented|fake)\b|not true", re.IGNORECASE)
_NOT = r"\b(?:not|never|no|neither|cannot|\w+n't)\s+(?:\w+\s+)?"


def grade(artifact: str, public: Mapping[str, Json], sealed: Mapping[str, Json]) -> tuple[Criterion, ...]:
    """`decision`, `figures`, `points`, `citations`.

    Args:
        artifact: what was submitted.
        public: the task's public part; its subject and options are read.
        sealed: see `writing.sealed_values`.
    """
    brief = units(artifact)
    figures: Sequence[Json] = sealed["figures"]
    limit = sealed["limit"]
    labels = [str(f["label"]) for f in figures]
    explained = [float(f["value"]) for f in figures] + [float(limit["value"]), *map(float, limit["rivals"])]
    stated = [(f, _stating(brief, public, f, labels, explained)) for f in figures]
    key_right = all(found for f, found in stated if f["key"])
    decided = [u for u in brief if u.section == RECOMMENDATION and options_named([u], public)]
    right = options_named(brief, public) == (sealed["decision"],)
    limits = _limit_units(brief, public, figures)
    limit_right = _has_limit(limits, limit)
    points = [limit_right, _stance(limits) == sealed["stance"]]
    if sealed["owner"]:
        points.append(names_owner(brief, sealed["owner"], sealed["rival_owners"], public))
    relevant = {sealed["rule"], limit["source"], *(name for f in figures for name in f["sources"])}
    rules = {sealed["rule"], limit["source"]}
    cited = [_cites(found, f["sources"], {*f["sources"], *rules}) for f, found in stated]
    cited.append(limit_right and _cites(limits, [limit["source"]], relevant))
    cited.append(right and _cites(decided, [sealed["rule"]], relevant))
    return (
        Criterion("decision", (1.0 if key_right else 0.5) if right else 0.0, 5.0),
        Criterion("figures", _share(bool(found) for _, found in stated), 2.5),
        Criterion("points", _share(points), 1.5),
        Criterion("citations", _share(cited), 1.0),
    )


def about(unit: Unit, label: str, public: Mapping[str, Json]) -> bool:
    """Whether a unit speaks of the figure `label` of the task's subject: all its words, or synonyms, and no other."""
    names = {str(name).lower() for name in public["others"]}
    if names & unit.words and str(public["subject"]).lower() not in unit.words:
        return False
    return all(re.search(word_pattern(word), unit.text, re.IGNORECASE) for word in label.lower().split())


def same_figure(found: Figure, value: float, decimals: int) -> bool:
    """Whether a written figure is `value`: as asked, or with more decimals, and with its sign."""
    return abs(found.value - value) <= (0.06 if decimals else 0.01)


def _stating(
    brief: Sequence[Unit],
    public: Mapping[str, Json],
    figure: Mapping[str, Json],
    labels: Sequence[str],
    explained: Sequence[float],
) -> list[Unit]:
    """The units that state the figure rightly; none when one of those about it holds a number out of
    nowhere, gives the figure another number or calls something false.
    """
    speaking = [u for u in brief if u.section in (SUMMARY, FINDINGS, "") and about(u, figure["label"], public)]
    for unit in speaking:
        if len(unit.figures) > MAX_FIGURES:
            return []
        if any(all(not same_figure(f, value, 1) for value in explained) for f in unit.figures):
            return []
        if _DENIED.search(unit.text):
            return []
    value, decimals = float(figure["value"]), int(figure["decimals"])
    stating: list[Unit] = []
    for unit in speaking:
        said = [reading for reading in readings(unit, labels, public) if reading.label == figure["label"]]
        if not all(same_figure(reading.figure, value, decimals) for reading in said):
            return []
        if any(reading.plain for reading in said):
            stating.append(unit)
    return stating


def _limit_units(brief: Sequence[Unit], public: Mapping[str, Json], figures: Sequence[Json]) -> list[Unit]:
    """Units on the limit of the key figure: those with a word for it that speak of no other figure alone, and those
    that put the key figure above or within something.
    """
    key = next((f["label"] for f in figures if f["key"]), "")
    rest = [f["label"] for f in figures if not f["key"]]
    return [
        u
        for u in brief
        if u.section != RECOMMENDATION
        and (
            (about(u, key, public) and (_LIMIT.search(u.text) or _stances(u)))
            or (_LIMIT.search(u.text) and not any(about(u, label, public) for label in rest))
        )
    ]


def _has_limit(limits: Sequence[Unit], limit: Mapping[str, Json]) -> bool:
    found = [figure for unit in limits for figure in unit.figures]
    rival = any(same_figure(f, float(value), 0) for f in found for value in limit["rivals"])
    return not rival and any(same_figure(f, float(limit["value"]), 0) for f in found)


def _stance(limits: Sequence[Unit]) -> str:
    """`above` or `within`, where the units on the limit agree; else nothing."""
    stances = frozenset[str]().union(*map(_stances, limits))
    return next(iter(stances)) if len(stances) == 1 else ""


def _stances(unit: Unit) -> set[str]:
    """Which of `above` and `within` the unit says, read with the negation before them."""
    text = re.sub(_NOT + ABOVE, "within", unit.text, flags=re.IGNORECASE)
    text = re.sub(_NOT + WITHIN, "above", text, flags=re.IGNORECASE)
    patterns = {"within": WITHIN, "above": ABOVE}
    return {stance for stance, pattern in patterns.items() if re.search(pattern, text, re.IGNORECASE)}


def _cites(stating: Sequence[Unit], needed: Sequence[str], allowed: set[str]) -> bool:
    """Whether some stating unit cites all it needs and nothing beside the point."""
    return any(set(needed) <= set(unit.citations) <= allowed for unit in stating)


def _share(verdicts: Iterable[bool]) -> float:
    counted = list(verdicts)
    return sum(counted) / len(counted) if counted else 0.0
