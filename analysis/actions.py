"""What is done where: the structural actions of each arm by cluster of states, taken or learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from analysis.clusters import StateClusters, state_clusters
from analysis.evaluations import Sources, evaluation_episodes, finished, open_buffers
from analysis.statistics import Floats, Ints
from buffers import ReplayBuffer
from harness_mdp.errors import ConfigError, SchemaMismatch, UnusableBuffer
from harness_mdp.mdp import ACTIONS, N_ACTIONS, DecisionBatch, Policy
from harness_mdp.settings import open_setting

__all__ = ["COLLECTED", "action_distribution", "what_was_learned"]

COLLECTED = "collected"
"""The arm that stands for the behaviour policy."""

_COLUMNS = ("setting", "executor", "feature_schema_id", "episode_id", "task_hash", "steps.features", "steps.mask")


def action_distribution(sources: Sources, clusters: int = 6) -> pd.DataFrame:
    """Which actions each arm took, by cluster of states; steps weigh equally.

    Args:
        sources: buffers with evaluation episodes, one or several; collected ones, where there are any, stand beside
            them as arm `collected`.
        clusters: at most, in each setting.

    Returns:
        One row a setting, cluster, arm and action: `setting cluster state arm action share share_legal n_steps
        n_tasks simulated`. `state` is what holds in the cluster; `share` of the arm's `n_steps` there took the
        action, `share_legal` of them could have. Clusters that an arm never came to have no rows of it.

    Raises:
        ConfigError: fewer than two clusters.
        SchemaMismatch: collected and evaluated episodes of one setting with different features.
        UnusableBuffer: no steps.
        HarnessError: as `evaluation_episodes`.
    """
    buffers = open_buffers(sources)
    episodes = finished(evaluation_episodes(buffers))
    arms = episodes.select("episode_id", "arm").unique(maintain_order=True)
    evaluated = pl.concat([_read(b, arms["episode_id"].to_list()) for b in buffers]).join(arms, on="episode_id")
    collected = pl.concat([b.read([*_COLUMNS, "steps.action"], phase="collect") for b in buffers])
    collected = collected.filter(pl.col("setting").is_in(evaluated["setting"].unique().implode()))
    rows = pl.concat([evaluated, collected.with_columns(arm=pl.lit(COLLECTED))], how="diagonal_relaxed")
    order = [*episodes["arm"].unique(maintain_order=True), COLLECTED]
    tables: list[pd.DataFrame] = []
    for here in rows.partition_by("setting", maintain_order=True):
        steps = _steps(here)
        grouped = state_clusters(steps.features, steps.action, steps.names, clusters)
        at = grouped.assign(steps.features)
        taken = np.eye(N_ACTIONS)[steps.action]
        for arm in order:
            own = np.flatnonzero(steps.arm == arm)
            if len(own):
                part = _shares(grouped, at[own], taken[own], steps.mask[own], steps.task[own])
                tables.append(part.assign(setting=steps.setting, arm=arm, simulated=steps.simulated))
    if not tables:
        raise UnusableBuffer("no episode has a step: there is nothing that was done")
    return _arranged(tables)


def what_was_learned(
    source: ReplayBuffer | str | Path, policies: Mapping[str, Policy], clusters: int = 6
) -> pd.DataFrame:
    """What each policy would do in the states that a buffer was collected in, beside what was done there.

    Nothing is executed: the probabilities of a policy are averaged over the stored states of each cluster. So a
    difference is the policy's own and not that of the states it leads to.

    Args:
        source: one buffer, of one setting.
        policies: name -> policy that reads features, mask and base action only, such as a saved controller.
        clusters: at most.

    Returns:
        As `action_distribution`, with `share` an expected share, first the arm `collected` (its propensities).

    Raises:
        ConfigError: no policy, or a buffer of several settings.
        SchemaMismatch: a controller of other features, or episodes of several.
        UnusableBuffer: no collected steps.
    """
    if not policies:
        raise ConfigError("no policy to look at; give a saved controller by its name")
    buffer = open_buffers(source)[0]
    columns = [*_COLUMNS, "steps.action", "steps.base_action", "steps.propensities"]
    rows = buffer.read(columns, phase="collect", split="train").with_columns(arm=pl.lit(COLLECTED))
    if rows.is_empty():
        raise UnusableBuffer(f"{buffer.path}: no collected training episodes, so no states to look at. Collect first")
    settings = rows["setting"].unique().sort().to_list()
    if len(settings) > 1:
        raise ConfigError(f"{buffer.path}: collected in {', '.join(settings)}; a controller decides in one setting")
    steps = _steps(rows)
    grouped = state_clusters(steps.features, steps.action, steps.names, clusters)
    at = grouped.assign(steps.features)
    base = rows["steps.base_action"].explode(empty_as_null=True).drop_nulls().to_numpy().astype(np.int64)
    batch = DecisionBatch(steps.features, steps.mask, base)
    behaviour = _matrix(rows["steps.propensities"], N_ACTIONS).astype(np.float64)
    probs: dict[str, Floats] = {COLLECTED: behaviour}
    for name, policy in policies.items():
        try:
            probs[name] = policy.probs_batch(batch)
        except ValueError as error:
            raise SchemaMismatch(
                f"policy {name} cannot decide in the states of {buffer.path} ({error}); expected a controller that was "
                f"trained on setting {steps.setting} of this version"
            ) from error
    tables = [
        _shares(grouped, at, share, steps.mask, steps.task).assign(
            setting=steps.setting, arm=name, simulated=steps.simulated
        )
        for name, share in probs.items()
    ]
    return _arranged(tables)


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """N steps of one setting."""

    setting: str
    names: tuple[str, ...]
    features: np.ndarray[tuple[int, int], np.dtype[np.float32]]
    mask: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    action: Ints
    arm: np.ndarray[tuple[int], np.dtype[np.object_]]
    task: np.ndarray[tuple[int], np.dtype[np.object_]]
    simulated: bool


def _read(buffer: ReplayBuffer, episode_ids: Sequence[str]) -> pl.DataFrame:
    return buffer.read([*_COLUMNS, "steps.action"], episode_id=episode_ids)


def _steps(rows: pl.DataFrame) -> _Steps:
    setting, schemas = rows["setting"][0], rows["feature_schema_id"].unique().sort().to_list()
    if len(schemas) > 1:
        raise SchemaMismatch(
            f"setting {setting}: episodes of {len(schemas)} feature schemas ({', '.join(schemas)}), whose states "
            "cannot be grouped together. Use episodes of one version of the setting"
        )
    lengths = rows["steps.action"].list.len().to_numpy()
    action = rows["steps.action"].explode(empty_as_null=True).drop_nulls().to_numpy().astype(np.int64)
    if len(action) == 0:
        raise UnusableBuffer(f"setting {setting}: no episode has a step, so there is nothing that was done")
    features = _matrix(rows["steps.features"], None).astype(np.float32)
    return _Steps(
        setting=setting,
        names=_names(setting, schemas[0], features.shape[1]),
        features=features,
        mask=_matrix(rows["steps.mask"], N_ACTIONS).astype(np.bool_),
        action=action,
        arm=np.repeat(rows["arm"].to_numpy(), lengths),
        task=np.repeat(rows["task_hash"].to_numpy(), lengths),
        simulated=bool(rows["executor"].str.starts_with("simulated").any()),
    )


def _matrix(column: pl.Series, width: int | None) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(n, d) of a column that has a list of n_i lists of d numbers for each episode."""
    inner = column.explode(empty_as_null=True).drop_nulls()
    width = width or len(inner[0])
    flat = inner.explode(empty_as_null=True).cast(pl.Float64).to_numpy()
    return flat.reshape(len(inner), width)


