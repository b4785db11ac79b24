"""Every setting at the paper's size, from the paper's behaviour and from the portfolio, beside the paper's figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from buffers import ReplayBuffer
from experiments.config import (
    EpsilonPolicyConfig,
    PaperTableConfig,
    PolicyConfig,
    PortfolioPolicyConfig,
    SettingConfig,
    SimulatedConfig,
    StudyConfig,
)
from experiments.evaluation import comparison_of
from experiments.markdown import interval, line, replace_between
from experiments.study import Study, run_study
from experiments.summary import summarise
from harness_mdp.errors import ConfigError, InputError
from harness_mdp.hashing import Json

__all__ = ["behaviour", "main", "paper_tables", "published_figures"]

EVEN_WEIGHTS = {"base": 0.15, "check_revise": 0.35, "tool_first": 0.2, "more_evidence": 0.2}
"""α of the portfolio `even`: episodes last longer than under the default, where base submits every second draft."""

ARMS = ("forced_check", "check_revise", "bc", "aw")


def behaviour(name: str) -> PolicyConfig:
    """`paper` (base, ε = 0.25, R = legal), `portfolio` (the default one) or `even` (`EVEN_WEIGHTS`, ε = 0.1).

    Raises:
        ConfigError: another name.
    """
    if name == "paper":
        return EpsilonPolicyConfig(inner="base", epsilon=0.25, explore="legal")
    if name == "portfolio":
        return PortfolioPolicyConfig()
    if name == "even":
        return PortfolioPolicyConfig(weights=dict(EVEN_WEIGHTS))
    raise ConfigError(f"behaviours holds {name!r}; expected paper, portfolio or even")


def paper_tables(config: PaperTableConfig) -> str:
    """Run what is missing of every cell and write the tables as Markdown.

    Raises:
        HarnessError: a cell failed; what is finished is kept.
        InputError: the reference cannot be read.
    """
    paper = published_figures(config.reference)
    parts: list[str] = []
    for name in config.behaviours:
        studies = [_cell(config, name, setting) for setting in config.settings]
        parts += [
            f"### Behaviour `{name}`",
            "",
            _quality_table(studies, paper if name == "paper" else {}),
            "",
            _maturity_table(studies),
            "",
        ]
    return "\n".join(parts)


def _cell(config: PaperTableConfig, name: str, setting: str) -> Study:
    return run_study(
        StudyConfig(
            setting=SettingConfig(name=setting),
            executor=SimulatedConfig(profile=config.profile),
            policy=behaviour(name),
            root=str(Path(config.root) / name / setting),
            rollouts=config.rollouts,
            eval_rollouts=config.eval_rollouts,
        )
    )


def published_figures(path: str | None) -> Mapping[str, Json]:
    """The paper's figures by setting; none without a path.

    Raises:
        InputError: the file cannot be read, or holds something else.
    """
    if path is None:
        return {}
    expected = "JSON with the paper's figures under `settings`, an object for each setting"
    try:
        value: Json = json.loads(Path(path).read_text())
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot be read ({problem})", file=path, expected=expected) from problem
    settings = value.get("settings") if isinstance(value, dict) else None
    if not isinstance(settings, dict) or not all(isinstance(figures, dict) for figures in settings.values()):
        raise InputError("holds no such figures", file=path, field="settings", expected=expected)
    return settings


def _quality_table(studies: Sequence[Study], paper: Mapping[str, Json]) -> str:
    rows = pl.from_pandas(comparison_of([study.evaluation for study in studies]).rows)
    header = ["setting", "slack", "base", *(f"Δ {arm}" for arm in ARMS)]
    if paper:
        header.append("paper: slack, base, Δ forced_check, Δ bc, Δ aw")
    lines = [line(header), line(["---"] * len(header))]
    for study in studies:
        setting = study.evaluation.episodes["setting"][0]
        here = rows.filter((pl.col("setting") == setting) & (pl.col("outcome") == "quality"))
        cells = [setting, _slack(study), _mean(here, "base"), *(_delta(here, arm) for arm in ARMS)]
        if paper:
            cells.append(_published(paper.get(setting)))
        lines.append(line(cells))
    return "\n".join(lines)


def _maturity_table(studies: Sequence[Study]) -> str:
    rows = pl.from_pandas(comparison_of([study.evaluation for study in studies], "strict").rows)
    lines = [line(["setting", "HMS strict: base", *(f"Δ {arm}" for arm in ARMS)])]
    lines.append(line(["---"] * (len(ARMS) + 2)))
    for study in studies:
        setting = study.evaluation.episodes["setting"][0]
        here = rows.filter((pl.col("setting") == setting) & (pl.col("outcome") == "maturity"))
        lines.append(line([setting, _mean(here, "base"), *(_delta(here, arm) for arm in ARMS)]))
    return "\n".join(lines)


def _slack(study: Study) -> str:
    summary = summarise(ReplayBuffer(study.buffer), study.collection.episode_ids)
    return "" if summary is None or summary.slack is None else f"{summary.slack:.3f}"


def _mean(rows: pl.DataFrame, arm: str) -> str:
    row = rows.row(by_predicate=pl.col("arm") == arm, named=True)
    return f"{row['mean']:.3f} {interval(row, 'mean_low', 'mean_high', '.3f')}"


def _delta(rows: pl.DataFrame, arm: str) -> str:
    row = rows.row(by_predicate=pl.col("arm") == arm, named=True)
    return f"{row['delta']:+.3f} {interval(row, 'ci_low', 'ci_high', '+.3f')}"


def _published(figures: Json) -> str:
    if not figures:
        return ""
    lifts = ", ".join(f"{figures[f'{arm}_lift_pp'] / 100:+.3f}" for arm in ("forced_check", "bc", "aw"))
    slack = f"{figures['slack']:.3f}" if "slack" in figures else "-"
    return f"{slack}, {figures['base_return']:.3f}, {lifts}"


def _write(config: PaperTableConfig) -> int:
    text = paper_tables(config)
    print(text)  # noqa: T201
    if config.out is not None:
        replace_between(Path(config.out), "paper_table", text)
    return 0


def main() -> None:
    """Run the command."""
    from experiments.hydra_app import run_command

    run_command("paper_table", _write)


if __name__ == "__main__":
    main()
