"""Does a controller that was learned with one executor help with another? Trained on rows, evaluated on columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import polars as pl

from analysis.comparison import compare
from analysis.evaluations import Sources, evaluation_episodes
from analysis.main_table import BASE
from controllers.saved import load_controller, read_manifest
from harness_mdp.errors import ConfigError

__all__ = ["executor_transfer", "with_training_executor"]


def with_training_executor(episodes: pl.DataFrame, controllers: Sequence[str | Path]) -> pl.DataFrame:
    """`episodes` with `trained_on`: the executor whose episodes the controller of each learned from; null for scripts.

    Args:
        episodes: of `evaluation_episodes`.
        controllers: folders of the saved controllers, which say so in their manifests.

    Raises:
        InputError, SchemaMismatch: a folder that holds no controller.
        ConfigError: the episodes have no policy fingerprints.
    """
    if "policy_fingerprint" not in episodes.columns:
        raise ConfigError("the episodes have no column policy_fingerprint, by which a controller is known")
    learned_on = {load_controller(path).fingerprint: " + ".join(read_manifest(path).executors) for path in controllers}
    executor = pl.col("policy_fingerprint").replace_strict(learned_on, default=None, return_dtype=pl.String)
    return episodes.with_columns(trained_on=executor)


def executor_transfer(sources: Sources, reference: str = BASE, *, draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Gain in quality of every learner, by the executor it was trained on and the one it was evaluated on.

    Args:
        sources: evaluations with a column `trained_on` (see `with_training_executor`), null for what was not learned;
            one or several, of several executors.
        reference: the arm that gains are taken to, evaluated with each executor.
        draws: resamples of tasks.
        seed: of resamples and sign flips.

    Returns:
        One row a setting, arm, training and evaluation executor: `setting arm trained_on evaluated_on same mean delta
        ci_low ci_high p n_tasks n_episodes simulated`. `trained_on` is empty for scripts, which need no training;
        `same` says that both executors are one.

    Raises:
        ConfigError: no column `trained_on`.
        UnusableBuffer: with some executor, arms that are not matched.
        HarnessError: as `evaluation_episodes` and `compare`.
    """
    episodes = evaluation_episodes(sources)
    if "trained_on" not in episodes.columns:
        raise ConfigError(
            "the evaluations have no column trained_on; expected the executor that each controller was trained on, as "
            "with_training_executor adds it from the controllers' manifests"
        )
    trained = pl.col("trained_on").fill_null("")
    mark = pl.when(trained == "").then("arm").otherwise(pl.format("{}\n{}", "arm", trained))
    tables: list[pl.DataFrame] = []
    for here in episodes.with_columns(arm=mark).partition_by("executor", maintain_order=True):
        executor = here["executor"][0]
        comparison = compare(here, reference, outcomes=["quality"], draws=draws, seed=seed)
        rows = pl.from_pandas(comparison.rows).filter(pl.col("arm") != reference)
        tables.append(
            rows.with_columns(
                pl.col("arm").str.split("\n").list.first(),
                trained_on=pl.col("arm").str.split("\n").list.get(1, null_on_oob=True).fill_null(""),
                evaluated_on=pl.lit(executor),
                simulated=pl.lit(comparison.simulated),
            )
        )
    table = pl.concat(tables).with_columns(same=pl.col("trained_on") == pl.col("evaluated_on"))
    shown = ["setting", "arm", "trained_on", "evaluated_on", "same", "mean", "delta", "ci_low", "ci_high", "p"]
    return (
        table.select(*shown, "n_tasks", "n_episodes", "simulated")
        .sort("setting", "arm", maintain_order=True)
        .to_pandas()
    )
