"""The tables at the end of a sweep, as Markdown: ours, with the paper's figures beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.main_table import RULE, ablation, main_table
from analysis.sensitivity import early_submit_sensitivity
from analysis.transfer import executor_transfer
from experiments.markdown import interval, table
from experiments.study_results import Results, SweptCell, results
from harness_mdp.errors import ConfigError, HarnessError
from harness_mdp.hashing import Json

__all__ = ["TABLES", "TableWishes", "expect_tables", "study_tables"]

TABLES = ("main", "ablation", "early_submit", "transfer")

_Row = Mapping[str, Any]
_Figures = Mapping[str, Json]


@dataclass(frozen=True)
class TableWishes:
    """Which tables, and what stands beside them."""

    tables: Sequence[str]
    preset: str
    """Maturity preset."""
    published: _Figures
    """The paper's figures by setting; empty for none."""


def expect_tables(names: Sequence[str]) -> None:
    """Before any work is done.

    Raises:
        ConfigError: a table that there is not.
    """
    if unknown := [name for name in names if name not in TABLES]:
        raise ConfigError(f"tables holds {', '.join(unknown)}; expected some of {', '.join(TABLES)}")


def study_tables(cells: Sequence[SweptCell], root: Path, wishes: TableWishes) -> str:
    """The tables of a sweep; one that cannot be made says why. Empty where no cell went through."""
    done = [cell for cell in cells if cell.has_results]
    if not done:
        return ""
    parts: list[str] = [_provenance(cells, done), _buffers(done, wishes.published)]
    for name in wishes.tables:
        try:
            parts += _made(name, done, root, wishes)
        except HarnessError as problem:
            parts.append(f"### {_TITLES[name]}\n\nNot made: {problem}.")
    return "\n\n".join(parts) + "\n"


_TITLES = {
    "main": "Quality and maturity",
    "ablation": "What each part is worth",
    "early_submit": "Thresholds of EarlySubmit",
    "transfer": "Trained with one executor, evaluated with another",
}


def _made(name: str, done: Sequence[SweptCell], root: Path, wishes: TableWishes) -> list[str]:
    match name:
        case "transfer":
            together = results(done, apart=False)
            return [_titled(name, "", _transfer(each)) for each in together]
        case "early_submit":
            buffers = sorted({str(root / "buffers" / cell.status.facts["buffer"]) for cell in done})
            return [_titled(name, "", _early_submit(buffers))]
        case "ablation":
            return [_titled(name, each.heading, _ablation(each, wishes.published)) for each in results(done)]
        case _:
            return [_titled(name, each.heading, _main(each, wishes)) for each in results(done)]


def _titled(name: str, heading: str, text: str) -> str:
    return f"### {_TITLES[name]}{f': {heading}' if heading else ''}\n\n{text}"


def _provenance(cells: Sequence[SweptCell], done: Sequence[SweptCell]) -> str:
    simulated = any(cell.status.facts["simulated"] for cell in done)
    executors = sorted({str(cell.status.facts["evaluated_on"]) for cell in done})
    said = f"{len(done)} of {len(cells)} cells. Executor: {', '.join(executors)}"
    said += " (simulated: figures of a stand-in, not of a model)." if simulated else "."
    incomplete = [cell.status.cell for cell in cells if not cell.has_results]
    return said + (" **The other cells did not finish, and are left out of every table.**" if incomplete else "")


def _buffers(done: Sequence[SweptCell], published: _Figures) -> str:
    header = [
        "setting",
        "policy",
        "executor",
        "episodes",
        "mean return",
        "slack",
        *(["paper: slack"] if published else []),
    ]
    rows: dict[str, list[str]] = {}
    for cell in done:
        facts = cell.status.facts
        policy = str(cell.words.get("policy") or ("paper" if facts["paper_behaviour"] else facts["policy"]))
        row: list[str] = [facts["setting"], policy, facts["executor"], str(facts["episodes"])]
        row += [_number(facts["mean_return"]), _number(facts["slack"])]
        if published:
            row.append(_number(published.get(facts["setting"], {}).get("slack")) if facts["paper_behaviour"] else "")
        rows.setdefault(facts["buffer"], row)
    return f"### What was collected\n\n{table(header, list(rows.values()))}"


