"""A small invented world for one research task: entities, facts, and the documents that state them.

Names are invented, so that no model can know the answers by heart. Every document is about one entity and states
its facts, one a sentence, in one of several wordings. The caller fixes the facts that a question needs; all other
values are fresh names and years, so that nothing else in the world can answer the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["RELATIONS", "TRADES", "Document", "Entity", "World"]

Values = tuple[str, ...]

RELATIONS: Mapping[str, Mapping[str, tuple[Values, Values]]] = {
    # kind -> relation -> (kinds of its values, wordings with {0}, {1}, ... for them)
    "ship": {
        "builder": (("company",), ("was built by {0}", "came from the yard of {0}")),
        "launched": (("year",), ("was launched in {0}", "first put to sea in {0}")),
        "captain": (("person",), ("sails under captain {0}", "has {0} as captain")),
        "port": (("town",), ("has {0} as home port", "is registered in {0}")),
    },
    "book": {
        "author": (("person",), ("was written by {0}", "is the work of the author {0}")),
        "published": (("year",), ("was published in {0}", "first appeared in {0}")),
        "scene": (("town",), ("is set in {0}", "tells of a summer in {0}")),
    },
    "person": {
        "birthplace": (("town",), ("was born in the town of {0}", "comes from the town of {0}")),
        "born": (("year",), ("was born in the year {0}", "has {0} as year of birth")),
        "employer": (("company",), ("worked for {0}", "was employed by {0}")),
        "mayor": (("town", "year", "year"), ("was mayor of {0} from {1} to {2}", "led {0} as mayor from {1} to {2}")),
    },
    "town": {
        "river": (("river",), ("lies on the {0}", "stands on the banks of the {0}")),
        "founded": (("year",), ("was founded in {0}", "dates from {0}")),
        "market": (("year",), ("has held a yearly market since {0}", "won the right to a market in {0}")),
    },
    "company": {
        "seat": (("town",), ("is based in {0}", "has its head office in {0}")),
        "established": (("year",), ("was established in {0}", "opened its doors in {0}")),
        "founder": (("person",), ("was started by {0}", "has {0} as its founder")),
    },
    "bridge": {
        "designer": (("person",), ("was designed by {0}", "was built to plans by {0}")),
        "opened": (("year",), ("was opened in {0}", "has carried traffic since {0}")),
        "spans": (("river",), ("crosses the {0}", "leads over the {0}")),
    },
}
"""What a document about an entity of a kind can state."""

_OPTIONAL = {"mayor"}
"""Relations that are stated only where a question needs them."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST = _words(
    "Ada Anton Bela Bruno Carla Cyril Dora Edgar Elsa Emil Fanny Felix Greta Gustav Hanna Hugo Ida Igor Jana Jonas "
    "Klara Konrad Lena Leon Mara Milan Nora Oskar Petra Quentin Rosa Ruben Silva Stefan Thea "
    "Tobin Ulla Viktor Wanda Yuri"
)
_LAST = _words(
    "Abbot Barlow Calder Denholm Eastman Fairley Garrick Hadley Ingram Jessop Kendall Lambert Marlow Norwood Osborne "
    "Pickard Quimby Radford Selwyn Thorne "
    "Underhill Vickers Walcott Yardley Ashdown Birkett Colby Dunstan Elwood "
    "Fenwick Goddard Hartley Ibsen Kirby Langley Mercer Nesbit Oakley Prescott Rowley"
)
_TOWN = (
    _words("Arden Bram Cor Dun El Fal Gor Hal Kel Lor Mer Nor Os Pel Rav Sel Tor Ul Ven Wes"),
    _words("bury field ford gate holm mouth stead wick"),
)
_RIVER = (
    _words("Al Bre Cal Dor Es Fen Gla Hol Is Lim Mar Ner Or Pem Ru Sab Tam Ur Ve Wen"),
    _words("da ne ra sk va"),
)
_SHIP = (
    _words("Silver Golden Northern Swift Brave Grey Crimson Distant Proud Restless"),
    _words("Heron Gull Osprey Petrel Dolphin Lantern Compass Falcon Otter Meridian Comet Swallow"),
)
_BOOK = (
    _words("Quiet Broken Hidden Last Empty Frozen Burning Secret Pale Second"),
    _words("Harbour Orchard Garden Winter Letter Mirror Station Island Window Promise Voyage Stranger"),
)
_COMPANY = (
    _words(
        "Kestrel Anchor Beacon Crown Delta Ember Granite Juniper Linden Maple Nickel Opal Pioneer Quarry Raven Summit"
    ),
    _words("Works Yards Brothers Partners Foundry Trading"),
)
_BRIDGE = (
    _words("Abbey Castle Chapel Garrison Lower Market Mill Miller Old Orchard Priory Quay Saint Upper Weaver"),
    _words("Bridge Viaduct Crossing Footbridge"),
)
TRADES = _words("baker engineer gardener lawyer painter pilot printer sailor surveyor teacher weaver writer")
_YEARS = (1700, 1990)
_OFFICE = (1750, 1950)


