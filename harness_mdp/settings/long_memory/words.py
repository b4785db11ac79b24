"""The vocabulary of `long_memory`: what is remembered, about whom, and what else is chatted about.

No word that names a thing, a value, a person or an activity occurs in the chatter, so that a fact is stated only
where the generator put it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

__all__ = [
    "ACTIVITIES",
    "ASSISTANT_CHATTER",
    "ME",
    "PEOPLE",
    "ROLES",
    "THINGS",
    "TOPICS",
    "USER_CHATTER",
    "genitive",
]

ME: Final = "I"
"""The owner who is the user."""


def genitive(owner: str) -> str:
    """`my` or `Nora's`."""
    return "my" if owner == ME else f"{owner}'s"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _pairs(first: str, second: str) -> tuple[str, ...]:
    return tuple(f"{a} {b}" for a, b in product(first.split(), second.split()))


PEOPLE: Final = _words(
    "Ada Bela Carla Dario Elsa Felix Greta Hugo Ida Jonas Klara Leon Mara Nils Olga Petra Quentin Rosa Stefan Thea"
)

THINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "home city": _words(
        "Lisbon Oslo Lyon Turin Ghent Porto Graz Malmo Bergen Bilbao Krakow Leipzig Utrecht Aarhus Basel Trieste Cork"
    ),
    "phone plan": _pairs("Orbit Vela Tandem Corvus", "Flex Lite Max Solo"),
    "monthly rent": tuple(str(euros) for euros in range(610, 2000, 30)),
    "gym": _pairs("Iron Harbour Granite Summit", "Yard Loft Works Club"),
    "employer": _pairs("Kestrel Juniper Beacon Quarry", "Foundry Partners Logistics Labs"),
    "car": _pairs("Fjord Sirocco Merle Tarpan", "Estate Hatchback Coupe Van"),
    "favourite tea": _pairs("smoky jasmine toasted spiced", "oolong sencha rooibos assam"),
    "locker code": tuple(str(1013 + 379 * step) for step in range(20)),
    "dentist appointment": tuple(
        f"{day} at {time}"
        for day, time in product(_words("Monday Tuesday Wednesday Thursday Friday"), _words("8:15 9:40 11:30 14:20"))
    ),
    "bank": _pairs("Alder Meridian Pearl Union", "Savings Trust Credit Mutual"),
}
"""What has a value that changes, and its values; none is part of another."""

ROLES: Final = ("piano teacher", "running partner", "flatmate", "project lead")
"""What a person is to the user; its value is a person."""

ACTIVITIES: Final = (
    "went swimming",
    "baked rye bread",
    "played badminton",
    "visited the aquarium",
    "washed the curtains",
    "practised calligraphy",
    "repaired the bicycle",
)
"""What can be counted."""

TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "soups": _words("lentils leeks stock thyme carrots celery barley ginger croutons parsley"),
    "gardening": _words("tomatoes compost roses seedlings mulch hedges slugs beans tulips lavender"),
    "films": _words("thrillers westerns comedies directors trailers soundtracks sequels subtitles remakes scripts"),
    "spreadsheets": _words("formulas columns filters charts macros pivots cells imports templates totals"),
    "photography": _words("lenses tripods portraits shutters filters landscapes exposure contrast albums prints"),
    "chess": _words("openings endgames gambits bishops pawns tactics sacrifices clocks rooks studies"),
    "woodwork": _words("dovetails chisels varnish planks clamps sandpaper drawers shelves glue joints"),
    "birds": _words("finches owls feeders nests robins herons binoculars migration swallows songs"),
    "knitting": _words("scarves needles yarn cables sleeves gauges socks patterns mittens stitches"),
    "stars": _words("planets comets telescopes nebulae eclipses meteors galaxies craters moons auroras"),
    "history": _words("castles treaties maps archives empires coins ruins chronicles sieges dynasties"),
    "languages": _words("verbs accents idioms vowels dialects grammar spelling proverbs plurals prepositions"),
}
"""What a session is about, and words of that topic."""

USER_CHATTER: Final = (
    "Do you have a good tip for {x}?",
    "I keep getting stuck with {x} and {y}.",
    "Could you compare {x} with {y} for me?",
    "That helps. And how do {x} fit in?",
    "Yesterday I read a long article about {x}.",
    "Is it normal that {x} take so much time?",
    "Please give me three ideas around {x}.",
    "I tried what you said about {x}, with mixed results.",
    "What would a beginner get wrong with {x}?",
    "Let us go back to {y} for a moment.",
    "Are {x} worth the effort, honestly?",
    "My notes on {y} are a mess.",
)

ASSISTANT_CHATTER: Final = (
    "With {x} it pays to begin small and to repeat it often.",
    "Most people find {x} easier once they understand {y}.",
    "I would look at {y} first, then at {x}.",
    "A common mistake with {x} is to rush; patience helps.",
    "There are several schools of thought about {x}, and none is wrong.",
    "You could keep a short list of {x} and tick them off.",
    "Good question. {y} and {x} are related, but not the same.",
    "In short: fewer {x}, better chosen.",
    "Here are three ideas: simplify {x}, borrow from {y}, and rest in between.",
    "That is quite normal, especially with {x}.",
)
