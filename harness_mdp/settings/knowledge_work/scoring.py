"""The sealed rubric of `knowledge_work`, and how figures, stances and decisions are found in free text.

Weights: the decision 5 of 10, since a brief is written for it (half of it when the key figure is wrong: a lucky guess);
the figures 2.5; the limit that applies, the side of it and the owner 1.5; citations of what is right 1. A brief with
the wrong decision, or with the right one and no right figure, stays below 0.5.

A statement counts when a bullet or sentence makes it *and nothing contradicts it*: another number beside the label,
another option in the recommendation, another limit or owner. So listing every possibility scores nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from harness_mdp.hashing import Json
from harness_mdp.settings.knowledge_work.brief import FINDINGS, RECOMMENDATION, SUMMARY, Figure, Unit, units
from harness_mdp.settings.protocol import Criterion

__all__ = ["about", "grade", "options_named", "same_figure"]

MAX_FIGURES = 5
"""Numbers that one bullet or sentence may hold and still state something."""

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "mean": ("average",),
    "share": ("percentage", "proportion", "rate"),
    "spend": ("spent", "expenditure"),
    "load": ("workload", "utili"),
    "use": ("usage", "utili"),
    "gap": ("difference",),
    "outage": ("downtime",),
    "entries": ("entry",),
    "deliveries": ("delivery",),
}
_LIMIT = re.compile(r"\b(limits?|thresholds?|maximum|cap|ceiling|allowance|allowed)\b", re.IGNORECASE)
_NOT = r"\b(?:not|never|no|neither|cannot|\w+n't)\s+(?:\w+\s+)?"
_WITHIN = r"(?:within|below|under|less than|lower than|at most)\b"
_ABOVE = r"(?:above|exceed\w*|over|more than|higher than|greater than|beyond|breach\w*|outside)\b"
_NEGATION = re.compile(
    r"(?:\b(?:not|no|never|without|against|neither|nor|cannot)|n't|instead of|rather than|than to)\s+(?:\w+\s+){0,2}$",
    re.IGNORECASE,
)


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
    explained = [float(f["value"]) for f in figures] + [float(limit["value"]), *map(float, limit["rivals"])]
    stated = [(f, _stating(brief, public, f, explained)) for f in figures]
    key_right = all(found for f, found in stated if f["key"])
    decided = [u for u in brief if u.section == RECOMMENDATION and options_named([u], public)]
    right = options_named(brief, public) == (sealed["decision"],)
    limits = _limit_units(brief, public, figures)
    limit_right = _has_limit(limits, limit)
    points = [limit_right, _stance(limits) == sealed["stance"]]
    if sealed["owner"]:
        points.append(_names_owner(brief, sealed["owner"], sealed["rival_owners"]))
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


def options_named(brief: Iterable[Unit], public: Mapping[str, Json]) -> tuple[str, ...]:
    """Options that the recommendation names without a negation before them, each once, in the order of the task."""
    recommended = " . ".join(unit.text for unit in brief if unit.section == RECOMMENDATION)
    return tuple(o["text"] for o in public["options"] if any(_affirmed(recommended, word) for word in o["words"]))


def about(unit: Unit, label: str, public: Mapping[str, Json]) -> bool:
    """Whether a unit speaks of the figure `label` of the task's subject: all its words, or synonyms, and no other."""
    names = {str(name).lower() for name in public["others"]}
    if names & unit.words and str(public["subject"]).lower() not in unit.words:
        return False
    return all(_has_word(unit, word) for word in label.lower().split())


def same_figure(found: Figure, value: float, decimals: int) -> bool:
    """Whether a written figure is `value`: as asked, or with more decimals."""
    return abs(found.value - abs(value)) <= (0.06 if decimals else 0.01)


def _stating(
    brief: Sequence[Unit], public: Mapping[str, Json], figure: Mapping[str, Json], explained: Sequence[float]
) -> list[Unit]:
    """The units that state the figure rightly; none when one of those about it holds a number out of nowhere."""
    speaking = [u for u in brief if u.section in (SUMMARY, FINDINGS, "") and about(u, figure["label"], public)]
    for unit in speaking:
        if len(unit.figures) > MAX_FIGURES:
            return []
        if any(all(not same_figure(f, value, 1) for value in explained) for f in unit.figures):
            return []
    value, decimals = float(figure["value"]), int(figure["decimals"])
    return [u for u in speaking if any(same_figure(f, value, decimals) for f in u.figures)]


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
    text = re.sub(_NOT + _ABOVE, "within", unit.text, flags=re.IGNORECASE)
    text = re.sub(_NOT + _WITHIN, "above", text, flags=re.IGNORECASE)
    patterns = {"within": _WITHIN, "above": _ABOVE}
    return {stance for stance, pattern in patterns.items() if re.search(rf"\b{pattern}", text, re.IGNORECASE)}


def _names_owner(brief: Sequence[Unit], owner: str, rivals: Sequence[str]) -> bool:
    words = frozenset[str]().union(*(u.words for u in brief if u.section == RECOMMENDATION))
    return set(owner.lower().split()) <= words and not any(set(name.lower().split()) <= words for name in rivals)


def _cites(stating: Sequence[Unit], needed: Sequence[str], allowed: set[str]) -> bool:
    """Whether some stating unit cites all it needs and nothing beside the point."""
    return any(set(needed) <= set(unit.citations) <= allowed for unit in stating)


def _affirmed(text: str, word: str) -> bool:
    mentions = re.finditer(rf"(?<![\w-]){re.escape(word)}", text, re.IGNORECASE)
    return any(not _NEGATION.search(text[max(0, m.start() - 40) : m.start()]) for m in mentions)


def _has_word(unit: Unit, word: str) -> bool:
    stems = [re.sub(r"s$", "", word), *_SYNONYMS.get(word, ())]
    return any(found.startswith(stem) for found in unit.words for stem in stems)


def _share(verdicts: Iterable[bool]) -> float:
    counted = list(verdicts)
    return sum(counted) / len(counted) if counted else 0.0
