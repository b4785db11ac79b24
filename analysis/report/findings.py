"""The five answers that a report opens with: did it help, where, at what cost, can I believe it, what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from analysis.comparison import Comparison
from analysis.report.families import Cost, Family
from analysis.verdict import Judgement, judge

__all__ = ["Answer", "Cell", "Finding", "Row", "finding_of", "rows_of"]

Row = Mapping[str, str | float | bool]

_MARGIN = 0.05
"""Change of an event's rate from which on it is named in a sentence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A question, its answer in a word or two, and the sentences behind it."""

    question: str
    word: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm in one setting: the difference in quality to another arm."""

    delta: float
    low: float
    high: float
    judgement: Judgement


@dataclass(frozen=True, eq=False)
class Finding:
    """What a family of evaluations comes to."""

    family: Family
    helped: Answer
    where: Mapping[str, Mapping[str, Cell]]
    """Evaluation label -> arm -> quality against the reference."""
    against_rule: Mapping[str, Mapping[str, Cell]]
    """Evaluation label -> learner -> quality against the rule; empty without verdicts."""
    cost: Answer
    process: Answer
    columns: tuple[str, ...]
    """Arms in the order of the table of settings: the rule, the learners, the rest."""


def rows_of(comparison: Comparison, outcome: str) -> list[Row]:
    """The rows of one outcome, in the order of the table."""
    rows = cast("list[Row]", comparison.rows.to_dict(orient="records"))
    return [row for row in rows if row["outcome"] == outcome]


def finding_of(family: Family, rule: str) -> Finding:
    """Put a family's comparison into words; nothing is computed that its tables do not show."""
    where: dict[str, dict[str, Cell]] = {}
    for row in rows_of(family.comparison, "quality"):
        if row["arm"] != family.arms[0]:
            where.setdefault(str(row["setting"]), {})[str(row["arm"])] = _cell(row, "delta", "ci_low", "ci_high")
    helped = _helped(family, where, rule)
    others = family.arms[1:]
    columns = (*(a for a in others if a == rule), *family.learners, *(a for a in others if a not in family.learners))
    return Finding(
        family=family,
        helped=helped,
        where=where,
        against_rule=_against(family),
        cost=_cost(family, rule),
        process=_process(family, rule),
        columns=tuple(dict.fromkeys(columns)),
    )


def _against(family: Family) -> dict[str, dict[str, Cell]]:
    against: dict[str, dict[str, Cell]] = {}
    for verdict in family.verdicts:
        cell = Cell(verdict.delta, verdict.low, verdict.high, verdict.judgement)
        against.setdefault(verdict.setting, {})[verdict.learner] = cell
    return against


def _cell(row: Row, mean: str, low: str, high: str) -> Cell:
    ends = float(row[low]), float(row[high])
    return Cell(float(row[mean]), *ends, judge(*ends))


def _helped(family: Family, where: Mapping[str, Mapping[str, Cell]], rule: str) -> Answer:
    question, n = "Did it help?", len(family.evaluations)
    reference = family.arms[0]
    others = [arm for arm in family.arms[1:] if arm not in family.learners]
    told = {arm: [cells[arm] for cells in where.values() if arm in cells] for arm in family.arms[1:]}
    scripts = [_tally(arm, reference, told[arm]) for arm in others]
    learned = [_tally(arm, reference, told[arm]) for arm in family.learners]
    if not family.learners:
        best = [arm for arm in others if any(cell.judgement is Judgement.BETTER for cell in told[arm])]
        word = f"{_list(best)} {_do(best, 'helps', 'help')}" if best else f"Nothing here beats {reference}"
        alone = "There is one arm, and nothing to compare it with."
        return Answer(question, word, (*(scripts or [alone]), "No learned controller was evaluated."))
    if not family.verdicts:
        note = f"{rule} was not run beside the learners, so nobody knows whether they are worth deploying."
        return Answer(question, "Not known", (note, *learned, *scripts))
    against = _against(family)
    worth = {(verdict.setting, verdict.learner) for verdict in family.verdicts if verdict.worth_deploying}
    beside = {learner: [c[learner] for c in against.values() if learner in c] for learner in family.learners}
    won = {learner: sum(name == learner for _, name in worth) for learner in beside}
    best = [learner for learner in family.learners if won[learner]]
    if not best and any(cell.judgement is Judgement.BETTER for cells in beside.values() for cell in cells):
        word = f"No: what beats {rule} is not above base"
    elif not best and any(cell.judgement is Judgement.UNDECIDED for cells in beside.values() for cell in cells):
        word = f"No evidence that learning beats {rule}"
    elif not best:
        word = f"No: every learned controller is worse than {rule}"
    elif always := [learner for learner in best if won[learner] == n]:
        word = f"Yes: {_list(always)} {_do(always, 'beats', 'beat')} {rule}{' in every setting' if n > 1 else ''}"
    else:
        places = len({setting for setting, _ in worth})
        word = f"In places: {_list(best)} {_do(best, 'beats', 'beat')} {rule} in {places} of {_settings(n)}"
        lost = max(sum(cell.judgement is Judgement.WORSE for cell in beside[learner]) for learner in best)
        word += f", and {_do(best, 'is', 'are')} worse in {lost}" if lost else ""
    first = [_tally(rule, reference, told[rule])] if rule in told else []
    judged = [_tally(learner, rule, beside[learner]) for learner in family.learners]
    rest = [_tally(arm, reference, told[arm]) for arm in others if arm != rule]
    return Answer(question, word, (*first, *judged, *learned, *rest))


