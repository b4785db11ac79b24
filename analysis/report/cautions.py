"""What a reader has to know before believing a figure of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

import polars as pl

from analysis.frame import INFRA_MISSING
from analysis.report.collected import Collected
from analysis.report.evaluated import Evaluated
from analysis.report.families import Family
from analysis.report.findings import Answer, Row
from analysis.report.process import MIN_TASKS, MIN_VISITS, SUPPORTED_SHARE, Support
from analysis.report.sources import Source
from analysis.statistics import Degeneracy
from harness_mdp.mdp import EvalStatus

__all__ = ["Caution", "Weight", "belief", "cautions_of", "in_words"]

ENOUGH_TASKS = 20
"""Below this many tasks an interval means little (DESIGN section 10)."""

_MANY_INVALID = 0.05
_WORDS = {
    "delta:": "difference:",
    Degeneracy.ZERO_VARIANCE.value: "the same in every task",
    Degeneracy.OPEN_END.value: "nearly the same in every task",
}
_SHOWN = 4


class Weight(StrEnum):
    """How much a caution takes away."""

    LIMIT = "limit"
    """It bounds what the figures can say at all."""
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Caution:
    """One thing to know, and what to do about it."""

    weight: Weight
    title: str
    text: str


def cautions_of(
    sources: Sequence[Source],
    families: Sequence[Family],
    collected: Sequence[Collected],
    supports: Sequence[Support],
    rule: str,
) -> tuple[Caution, ...]:
    """All of them, the weightiest first."""
    evaluations = [each for family in families for each in family.evaluations]
    found = [
        *_simulated(sources),
        *_not_evaluated(evaluations),
        *_missing(sources, evaluations),
        *_learned_tasks(evaluations),
        *_support(supports),
        *_few_tasks(families),
        *_no_rule(families, rule),
        *_invalid(evaluations, collected),
        *_slack(collected),
        *_degenerate(families),
        *_estimated(sources),
        *_unknown_price(sources),
        *_versions(sources),
    ]
    order = list(Weight)
    return tuple(sorted(found, key=lambda caution: order.index(caution.weight)))


def belief(cautions: Sequence[Caution], families: Sequence[Family]) -> Answer:
    """Whether the figures can be believed, in a word and a few sentences."""
    limits = [caution for caution in cautions if caution.weight is Weight.LIMIT]
    warnings = [caution for caution in cautions if caution.weight is Weight.WARNING]
    told = [f"{caution.title}." for caution in (*limits, *warnings)]
    rows = [row for family in families for row in cast("list[Row]", family.comparison.rows.to_dict(orient="records"))]
    if rows:
        tasks = sorted({int(row["n_tasks"]) for row in rows})
        span = f"{tasks[0]}" if len(tasks) == 1 else f"{tasks[0]} to {tasks[-1]}"
        episodes = sum(each.episodes["episode_id"].n_unique() for family in families for each in family.evaluations)
        told.insert(0, f"{span} tasks a setting, {episodes:,} episodes on matched pairs, 95 % intervals over tasks.")
    if any(caution.title.startswith("Simulated") for caution in limits):
        word = "Only about the simulation"
    elif limits:
        word = "With limits"
    elif warnings:
        word = f"With {len(warnings)} warning{'s' if len(warnings) > 1 else ''}"
    else:
        word = "Within the intervals"
    return Answer("Can I believe it?", word, tuple(told))


def _simulated(sources: Sequence[Source]) -> list[Caution]:
    names = sorted({name for s in sources for name in s.episodes["executor"].unique() if name.startswith("simulated")})
    total = sum(len(source.episodes) for source in sources)
    n = sum(int(s.episodes["executor"].str.starts_with("simulated").sum()) for s in sources)
    if not n:
        return []
    all_of = "Every figure" if n == total else f"{n:,} of {total:,} episodes"
    return [
        Caution(
            Weight.LIMIT,
            "Simulated executor: no language model was run",
            f"{all_of} on this page come{'s' if n == total else ''} from a seeded stand-in ({_some(names)}) that puts "
            "faults into reference answers. It shows that the method and the tools work; it says nothing of how a "
            "real model would gain.",
        )
    ]


def _not_evaluated(evaluations: Sequence[Evaluated]) -> list[Caution]:
    if evaluations:
        return []
    return [
        Caution(
            Weight.LIMIT,
            "Nothing was evaluated",
            "The buffer holds collected episodes only. They were not made on matched tasks and draws, so policies "
            "cannot be compared. Run `python -m harness_mdp.evaluate` on this buffer.",
        )
    ]


def _missing(sources: Sequence[Source], evaluations: Sequence[Evaluated]) -> list[Caution]:
    missing, never, planned = 0, 0, 0
    for each in evaluations:
        planned += len(each.episodes)
        missing += int((each.episodes["eval_status"] == INFRA_MISSING).sum())
        never += each.never_tried
    attempts = [attempt for source in sources for attempt in source.attempts]
    elsewhere = len({attempt.episode_id for attempt in attempts}) - (missing - never)
    found: list[Caution] = []
    if missing:
        because = f" Most frequent reason: {_reason(sources)}." if attempts else ""
        stopped = f" {never} of them were never tried: the evaluation stopped early." if never else ""
        found.append(
            Caution(
                Weight.WARNING,
                f"{missing} of {planned:,} planned evaluation episodes are infra_missing",
                "They failed for reasons outside the agent and have no return, never 0. Their pairs are left out."
                f"{stopped}{because} The same command again tries them.",
            )
        )
    if elsewhere > 0:
        found.append(
            Caution(
                Weight.NOTE,
                f"{elsewhere} further episodes are infra_missing",
                f"They were tried and never finished: {_reason(sources)}. The same command again tries them.",
            )
        )
    return found


def _reason(sources: Sequence[Source]) -> str:
    reasons = Counter(f"{a.kind}: {a.message}" for source in sources for a in source.attempts)
    return reasons.most_common(1)[0][0]


def _learned_tasks(evaluations: Sequence[Evaluated]) -> list[Caution]:
    labels = [each.label for each in evaluations if each.on_learned_tasks]
    if not labels:
        return []
    return [
        Caution(
            Weight.LIMIT,
            "Controllers were evaluated on tasks they learned from",
            f"In {_some(labels)} (on_learned_tasks=true): a controller looks better there than it is.",
        )
    ]


def _support(supports: Sequence[Support]) -> list[Caution]:
    weak = [s for s in supports if s.share is not None and not s.enough]
    unknown = [s for s in supports if s.share is None]
    found: list[Caution] = []
    if weak:
        told = _some([f"{s.arm} in {s.label} ({100 * (s.share or 0):.0f} %)" for s in weak])
        found.append(
            Caution(
                Weight.WARNING,
                f"Weak support for {len(weak)} of {len(supports)} learned controllers",
                f"Less than {100 * SUPPORTED_SHARE:.0f} % of their steps lie where the buffer has {MIN_VISITS} visits "
                f"from {MIN_TASKS} tasks: {told}. They act where little was collected; the matched evaluation here "
                "still measures what they do, but learning had little to go on.",
            )
        )
    if unknown:
        found.append(
            Caution(
                Weight.NOTE,
                f"Support is not known for {len(unknown)} of {len(supports)} learned controllers",
                "No episodes were collected with the same executor in the same buffer.",
            )
        )
    return found


def _few_tasks(families: Sequence[Family]) -> list[Caution]:
    few: dict[str, int] = {}
    for family in families:
        for row in cast("list[Row]", family.comparison.rows.to_dict(orient="records")):
            if int(row["n_tasks"]) < ENOUGH_TASKS:
                few[str(row["setting"])] = min(few.get(str(row["setting"]), ENOUGH_TASKS), int(row["n_tasks"]))
    if not few:
        return []
    told = _some([f"{label} ({n})" for label, n in few.items()])
    return [
        Caution(
            Weight.WARNING,
            f"Fewer than {ENOUGH_TASKS} tasks in {len(few)} setting{'s' if len(few) > 1 else ''}",
            f"{told}. Intervals resample tasks and mean little below {ENOUGH_TASKS}; more rollouts do not help.",
        )
    ]


def _no_rule(families: Sequence[Family], rule: str) -> list[Caution]:
    if not any(family.learners and not family.verdicts for family in families):
        return []
    return [
        Caution(
            Weight.WARNING,
            f"The rule of thumb {rule} was not run beside the learners",
            f"A learner that does not beat it is not worth deploying. Evaluate again with {rule} among the policies.",
        )
    ]


def _invalid(evaluations: Sequence[Evaluated], collected: Sequence[Collected]) -> list[Caution]:
    told: list[str] = []
    for each in evaluations:
        for arm in each.arms:
            status = each.episodes.filter(pl.col("arm") == arm)["eval_status"]
            if (share := _share(int((status == EvalStatus.INVALID.value).sum()), len(status))) > _MANY_INVALID:
                told.append(f"{arm} in {each.label} ({100 * share:.0f} %)")
    told += [
        f"collected {each.setting} ({100 * _share(each.invalid, each.episodes):.0f} %)"
        for each in collected
        if _share(each.invalid, each.episodes) > _MANY_INVALID
    ]
    if not told:
        return []
    text = f"{_some(told)}. Nothing parsable was submitted: the agent's own fault, counted with return 0."
    return [Caution(Weight.WARNING, "Many invalid episodes", text)]


def _share(n: int, total: int) -> float:
    return n / total if total else 0.0


def _slack(collected: Sequence[Collected]) -> list[Caution]:
    told: dict[str, list[str]] = {}
    for each in collected:
        for remark in each.slack.remarks():
            told.setdefault(f"{each.setting}, collected by {each.policy}", []).append(remark)
    if not told:
        return []
    text = " ".join(f"{what}: {'. '.join(remarks)}." for what, remarks in told.items())
    return [Caution(Weight.NOTE, "Some collected tasks teach nothing", text)]


def _degenerate(families: Sequence[Family]) -> list[Caution]:
    told: dict[str, list[str]] = {}
    for family in families:
        for row in cast("list[Row]", family.comparison.rows.to_dict(orient="records")):
            if row["degenerate"]:
                told.setdefault(f"{row['outcome']} of {row['arm']} ({in_words(str(row['note']))})", []).append(
                    str(row["setting"])
                )
    if not told:
        return []
    n = sum(map(len, told.values()))
    title = f"{n} {'interval rests' if n == 1 else 'intervals rest'} on little or no spread between tasks (marked *)"
    text = "; ".join(f"{what} in {_some(settings, 8)}" for what, settings in told.items())
    why = "There the ends come from how often tasks could differ, and how far, not from how much they did."
    return [Caution(Weight.NOTE, title, f"{text}. {why}")]


def in_words(note: str) -> str:
    """The note of a row of `compare`, for somebody who does not know the statistics."""
    for told, word in _WORDS.items():
        note = note.replace(told, word)
    return note


def _estimated(sources: Sequence[Source]) -> list[Caution]:
    n = sum(int((source.episodes["propensity_source"] != "logged").sum()) for source in sources)
    text = "Their behaviour policy did not log its distribution."
    return [Caution(Weight.NOTE, f"{n:,} episodes have estimated propensities", text)] if n else []


def _unknown_price(sources: Sequence[Source]) -> list[Caution]:
    n = sum(source.episodes["cost_usd"].null_count() for source in sources)
    text = "Costs in USD leave their arms out; set executor.prices when collecting."
    return [Caution(Weight.NOTE, f"The price of {n:,} episodes is not known", text)] if n else []


def _versions(sources: Sequence[Source]) -> list[Caution]:
    commits: set[str] = set()
    packages: set[str] = set()
    for source in sources:
        for manifest in source.runs.values():
            commits.add(str(manifest.get("resolved", {}).get("git_commit")))
            packages.add(str(manifest.get("versions", {}).get("harness-mdp")))
    if len(commits) < 2 and len(packages) < 2:
        return []
    text = f"harness-mdp {_some(sorted(packages))}; commits {_some([c[:8] for c in sorted(commits)])}."
    return [Caution(Weight.NOTE, "Runs were made by different versions of the code", text)]


def _some(told: Sequence[str], most: int = _SHOWN) -> str:
    more = f" and {len(told) - most} more" if len(told) > most else ""
    return f"{', '.join(told[:most])}{more}"