def _main(each: Results, wishes: TableWishes) -> str:
    frame = main_table(each.episodes, each.reference, preset=wishes.preset)
    every = _rows(frame)
    maturity = {(row["setting"], row["arm"]): row for row in every if row["outcome"] == "maturity"}
    header = ["setting", "arm", "quality [95%]", f"Δ to {each.reference} [95%]", "p", "p Holm"]
    header += [f"HMS {wishes.preset}", "Δ HMS [95%]", "tasks", "episodes"]
    if wishes.published:
        header += ["paper: quality or Δ", "paper: p", "paper: Δ HMS"]
    rows: list[list[str]] = []
    for row in (row for row in every if row["outcome"] == "quality"):
        process = maturity.get((row["setting"], row["arm"]))
        cells = [row["setting"], row["arm"], _mean(row), _delta(row), _p(row["p"]), _p(row["p_holm"])]
        cells += ["", ""] if process is None else [f"{process['mean']:.3f}", _delta(process)]
        cells += [str(row["n_tasks"]), str(row["n_episodes"])]
        if wishes.published:
            cells += _published(wishes.published, row["setting"], each.as_published.get(row["arm"]))
        rows.append(cells)
    missing = sum(row["n_infra_missing"] for row in every if row["outcome"] == "quality")
    note = f"\n\n{missing} episodes are infra_missing and left out." if missing else ""
    if any("delta:" in row["note"] for row in every):
        note += "\n\n\\* An end of this interval rests on how often tasks could differ, not on their spread."
    how = "Tasks weigh equally; intervals: bootstrap-t over tasks; p: sign flips of task means; Holm over settings for"
    return f"{table(header, rows)}\n\n{how} each arm.{note}"


def _ablation(each: Results, published: _Figures) -> str:
    frame = ablation(each.episodes, each.reference)
    header = ["setting", "arm", "kind", f"Δ to {each.reference} [95%]", "p Holm", f"Δ to {RULE} [95%]", "judgement"]
    header += ["paper: Δ"] if published else []
    rows: list[list[str]] = []
    for row in _rows(frame):
        rule = "" if pd.isna(row["to_rule"]) else f"{row['to_rule']:+.3f} {_plain(row, 'rule_low', 'rule_high')}"
        cells = [row["setting"], row["arm"], row["kind"], f"{row['delta']:+.3f} {_plain(row, 'ci_low', 'ci_high')}"]
        cells += [_p(row["p_holm"]), rule, row["judgement"]]
        if published:
            cells.append(_published(published, row["setting"], each.as_published.get(row["arm"]))[0])
        rows.append(cells)
    return table(header, rows)


def _early_submit(buffers: Sequence[str]) -> str:
    frame = early_submit_sensitivity(buffers)
    header = ["setting", "preset", "threshold", "value", "arm", "HMS", "Δ HMS [95%]", "EarlySubmit fires"]
    rows = [
        [
            row["setting"],
            row["preset"],
            row["threshold"] or "-",
            "-" if pd.isna(row["value"]) else f"{row['value']:g}",
            row["arm"],
            f"{row['mean']:.3f}",
            "" if pd.isna(row["delta"]) else f"{row['delta']:+.3f} {_plain(row, 'ci_low', 'ci_high')}",
            "" if pd.isna(row["early_submit_rate"]) else f"{row['early_submit_rate']:.2f}",
        ]
        for row in _rows(frame)
    ]
    return table(header, rows)


def _transfer(each: Results) -> str:
    frame = executor_transfer(each.episodes, each.reference)
    header = [
        "setting",
        "arm",
        "trained with",
        "evaluated with",
        "quality",
        f"Δ to {each.reference} [95%]",
        "p",
        "tasks",
    ]
    rows = [
        [
            row["setting"],
            row["arm"],
            row["trained_on"] or "-",
            row["evaluated_on"],
            f"{row['mean']:.3f}",
            f"{row['delta']:+.3f} {_plain(row, 'ci_low', 'ci_high')}",
            _p(row["p"]),
            str(row["n_tasks"]),
        ]
        for row in _rows(frame)
    ]
    return table(header, rows)


def _rows(frame: pd.DataFrame) -> list[_Row]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def _mean(row: _Row) -> str:
    return f"{row['mean']:.3f} {interval(row, 'mean_low', 'mean_high', '.3f')}"


def _delta(row: _Row) -> str:
    if pd.isna(row["delta"]):
        return ""
    mark = " \\*" if "delta:" in row["note"] else ""
    return f"{row['delta']:+.3f} {interval(row, 'ci_low', 'ci_high', '+.3f')}{mark}"


def _plain(row: _Row, low: str, high: str) -> str:
    return f"[{row[low]:+.3f}, {row[high]:+.3f}]"


def _p(value: float) -> str:
    if pd.isna(value):
        return ""
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _published(published: _Figures, setting: str, what: str | None) -> list[str]:
    """Quality (of base) or Δ (of forced_check, bc, aw), p and Δ HMS (of aw), as far as the paper has them."""
    figures: _Figures = published.get(setting, {})
    if what == "base":
        return [_number(figures.get("base_return")), "", ""]
    lift = figures.get(f"{what}_lift_pp")
    told = "" if lift is None else f"{lift / 100:+.3f}"
    if what != "aw":
        return [told, "", ""]
    shift = figures.get("delta_hms")
    return [told, _p(figures.get("p", float("nan"))), "" if shift is None else f"{shift:+.3f}"]
