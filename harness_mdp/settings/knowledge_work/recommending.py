"""Which option a brief recommends and whom it names as owner, read from plain statements and nothing else.

A sentence of the recommendation decides when it *consists of* an option and of words that cannot turn it around
(`we should`, `the decision is`), of options set aside (`and not ...`, `rather than ...`) and of a reason that speaks of
a figure, a limit or the rule (`because ...`). A word beyond these, and it decides nothing: no list of the ways to say
no is needed, which a new way would pass by. Another option named anywhere in the brief, other than to set it aside,
counts as named too. Only for sentences *beside* the decision, which may say anything, is there a list of words that
undo it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from harness_mdp.hashing import Json
from harness_mdp.settings.knowledge_work.brief import RECOMMENDATION, Unit
from harness_mdp.settings.knowledge_work.statements import ABOVE, LIMIT, WITHIN, label_pattern

__all__ = ["names_owner", "options_named"]

_PLAIN = frozenset(
    re.findall(
        r"\w+",
        """a action advise an and be best but clear clearly course decided decision do following for go hence here
    immediately is
    it must next now of on option our ours propose recommend recommendation recommended right shall should so
    step team that the then therefore this thus to us we will with""",
    )
)
"""Words that leave an option as it is, in any order."""
_OWNING = frozenset(
    re.findall(
        r"\w+",
        """accountable and assigned be by carried carry charge decision for in is lead leads led must of out owned
    owner ownership owns person recommendation responsible shall should that the this to who will with""",
    )
)
_REASON = (
    r"\b(?:because|since|given|due to|based on|according to|in line with"
    r"|as(?= (?:the|its|there|it|this|our|required|\w+ (?:of|is|are))\b))\b"
)
"""Not `as a last resort`, `as soon as`, `as if`."""
_CONDITION = re.compile(r"\b(?:if|unless|until|when|once|but|provided|except)\b", re.IGNORECASE)
_LEADING = re.compile(rf"^\s*({_REASON}.*?),\s+", re.IGNORECASE)
_TRAILING = re.compile(rf"[,(:–-]?\s*({_REASON}.*)$", re.IGNORECASE)
_BRACKETED = re.compile(r"\(([^()]*)\)")
_EVIDENCE = re.compile(rf"\d|{LIMIT}|{WITHIN}|{ABOVE}", re.IGNORECASE)
_RULE = re.compile(r"\b(?:rule|guidance|memo|policy)\b", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"\b(?:opposite|reverse|contrary|mistake\w*|wrong\w*|false|untrue|incorrect|ignore|disregard|refuse|reject\w*|"
    r"kidding|jok\w+|not to|to be decided)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|never|no|nobody|nothing|against|neither|nor|cannot)\b|n't\b", re.IGNORECASE)
_ENDING = r"(?:[a-z]?(?:e|es|ed|en|ing|ion|ation|al|ment)|ement|s|d|n)?"
"""Of a verb or the noun made of it, after the beginning that the task gives: replac-ing, cut-ting, suspen-sion."""
_ASIDE = r"(?:\b(?:not|rather than|instead of|nor|never)\s+(?:to\s+|an?\s+|the\s+)?)"
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|;")
_WORD = re.compile(r"[a-z][a-z'-]*|\d+|\?")


def options_named(brief: Iterable[Unit], public: Mapping[str, Json]) -> tuple[str, ...]:
    """Options that the recommendation decides for, or that stand unrejected elsewhere; in the order of the task.

    Empty when the recommendation decides nothing, or some sentence takes it back.
    """
    decided: set[str] = set()
    mentioned: set[str] = set()
    for section, sentence in _sentences(brief):
        mentions = _mentions(sentence, public)
        if _takes_back(section, sentence, mentions, public):
            return ()
        if section == RECOMMENDATION and len(mentions) == 1 and _decides(sentence, mentions[0], public):
            decided.update(mentions)
        elif section == RECOMMENDATION and mentions:
            return ()
        mentioned.update(mentions)
    return tuple(o["text"] for o in public["options"] if decided and o["text"] in mentioned)


def names_owner(brief: Iterable[Unit], owner: str, rivals: Sequence[str], public: Mapping[str, Json]) -> bool:
    """Whether a sentence of the recommendation is the owner's name and plain words, and no rival is named in any."""
    found = False
    for section, sentence in _sentences(brief):
        if section != RECOMMENDATION:
            continue
        words = _words(sentence)
        if any(set(name.lower().split()) <= set(words) for name in rivals):
            return False
        if set(owner.lower().split()) <= set(words):
            text = re.sub(re.escape(owner), " ", sentence, flags=re.IGNORECASE)
            rest = _words(_without_reasons(_without_options(text, public), public))
            found = found or set(rest) <= _OWNING | _PLAIN | _objects(public)
    return found