@dataclass(frozen=True)
class Entity:
    """Something a document is about, with its facts in the order in which the document states them."""

    kind: str
    name: str
    noun: str
    """What the text calls it: its kind, or a person's trade."""
    facts: tuple[tuple[str, Values], ...]


@dataclass(frozen=True)
class Document:
    """A passage of the corpus."""

    id: str
    title: str
    text: str
    lead: str
    """The first sentence, which a retrieval hit shows."""


@dataclass
class World:
    """Builds entities one by one; every name and year it hands out is used once."""

    rng: np.random.Generator
    sentences: int
    """Facts a document states, where its kind has as many."""
    entities: list[Entity] = field(default_factory=list[Entity])
    used: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Names and years handed out, by kind."""

    def fresh(self, kind: str) -> str:
        """A name or year that nothing else in this world has."""
        taken = self.used.setdefault(kind, [])
        while True:
            value = self._draw(kind)
            if value not in taken:
                taken.append(value)
                return value

    def fresh_values(self, kind: str, relation: str) -> Values:
        """Values for a relation that nothing else in this world has; a term of office lasts 4 to 12 years."""
        if relation == "mayor":
            first = int(self.rng.integers(*_OFFICE))
            return self.fresh("town"), str(first), str(first + int(self.rng.integers(4, 13)))
        return tuple(self.fresh(value) for value in RELATIONS[kind][relation][0])

    def years(self, count: int) -> list[str]:
        """`count` fresh years, ascending."""
        return sorted(self.fresh("year") for _ in range(count))

    def add(self, kind: str, name: str | None = None, *, facts: Mapping[str, str | Values]) -> str:
        """Adds an entity with the facts given and fresh ones up to `sentences`; its name."""
        name = name or self.fresh(kind)
        chosen: list[tuple[str, Values]] = [(key, v if isinstance(v, tuple) else (v,)) for key, v in facts.items()]
        spare = [key for key in RELATIONS[kind] if key not in facts and key not in _OPTIONAL]
        for key in self.rng.permutation(spare)[: max(0, self.sentences - len(chosen))]:
            chosen.append((str(key), self.fresh_values(kind, str(key))))  # noqa: PERF401  (draws in order)
        order = self.rng.permutation(len(chosen))
        noun = str(self.rng.choice(TRADES)) if kind == "person" else kind
        self.entities.append(Entity(kind, name, noun, tuple(chosen[i] for i in order)))
        return name

    def documents(self) -> dict[str, Document]:
        """One document per entity in shuffled order, by the entity's name; ids are doc-1, doc-2, ..."""
        order = self.rng.permutation(len(self.entities))
        return {self.entities[i].name: self._write(self.entities[i], n) for n, i in enumerate(order, start=1)}

    def _write(self, entity: Entity, number: int) -> Document:
        article = "The " if entity.kind in ("ship", "bridge") else ""
        sentences: list[str] = []
        for relation, values in entity.facts:
            wordings = RELATIONS[entity.kind][relation][1]
            predicate = wordings[int(self.rng.integers(len(wordings)))].format(*values)
            if not sentences:
                subject = f"{article}{entity.name}, {_with_article(entity.noun)},"
            elif entity.kind != "person" and self.rng.random() < 0.5:
                subject = "It"
            else:
                subject = f"The {entity.noun}" if self.rng.random() < 0.5 else f"{article}{entity.name}"
            sentences.append(f"{subject} {predicate}.")
        return Document(f"doc-{number}", entity.name, " ".join(sentences), sentences[0])

    def _draw(self, kind: str) -> str:
        match kind:
            case "year":
                return str(int(self.rng.integers(*_YEARS)))
            case "person":
                return f"{self._pick(_FIRST)} {self._pick(_LAST)}"
            case "town":
                return self._pick(_TOWN[0]) + self._pick(_TOWN[1])
            case "river":
                return f"River {self._pick(_RIVER[0])}{self._pick(_RIVER[1])}"
            case "book":
                return f"The {self._pick(_BOOK[0])} {self._pick(_BOOK[1])}"
            case _:
                first, second = {"ship": _SHIP, "company": _COMPANY, "bridge": _BRIDGE}[kind]
                return f"{self._pick(first)} {self._pick(second)}"

    def _pick(self, words: Sequence[str]) -> str:
        return words[int(self.rng.integers(len(words)))]


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
