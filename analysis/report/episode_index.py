"""The episode browser's index: every episode of the report as columns of small integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analysis.frame import INFRA_MISSING, PAIR
from analysis.report.evaluated import Evaluated
from analysis.report.sources import SOURCE, Source, all_episodes
from harness_mdp.hashing import Json

__all__ = ["Index", "episode_index"]

THOUSAND = 1000
MILLION = 1_000_000

AGAINST = ("", "better", "same", "worse")
"""An episode beside the reference's on the same task, rollout and draws."""

_TEXT = ("setting", "policy", "phase", "task_id", "difficulty", "eval_status", "termination", "executor", "run")
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Index:
    """All episodes in the order of the page."""

    rows: pl.DataFrame
    """`episode_id`, `source`, `evaluation` (-1 for none), the text columns of `episodes_df()` with `policy` as the
    arm is called, `rollout`, `seed`, `return`, `maturity_*`, `tokens`, `cost_usd`, `n_steps`, `against`."""

    def columns(self, details: Mapping[str, tuple[int, int]]) -> dict[str, Json]:
        """For the page: texts once in `words`, each column a list of integers (-1 for nothing).

        Args:
            details: episode id -> (block, place in it) of those whose steps are embedded.
        """
        rows = self.rows
        made: dict[str, Json] = {"id": rows["episode_id"].to_list(), "words": {}}
        for name in (*_TEXT, "against"):
            values = rows[name].cast(pl.String).fill_null("")
            words = sorted(set(values)) if name != "against" else list(AGAINST)
            made["words"][name] = words
            place = {word: index for index, word in enumerate(words)}
            made[name] = [place[value] for value in values]
        for name in (SOURCE, "evaluation", "rollout", "seed", "tokens", "n_steps"):
            made[name] = rows[name].fill_null(-1).to_list()
        for name, scale in (("return", THOUSAND), ("cost_usd", MILLION)):
            made[name] = _scaled(rows[name], scale)
        for name in ("maturity_paper", "maturity_strict"):  # may be negative: shifted by 2
            made[name] = _scaled(rows[name] + 2.0, THOUSAND)
        places = [details.get(each, (-1, -1)) for each in made["id"]]
        made["block"], made["place"] = [block for block, _ in places], [place for _, place in places]
        return made


def episode_index(sources: Sequence[Source], evaluations: Sequence[Evaluated]) -> Index:
    """Every episode of the sources, and the planned ones of the evaluations that are infra_missing."""
    episodes = all_episodes(sources)
    for name in ("maturity_paper", "maturity_strict"):
        if name not in episodes.columns:
            episodes = episodes.with_columns(pl.lit(None, pl.Float64).alias(name))
    parts: list[pl.DataFrame] = []
    for number, each in enumerate(evaluations):
        own = each.episodes.with_columns(
            against=_against(each),
            evaluation=pl.lit(number, pl.Int64),
            policy=pl.col("arm"),
            source=pl.lit(each.source, pl.Int64),
            run=pl.col("run").fill_null(each.runs[0]) if "run" in each.episodes.columns else pl.lit(each.runs[0]),
            phase=pl.col("phase").fill_null("eval") if "phase" in each.episodes.columns else pl.lit("eval"),
        )
        parts.append(own)
    columns = [
        *("episode_id", SOURCE, *_TEXT, *("rollout", "seed", "return", "maturity_paper", "maturity_strict")),
        *("tokens", "cost_usd", "n_steps", "evaluation", "against"),
    ]
    compared = [part["episode_id"] for part in parts]
    seen = pl.concat(compared).drop_nulls().unique() if compared else pl.Series("episode_id", [], pl.String)
    rest = episodes.filter(~pl.col("episode_id").is_in(seen.implode()))
    rest = rest.with_columns(evaluation=pl.lit(-1, pl.Int64), against=pl.lit(""))
    frames = [frame.select(name for name in columns if name in frame.columns) for frame in (*parts, rest)]
    rows = pl.concat(frames, how="diagonal_relaxed")
    absent = pl.concat_str(pl.lit("missing-"), "evaluation", pl.lit("-"), "policy", pl.lit("-"), "task_id", "rollout")
    return Index(rows.with_columns(episode_id=pl.col("episode_id").fill_null(absent)))


def _against(each: Evaluated) -> pl.Series:
    """`better`, `same` or `worse` than the reference on the pair; empty for the reference and without both returns."""
    reference = each.episodes.filter(pl.col("arm") == each.arms[0]).select(*PAIR, base="return")
    joined = each.episodes.join(reference, on=PAIR, how="left", maintain_order="left")
    gain = pl.col("return") - pl.col("base")
    told = (
        pl.when((pl.col("arm") == each.arms[0]) | gain.is_null() | (pl.col("eval_status") == INFRA_MISSING))
        .then(pl.lit(""))
        .when(gain > _SAME)
        .then(pl.lit("better"))
        .when(gain < -_SAME)
        .then(pl.lit("worse"))
        .otherwise(pl.lit("same"))
    )
    return joined.select(told.alias("against")).to_series()


def _scaled(values: pl.Series, scale: int) -> list[int]:
    return (values.cast(pl.Float64) * scale).round().cast(pl.Int64).fill_null(-1).to_list()