def _decides(sentence: str, option: str, public: Mapping[str, Json]) -> bool:
    """Whether the sentence is the option and plain words."""
    text = _without_reasons(_set_aside(sentence, option, public), public)
    for name in _people(public):
        text = re.sub(rf"\b(?:owner|owned by|led by)\W+(?:is )?{re.escape(name)}|{re.escape(name)}", " ", text)
    text = next(_pattern(o) for o in public["options"] if o["text"] == option).sub(" ", text)
    return set(_words(text)) <= _PLAIN | set(option.lower().split()[1:]) | _subject(public)


def _mentions(sentence: str, public: Mapping[str, Json]) -> list[str]:
    """Options that a sentence names without setting them aside for another one that it names."""
    named = [o["text"] for o in public["options"] if _pattern(o).search(sentence)]
    kept = [
        o for o in named if not any(_pattern(p).search(_set_aside(sentence, o, public)) for p in _others(o, public))
    ]
    return kept if len(kept) == 1 else named


def _set_aside(sentence: str, option: str, public: Mapping[str, Json]) -> str:
    """The sentence without the other options that it sets aside (`and not continue it`, `instead of an audit`)."""
    others = _others(option, public)
    if not others:
        return sentence
    phrases = "|".join(
        rf"{_pattern(o).pattern}(?:\s+(?:it|the|{'|'.join(map(re.escape, o['text'].lower().split()[1:]))})\b)*"
        for o in others
    )
    joined = rf"(?:\s*,?\s*(?:or|nor|and not)\s+(?:to\s+|an?\s+|the\s+)?(?:{phrases}))*"
    return re.sub(rf"(?:,?\s*(?:and|but)\s+)?{_ASIDE}(?:{phrases}){joined}", " ", sentence, flags=re.IGNORECASE)


def _takes_back(section: str, sentence: str, mentions: Sequence[str], public: Mapping[str, Json]) -> bool:
    """Whether a sentence says that what another one decides is not to be done."""
    if _TAKEN_BACK.search(sentence):
        return True
    if section != RECOMMENDATION or mentions:
        return False
    denied = _DENIED.search(sentence) and not _is_evidence(sentence, public)
    return bool(denied) or sentence.endswith("?")


def _without_reasons(text: str, public: Mapping[str, Json]) -> str:
    """The text without its reasons, each of which has to speak of evidence or the rule and to set no condition."""

    def drop(match: re.Match[str]) -> str:
        speaks = _RULE.search(match[1]) or _is_evidence(match[1], public)
        return " " if speaks and not _CONDITION.search(match[1]) else match[0]

    return _TRAILING.sub(drop, _BRACKETED.sub(drop, _LEADING.sub(drop, text)))


def _is_evidence(text: str, public: Mapping[str, Json]) -> bool:
    labels = [figure["label"] for figure in public.get("figures", ())]
    return bool(_EVIDENCE.search(text)) or any(label_pattern(label).search(text) for label in labels)


def _sentences(brief: Iterable[Unit]) -> list[tuple[str, str]]:
    return [(u.section, s.strip()) for u in brief for s in _SENTENCE.split(u.text) if s.strip()]


def _pattern(option: Mapping[str, Json]) -> re.Pattern[str]:
    """The words that name an option, whole: `freezing`, and neither `unfreeze` nor `freeze-free`."""
    return _compiled(tuple(option["words"]))


@lru_cache(maxsize=64)
def _compiled(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(map(re.escape, words))}){_ENDING}(?![\w'-])", re.IGNORECASE)


def _others(option: str, public: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    return [o for o in public["options"] if o["text"] != option]


def _without_options(text: str, public: Mapping[str, Json]) -> str:
    for option in public["options"]:
        text = _pattern(option).sub(" ", text)
    return text


def _objects(public: Mapping[str, Json]) -> set[str]:
    return {word for o in public["options"] for word in o["text"].lower().split()[1:]} | _subject(public)


def _subject(public: Mapping[str, Json]) -> set[str]:
    return set(re.findall(r"[a-z]+", str(public["subject"]).lower()))


def _people(public: Mapping[str, Json]) -> list[str]:
    """Names that memos give, as in `Owners of decisions: ...: Dana Ruiz; ...`."""
    bodies = " ".join(str(memo["body"]) for memo in public.get("memos", ()))
    return re.findall(r": ([A-Z][a-z]+ [A-Z][a-z]+)(?=[;.])", bodies)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
