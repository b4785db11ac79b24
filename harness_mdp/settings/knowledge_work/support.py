"""What evidence at hand says of a brief: the deterministic part of the check, and which claims are supported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harness_mdp.hashing import Json
from harness_mdp.mdp import Claim
from harness_mdp.settings.knowledge_work.brief import RECOMMENDATION, SECTIONS, Figure, Unit, figures, units
from harness_mdp.settings.knowledge_work.query import parse_query, tables_in
from harness_mdp.settings.knowledge_work.recommending import options_named
from harness_mdp.settings.knowledge_work.scoring import about
from harness_mdp.settings.knowledge_work.sources import tables_of
from harness_mdp.settings.protocol import CheckItem

__all__ = ["check_brief", "claims_of"]

MAX_CLAIMS = 12
MAX_CLAIM_CHARS = 80


def check_brief(artifact: str, public: Mapping[str, Json], evidence: Mapping[str, str]) -> tuple[CheckItem, ...]:
    """Six items, each with the public part of the task and the evidence gathered so far."""
    brief = units(artifact)
    present = {unit.section for unit in brief}
    lacking = [name for name in SECTIONS if name not in present]
    cited = list(dict.fromkeys(name for unit in brief for name in unit.citations))
    existing = {source["id"] for source in (*public["tables"], *public["memos"])}
    unknown = [name for name in cited if name not in existing]
    unread = [name for name in cited if name in existing and name not in evidence]
    pool = [number for text in evidence.values() for number in figures(text)]
    unfounded = [f.shown for unit in brief for f in unit.figures if not _found(f, pool)]
    silent = [
        f["label"] for f in public["figures"] if not any(u.figures and about(u, f["label"], public) for u in brief)
    ]
    named = options_named(brief, public)
    return (
        _item("sections", lacking, "{}: section missing or empty"),
        CheckItem("cited", bool(cited), "" if cited else "no source is cited"),
        _item("sources_exist", unknown, "{}: cited, but there is no such source"),
        _item("sources_read", unread, "{}: cited but not read"),
        _item("figures_found", unfounded, "{}: stands in no source or query result at hand"),
        _item("figures_reported", silent, "{}: not reported"),
        _item("one_option", [] if len(named) == 1 else ["recommendation"], "{}: has to name one option and no other"),
    )


def claims_of(artifact: str, public: Mapping[str, Json], evidence: Mapping[str, str]) -> tuple[Claim, ...]:
    """Units that state figures or recommend an option, at most `MAX_CLAIMS`.

    A claim is supported when it cites something, all it cites was read, and each of its figures stands in what it
    cites or in the result of a query on a cited table.
    """
    claiming = [u for u in units(artifact) if u.figures or (u.section == RECOMMENDATION and options_named([u], public))]
    return tuple(
        Claim(unit.text[:MAX_CLAIM_CHARS], _supported(unit, public, evidence)) for unit in claiming[:MAX_CLAIMS]
    )


def _supported(unit: Unit, public: Mapping[str, Json], evidence: Mapping[str, str]) -> bool:
    if not unit.citations or any(name not in evidence for name in unit.citations):
        return False
    cited = set(unit.citations)
    tables = tables_of(public)
    texts = [evidence[name] for name in unit.citations]
    texts += [text for name, text in evidence.items() if "(" in name and tables_in(parse_query(name, tables)) & cited]
    pool = [number for text in texts for number in figures(text)]
    return all(_found(figure, pool) for figure in unit.figures)


def _found(figure: Figure, pool: Iterable[Figure]) -> bool:
    """Whether some number of the pool is the figure, rounded to the decimals that it shows.

    What a query gives as -5 (`diff` the other way round) may be reported as 5, but not 5 as -5.
    """
    tolerance = 0.5 * 10.0**-figure.decimals if figure.decimals else 0.0
    return any(
        abs(figure.value - value) <= tolerance + 1e-6 for number in pool for value in (number.value, abs(number.value))
    )


def _item(name: str, problems: Sequence[str], message: str) -> CheckItem:
    listed = ", ".join(dict.fromkeys(problems))[:150]
    return CheckItem(name, not problems, message.format(listed) if problems else "")