def _names(setting: str, schema_id: str, width: int) -> tuple[str, ...]:
    """By the installed setting where it made them; else numbers."""
    try:
        schema = open_setting(setting).schema
    except ConfigError:
        return tuple(f"feature {i}" for i in range(width))
    return schema.names if schema.id == schema_id else tuple(f"feature {i}" for i in range(width))


def _shares(
    grouped: StateClusters,
    at: Ints,
    probs: Floats,
    mask: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    task: np.ndarray[tuple[int], np.dtype[np.object_]],
) -> pd.DataFrame:
    rows: list[dict[str, object]] = []
    for cluster, state in enumerate(grouped.labels):
        here = np.flatnonzero(at == cluster)
        if len(here) == 0:
            continue
        share, legal = probs[here].mean(axis=0), mask[here].mean(axis=0)
        rows.extend(
            {
                "cluster": cluster,
                "state": state,
                "action": action.label,
                "share": float(share[action]),
                "share_legal": float(legal[action]),
                "n_steps": len(here),
                "n_tasks": len(set(task[here])),
            }
            for action in ACTIONS
        )
    return pd.DataFrame(rows)


def _arranged(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    table = pl.concat([pl.from_pandas(part) for part in tables])
    arms = {arm: i for i, arm in enumerate(table["arm"].unique(maintain_order=True))}
    settings = {name: i for i, name in enumerate(table["setting"].unique(maintain_order=True))}
    ordered = table.sort(
        pl.col("setting").replace_strict(settings), "cluster", pl.col("arm").replace_strict(arms), maintain_order=True
    )
    columns = ["setting", "cluster", "state", "arm", "action", "share", "share_legal", "n_steps", "n_tasks"]
    return ordered.select(*columns, "simulated").to_pandas()
