"""Which episodes are compared with which, from the buffer alone: the plans that evaluations recorded beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import polars as pl

from analysis.frame import INFRA_MISSING, PAIR, planned_episodes
from analysis.report.sources import Source
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json
from harness_mdp.settings import open_setting

__all__ = ["Evaluated", "evaluations_of"]

_CONDITIONS = ("setting", "setting_version", "executor", "seed", "horizon", "token_budget", "usd_budget")
"""What all episodes of an evaluation share; named alike in a recorded plan and in the buffer."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Arms on the same tasks, rollouts and draws; one setting."""

    source: int
    """Index of the buffer among the sources."""
    label: str
    """The setting, and the runs where one setting was evaluated several times."""
    setting: str
    runs: tuple[str, ...]
    executor: str
    arms: tuple[str, ...]
    """The first is the reference."""
    learners: tuple[str, ...]
    """Arms that are learned controllers."""
    keys: Mapping[str, str | None]
    """Arm -> what tells learners of one name apart; None for a script."""
    episodes: pl.DataFrame
    """One row per planned episode: arm and the columns of `episodes_df()`; `infra_missing` where there is none."""
    behaviours: tuple[str, ...]
    """Policies that collected in the same buffer."""
    on_learned_tasks: bool = False
    never_tried: int = 0
    """Of the missing episodes, those that were never attempted: the evaluation stopped early."""


def evaluations_of(sources: Sequence[Source], runs: Sequence[str] = ()) -> tuple[Evaluated, ...]:
    """Every evaluation in the sources; runs that share their conditions and do not contradict are one.

    An evaluation is what its manifest planned; without a manifest, the episodes of phase eval of one run, arm by
    policy name.

    Args:
        sources: the buffers.
        runs: only these, if any are named.

    Raises:
        ConfigError: no evaluation has a name in `runs`.
    """
    found: list[Evaluated] = []
    for index, source in enumerate(sources):
        here: list[Evaluated] = []
        for each in _of_source(index, source, runs):
            for position, other in enumerate(here):
                if (joined := _join(other, each)) is not None:
                    here[position] = joined
                    break
            else:
                here.append(each)
        found += here
    if runs and not found:
        known = sorted({run for source in sources for run in source.runs})
        raise ConfigError(f"runs={list(runs)} names no evaluation; the manifests name {', '.join(known) or 'none'}")
    return tuple(_labelled(found))


def _of_source(index: int, source: Source, runs: Sequence[str]) -> list[Evaluated]:
    plans = {
        name: manifest["resolved"]["plan"]
        for name, manifest in source.runs.items()
        if "plan" in _resolved(manifest) and (not runs or name in runs)
    }
    found = [_planned(index, source, name, plan) for name, plan in plans.items()]
    evaluated = source.episodes.filter(pl.col("phase") == "eval")
    for name in sorted(set(evaluated["run"]) - plans.keys()):
        if not runs or name in runs:
            found += _unplanned(index, source, name, evaluated.filter(pl.col("run") == name))
    return found


def _resolved(manifest: Mapping[str, Json]) -> Mapping[str, Json]:
    resolved = manifest.get("resolved")
    return cast("Mapping[str, Json]", resolved) if isinstance(resolved, dict) else {}


def _learned_tasks(source: Source, run: str) -> bool:
    config = _resolved(source.runs.get(run, {})).get("config", {})
    return bool(config.get("on_learned_tasks", False))


def _planned(index: int, source: Source, run: str, plan: Mapping[str, Json]) -> Evaluated:
    rows = [
        (arm["name"], member["policy_fingerprint"], rollout, task, task_hash)
        for arm in plan["arms"]
        for member in arm["members"]
        for rollout in member["rollouts"]
        for task, task_hash in plan["tasks"]
    ]
    columns = {"arm": pl.String, "policy_fingerprint": pl.String, "rollout": pl.Int64}
    columns |= {"task_id": pl.String, "task_hash": pl.String}
    conditions = {name: pl.lit(plan[name]) for name in _CONDITIONS if plan[name] is not None}
    planned = pl.DataFrame(rows, schema=columns, orient="row").with_columns(**conditions)
    same = [pl.col(name).eq_missing(pl.lit(plan[name])) for name in _CONDITIONS]
    found = source.episodes.filter(pl.all_horizontal(same))
    episodes = planned_episodes(planned, found, on=("policy_fingerprint", "rollout", "task_hash"))
    names = {(a.run, a.task_id, a.rollout) for a in source.attempts}
    absent = episodes.filter(pl.col("eval_status") == INFRA_MISSING).select(PAIR).iter_rows()
    return Evaluated(
        source=index,
        label=plan["setting"],
        setting=plan["setting"],
        runs=(run,),
        executor=plan["executor"],
        arms=tuple(arm["name"] for arm in plan["arms"]),
        learners=tuple(arm["name"] for arm in plan["arms"] if arm["learner"]),
        keys={arm["name"]: arm["learner"] for arm in plan["arms"]},
        episodes=episodes,
        behaviours=_behaviours(source, plan["setting"]),
        on_learned_tasks=_learned_tasks(source, run),
        never_tried=sum((run, task, rollout) not in names for task, rollout in absent),
    )


