"""The tables of the paper: every arm against base, every learner against the rule of thumb, every maturity event."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import polars as pl

from analysis.comparison import Comparison, compare
from analysis.evaluations import Sources, evaluation_episodes
from analysis.verdict import judge
from harness_mdp.settings.scripts import SCRIPTS

__all__ = ["BASE", "RULE", "ablation", "event_by_setting", "main_table"]

BASE = "base"
"""The arm that differences are taken to."""

RULE = "check_revise"
"""The rule of thumb that a learned controller has to beat."""

_NOT_LEARNED = ("random", *SCRIPTS)


def main_table(
    sources: Sources, reference: str = BASE, *, preset: str = "paper", draws: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Quality and maturity of every arm beside `reference`, setting by setting.

    Args:
        sources: see `evaluation_episodes`.
        reference: the arm that differences are taken to.
        preset: of maturity.
        draws: resamples of tasks.
        seed: of resamples and sign flips.

    Returns:
        `Comparison.rows`, then `preset` (empty for quality) and `simulated`.

    Raises:
        HarnessError: as `evaluation_episodes` and `compare`.
    """
    comparison = _compared(sources, reference, preset, draws, seed)
    presets = [preset if outcome == "maturity" else "" for outcome in comparison.rows["outcome"]]
    return comparison.rows.assign(preset=presets, simulated=comparison.simulated)


def event_by_setting(
    sources: Sources, reference: str = BASE, *, preset: str = "paper", draws: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Each maturity event as a rate among the episodes it applies to, of every arm and setting.

    Returns:
        `Comparison.events`, then `preset` and `simulated`; no row where no verdicts of the preset are stored.

    Raises:
        HarnessError: as `evaluation_episodes` and `compare`.
    """
    comparison = _compared(sources, reference, preset, draws, seed)
    return comparison.events.assign(preset=preset, simulated=comparison.simulated)


def ablation(
    sources: Sources, reference: str = BASE, rule: str = RULE, *, draws: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """What each part of a harness is worth in quality: every script and learner to `reference`, learners to `rule`.

    Returns:
        One row a setting and arm but the reference: `setting arm kind mean delta ci_low ci_high p p_holm to_rule
        rule_low rule_high judgement n_tasks n_episodes simulated`. `kind` is `script` or `learner`; `to_rule` and
        its interval are the difference to `rule`, and `judgement` what it says (`better`, `worse`, `undecided`):
        NaN and empty for scripts, and where `rule` was not evaluated.

    Raises:
        HarnessError: as `evaluation_episodes` and `compare`.
    """
    episodes = evaluation_episodes(sources)
    comparison = compare(episodes, reference, outcomes=["quality"], draws=draws, seed=seed)
    rows = pl.from_pandas(comparison.rows).filter(pl.col("arm") != reference)
    learned = rows.filter(~pl.col("arm").is_in(_NOT_LEARNED))["arm"].unique(maintain_order=True).to_list()
    kind = pl.when(pl.col("arm").is_in(learned)).then(pl.lit("learner")).otherwise(pl.lit("script"))
    beside = _to_rule(episodes, learned, rule, draws, seed)
    table = rows.with_columns(kind.alias("kind"), simulated=pl.lit(comparison.simulated))
    table = table.join(beside, on=["setting", "arm"], how="left", maintain_order="left")
    shown = ["setting", "arm", "kind", "mean", "delta", "ci_low", "ci_high", "p", "p_holm", "to_rule", "rule_low"]
    table = table.select(*shown, "rule_high", pl.col("judgement").fill_null(""), "n_tasks", "n_episodes", "simulated")
    return table.to_pandas()


def _to_rule(episodes: pl.DataFrame, learned: Sequence[str], rule: str, draws: int, seed: int) -> pl.DataFrame:
    """`setting arm to_rule rule_low rule_high judgement` of the learners, where the rule was evaluated too."""
    columns = {"setting": pl.String, "arm": pl.String, "to_rule": pl.Float64, "rule_low": pl.Float64}
    columns |= {"rule_high": pl.Float64, "judgement": pl.String}
    if "setting" not in episodes.columns:
        episodes = episodes.with_columns(setting=pl.lit(""))
    both = episodes.filter((pl.col("arm") == rule).any().over("setting") & pl.col("arm").is_in([*learned, rule]))
    if not set(learned) & set(both["arm"]):
        return pl.DataFrame(schema=columns)
    rows = pl.from_pandas(compare(both, rule, outcomes=["quality"], draws=draws, seed=seed).rows)
    found = rows.filter(pl.col("arm") != rule).select(
        "setting", "arm", to_rule="delta", rule_low="ci_low", rule_high="ci_high"
    )
    said = [judge(low, high).value for low, high in found.select("rule_low", "rule_high").iter_rows()]
    return found.with_columns(judgement=pl.Series(said, dtype=pl.String))


def _compared(sources: Sources, reference: str, preset: str, draws: int, seed: int) -> Comparison:
    return compare(evaluation_episodes(sources), reference, preset=preset, draws=draws, seed=seed)
