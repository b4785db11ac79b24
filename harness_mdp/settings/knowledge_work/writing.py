"""Writes one instance of a template down: memos, the reference brief with its places to go wrong, the sealed part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness_mdp.hashing import Json
from harness_mdp.settings.knowledge_work.decision import Asked, Template
from harness_mdp.settings.knowledge_work.sources import Memo
from harness_mdp.settings.slots import Slot, SlottedText

__all__ = ["Case", "Known", "memos", "sealed_values", "shown", "text"]


@dataclass(frozen=True)
class Known:
    """A figure of the instance: its value, what it comes from, and what mistakes give."""

    asked: Asked
    query: str
    """Canonical."""
    value: float
    tables: tuple[str, ...]
    wrong: tuple[float, ...]

    @property
    def right(self) -> str:
        """As the reference writes it."""
        return shown(self.asked, self.value)


@dataclass(frozen=True)
class Case:
    """An instance: who is decided about, by which rule, with which outcome."""

    template: Template
    subject: str
    others: tuple[str, ...]
    figures: tuple[Known, ...]
    """What the brief has to report; the key figure is the last."""
    limit: int
    """The one that applies."""
    above: bool
    general: int | None
    """The general limit, where the subject has one of its own."""
    superseded: int | None
    """The limit of last year, where a memo still names it."""
    second_limit: int | None
    decision: int
    """Index into the template's options."""
    owners: tuple[str, ...]
    """Per option who carries it out; empty where the brief need not say."""
    memo_ids: tuple[str, ...]
    """Ids in the order of `memos`: rule, then superseded, exception, owners where there are, then notes."""
    stray_table: str
    """Id of a table that holds nothing of use; empty for none."""
    notes: tuple[tuple[str, str], ...]
    """Title and body of memos that hold nothing of use."""

    @property
    def key(self) -> Known:
        """The figure that is held against the limit."""
        return self.figures[-1]

    @property
    def rival_limits(self) -> tuple[int, ...]:
        """Limits that stand in some memo and do not apply."""
        return tuple(limit for limit in (self.general, self.superseded) if limit is not None)

    @property
    def rule_id(self) -> str:
        """Memo with the rule."""
        return self.memo_ids[0]

    @property
    def limit_id(self) -> str:
        """Memo with the limit that applies."""
        return self.rule_id if self.general is None else self.memo_ids[1 + (self.superseded is not None)]

    @property
    def owners_id(self) -> str:
        """Memo that says who carries out what."""
        return self.memo_ids[1 + len(self.rival_limits)]


def shown(asked: Asked, value: float) -> str:
    """A figure as a brief writes it: 12,340 or 23.4%."""
    return f"{value:,.{asked.decimals}f}{asked.unit}"


def memos(case: Case) -> list[Memo]:
    """All memos, in the order of `memo_ids`."""
    template, label, unit = case.template, case.key.asked.label, case.key.asked.unit
    above, within, other = (option.text for option in template.options)
    limit = case.limit if case.general is None else case.general
    rule = f"{template.definition} The limit for the {label} is {limit}{unit}. Above the limit: {above}. Within it: "
    rule += f"{within}."
    if case.second_limit is not None:
        second = template.second.label
        rule += f" But if there are more than {case.second_limit} {second}: {other}, whatever the {label}."
    written = [("Guidance in force", rule)]
    if case.superseded is not None:
        old = f"The limit for the {label} is {case.superseded}{unit}. Above the limit: {above}. Within it: {within}."
        written.append(("Guidance of last year, replaced since", old))
    if case.general is not None:
        own = f"The following are {template.group}: {case.subject}, {case.others[0]}. For {template.group} the limit "
        written.append(("Exceptions to the guidance", f"{own}for the {label} is {case.limit}{unit} instead."))
    if case.owners:
        who = "; ".join(f"{o.text}: {name}" for o, name in zip(template.options, case.owners, strict=True))
        written.append(("Owners of decisions", f"{who}."))
    written.extend(case.notes)
    return [Memo(name, title, body) for name, (title, body) in zip(case.memo_ids, written, strict=True)]


def text(case: Case) -> SlottedText:
    """The reference brief with 4 (easy), 6 (standard) or 8 (hard) places to go wrong."""
    label, unit, x = case.key.asked.label, case.key.asked.unit, case.subject
    rule, exception = case.rule_id, () if case.general is None else (case.limit_id,)
    stances = ("above", "within") if case.above else ("within", "above")
    decisive = (case.key.query, *dict.fromkeys((case.limit_id, rule)))
    parts: list[str | Slot] = [f"## Summary\nThe {label} of {x} is "]
    parts.append(Slot(stances[0], stances[1:], f"the {label} may be on the other side of the limit", decisive))
    parts.append(" the limit of ")
    parts.append(_limit(case, unit))
    parts.append(f" [{case.limit_id}].\n## Findings\n")
    for place, figure in enumerate(case.figures):
        parts += [f"- {figure.asked.label} of {x}: ", _figure(figure), *_citation(case, figure, place), "\n"]
    parts.append("## Recommendation\n- Decision: ")
    options = [option.text for option in case.template.options[: 2 if case.second_limit is None else 3]]
    right = options.pop(case.decision)
    queries = [figure.query for figure in case.figures if figure.asked in (case.template.second, case.key.asked)]
    parts.append(Slot(right, tuple(options), "the decision may not follow the rule", (rule, *exception, *queries)))
    parts.append(f" [{rule}]")
    if case.owners:
        wrong = tuple(name for name in case.owners if name != case.owners[case.decision])
        owner = Slot(case.owners[case.decision], wrong, "the owner named may be wrong", (case.owners_id,))
        parts += ["\n- Owner: ", owner, f" [{case.owners_id}]"]
    return SlottedText(tuple(parts), fence="markdown")


def sealed_values(case: Case, reference: str) -> dict[str, Json]:
    """What the rubric needs (see `scoring`)."""
    return {
        "figures": [
            {
                "label": figure.asked.label,
                "value": figure.value,
                "decimals": figure.asked.decimals,
                "key": figure is case.key,
                "sources": list(figure.tables),
            }
            for figure in case.figures
        ],
        "limit": {"value": case.limit, "rivals": list(case.rival_limits), "source": case.limit_id},
        "stance": "above" if case.above else "within",
        "decision": case.template.options[case.decision].text,
        "rule": case.rule_id,
        "owner": case.owners[case.decision] if case.owners else "",
        "rival_owners": [name for place, name in enumerate(case.owners) if place != case.decision],
        "reference": reference,
    }


def _limit(case: Case, unit: str) -> str | Slot:
    if not case.rival_limits:
        return f"{case.limit}{unit}"
    rivals = tuple(f"{limit}{unit}" for limit in case.rival_limits)
    helped = (case.limit_id,)
    return Slot(f"{case.limit}{unit}", rivals, "another limit may apply", helped)


def _figure(figure: Known) -> Slot:
    wrong = tuple(shown(figure.asked, value) for value in figure.wrong)
    return Slot(figure.right, wrong, f"the {figure.asked.label} may be wrong", (figure.query, *figure.tables))


def _citation(case: Case, figure: Known, place: int) -> Sequence[str | Slot]:
    right = "".join(f" [{name}]" for name in figure.tables)
    if place or not case.stray_table:
        return (right,)
    problem = f"the source of the {figure.asked.label} may be wrong"
    return (Slot(right, (f" [{case.stray_table}]", ""), problem, figure.tables),)