def _behaviours(source: Source, setting: str) -> tuple[str, ...]:
    collected = source.episodes.filter((pl.col("phase") == "collect") & (pl.col("setting") == setting))
    return tuple(sorted(set(collected["policy"])))


def _unplanned(index: int, source: Source, run: str, episodes: pl.DataFrame) -> list[Evaluated]:
    """A run of phase eval whose manifest is lost or older: one evaluation a setting, arms by policy name."""
    found: list[Evaluated] = []
    for frame in episodes.partition_by("setting", maintain_order=True):
        setting = str(frame["setting"][0])
        named = _arm_names(frame)
        failed = _failed(source, run, named)
        arms = tuple(sorted(set(named["arm"]), key=lambda arm: (_learned(setting, arm), arm != "base", arm)))
        found.append(
            Evaluated(
                source=index,
                label=setting,
                setting=setting,
                runs=(run,),
                executor=str(frame["executor"][0]),
                arms=arms,
                learners=tuple(arm for arm in arms if _learned(setting, arm)),
                keys={arm: arm if _learned(setting, arm) else None for arm in arms},
                episodes=pl.concat([named, failed], how="diagonal_relaxed"),
                behaviours=_behaviours(source, setting),
                on_learned_tasks=_learned_tasks(source, run),
            )
        )
    return found


def _arm_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds `arm`: the policy's name, with its fingerprint where two of that name have an episode of one pair."""
    twice = frame.filter(pl.struct("policy", *PAIR).is_duplicated())["policy"].unique()
    with_hash = pl.concat_str("policy", pl.lit(" "), pl.col("policy_fingerprint").str.slice(0, 6))
    return frame.with_columns(
        arm=pl.when(pl.col("policy").is_in(twice.to_list())).then(with_hash).otherwise(pl.col("policy"))
    )


def _failed(source: Source, run: str, named: pl.DataFrame) -> pl.DataFrame:
    """Episodes of the run that have failed attempts only; conditions as those of their task."""
    tasks = {task: (task_hash, executor, seed) for task, task_hash, executor, seed in _tasks(named)}
    arms = set(named["arm"])
    rows = {
        a.episode_id: (a.policy, a.policy, a.task_id, a.rollout, *tasks[a.task_id])
        for a in source.attempts
        if a.run == run and a.policy in arms and a.task_id in tasks
    }
    columns = ("arm", "policy", "task_id", "rollout", "task_hash", "executor", "seed")
    schema = {name: named.schema[name] for name in columns}
    frame = pl.DataFrame(list(rows.values()), schema=schema, orient="row")
    return frame.with_columns(eval_status=pl.lit(INFRA_MISSING), setting=pl.lit(named["setting"][0]))


def _tasks(named: pl.DataFrame) -> list[tuple[str, str, str, int]]:
    return named.select("task_id", "task_hash", "executor", "seed").unique(maintain_order=True).rows()


def _learned(setting: str, arm: str) -> bool:
    return arm != "random" and (scripts := _scripts(setting)) is not None and arm not in scripts


@cache
def _scripts(setting: str) -> frozenset[str] | None:
    """None for a setting of somebody else: nothing tells its scripts from its controllers."""
    try:
        return frozenset(open_setting(setting).scripts)
    except ConfigError:
        return None


def _join(one: Evaluated, other: Evaluated) -> Evaluated | None:
    """Both as one evaluation; None where the conditions, the reference or the episodes of an arm differ."""
    if (one.setting, one.executor, one.arms[0]) != (other.setting, other.executor, other.arms[0]):
        return None
    if any(one.keys[arm] != other.keys[arm] for arm in set(one.arms) & set(other.arms)):
        return None
    if one.episodes.select("task_hash").unique().join(other.episodes, on="task_hash", how="anti").height:
        return None
    both = pl.concat([one.episodes, other.episodes], how="diagonal_relaxed")
    both = both.unique(["arm", *PAIR, "seed", "policy_fingerprint"], keep="first", maintain_order=True)
    if both.select(pl.struct("arm", *PAIR).is_duplicated().any()).item():
        return None
    arms = tuple(dict.fromkeys([*one.arms, *other.arms]))
    learners = tuple(arm for arm in arms if arm in {*one.learners, *other.learners})
    return replace(
        one,
        runs=(*one.runs, *other.runs),
        arms=(*(arm for arm in arms if arm not in learners), *learners),
        learners=learners,
        keys={**one.keys, **other.keys},
        episodes=both,
        on_learned_tasks=one.on_learned_tasks or other.on_learned_tasks,
        never_tried=one.never_tried + other.never_tried,
    )


def _labelled(found: Sequence[Evaluated]) -> list[Evaluated]:
    """Labels that differ where one buffer has several evaluations of a setting."""
    keys = [(each.source, each.setting) for each in found]
    return [
        replace(each, label=f"{each.setting} ({', '.join(each.runs)})") if keys.count(key) > 1 else each
        for each, key in zip(found, keys, strict=True)
    ]