def _tally(arm: str, other: str, cells: Sequence[Cell]) -> str:
    """One sentence for one arm against another, over all settings."""
    told = [cell.judgement for cell in cells]
    least, most = (_signed(end(cell.delta for cell in cells)) for end in (min, max))
    if len(cells) == 1:
        word = {Judgement.BETTER: "better", Judgement.WORSE: "worse", Judgement.UNDECIDED: "not told apart"}[told[0]]
        return f"{arm} against {other}: {word} ({least})."
    better, worse = told.count(Judgement.BETTER), told.count(Judgement.WORSE)
    parts = [f"{word} in {n}" for word, n in (("better", better), ("worse", worse)) if n]
    what = (
        f"{' and '.join(parts)} of {len(told)} settings" if parts else f"not told apart in any of {len(told)} settings"
    )
    span = f"difference {least} in each" if least == most else f"differences from {least} to {most}"
    return f"{arm} against {other}: {what}, {span}."


def _signed(value: float) -> str:
    return f"{value:+z.3f}".replace("-", "\N{MINUS SIGN}")


def _settings(n: int) -> str:
    return "1 setting" if n == 1 else f"{n} settings"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _do(names: Sequence[str], one: str, several: str) -> str:
    return one if len(names) == 1 else several


def _cost(family: Family, rule: str) -> Answer:
    ratios: dict[str, list[float]] = {}
    tokens = {(cost.label, cost.arm): cost for cost in family.costs if cost.what == "tokens"}
    for (label, arm), cost in tokens.items():
        base = tokens[label, family.arms[0]].mean
        if arm != family.arms[0] and base > 0:
            ratios.setdefault(arm, []).append(cost.mean / base)
    named = [arm for arm in (rule, *family.learners) if arm in ratios] or list(ratios)
    sentences = [_spends(arm, ratios[arm], family.arms[0], tokens) for arm in named]
    usd = [cost for cost in family.costs if cost.what == "usd" and cost.mean > 0]
    if usd:
        dear = max(usd, key=lambda cost: cost.mean)
        sentences.append(f"At most ${dear.mean:.4f} an episode ({dear.arm}, {dear.label}).")
    elif not any(cost.what == "usd" for cost in family.costs):
        sentences.append("The price in USD is not known.")
    every = [ratio for arm in named for ratio in ratios[arm]]
    if not every:
        return Answer("At what cost?", "Not known", ("No tokens were counted.",))
    low, high = min(every), max(every)
    word = f"{low:.1f}× the tokens" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f}× to {high:.1f}× the tokens"
    return Answer("At what cost?", word, tuple(sentences))


def _spends(arm: str, ratios: Sequence[float], reference: str, tokens: Mapping[tuple[str, str], Cost]) -> str:
    means = [cost.mean for (_, each), cost in tokens.items() if each == arm]
    span = f"{min(ratios):.1f}×" if len(ratios) == 1 else f"{min(ratios):.1f}× to {max(ratios):.1f}×"
    spent = f"{min(means):,.0f}" if len(means) == 1 else f"{min(means):,.0f} to {max(means):,.0f}"
    return f"{arm}: {span} the tokens of {reference} ({spent} an episode)."


def _process(family: Family, rule: str) -> Answer:
    question, n = "What did it change in the process?", len(family.evaluations)
    sentences: list[str] = []
    raised: list[str] = []
    rows = rows_of(family.comparison, "maturity")
    shown = [arm for arm in (rule, *family.learners) if arm in family.arms[1:]] or family.arms[1:]
    for arm in family.arms[1:]:
        own = [_cell(row, "delta", "ci_low", "ci_high") for row in rows if row["arm"] == arm]
        if not own:
            continue
        up = sum(cell.judgement is Judgement.BETTER for cell in own)
        down = sum(cell.judgement is Judgement.WORSE for cell in own)
        if up and not down:
            raised.append(arm)
        if arm in shown:
            deltas = sorted({_signed(c.delta): c.delta for c in own}.items(), key=lambda item: item[1])
            span = " to ".join(dict.fromkeys((deltas[0][0], deltas[-1][0])))
            often = f", up in {up} of {n} settings" if n > 1 else ""
            sentences.append(f"{arm}: maturity {span}{often}. {_moved(family, arm)}".strip())
    if not sentences:
        return Answer(question, "Not scored", ("No maturity is stored with these episodes.",))
    word = f"More mature: {_list(raised)}" if raised else "No arm is more mature throughout"
    return Answer(question, word, tuple(sentences))


def _moved(family: Family, arm: str) -> str:
    """The events whose rate moved most, averaged over settings, of those whose interval leaves 0 somewhere."""
    moved: dict[str, list[float]] = {}
    for row in cast("list[Row]", family.comparison.events.to_dict(orient="records")):
        if row["arm"] == arm and judge(float(row["ci_low"]), float(row["ci_high"])) is not Judgement.UNDECIDED:
            moved.setdefault(str(row["event"]), []).append(float(row["delta"]))
    means = {event: sum(deltas) / len(deltas) for event, deltas in moved.items()}
    most = sorted((event for event in means if abs(means[event]) >= _MARGIN), key=lambda event: -abs(means[event]))
    told = (f"{event} {100 * means[event]:+.0f} points".replace("-", "\N{MINUS SIGN}") for event in most[:2])
    return ", ".join(told) + ("." if most else "")
