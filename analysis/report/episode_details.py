"""The steps behind an episode, for as many episodes as fit: blocks that the page opens one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analysis.report.episode_index import Index
from analysis.report.packing import pack
from analysis.report.sources import SOURCE, Source
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json
from harness_mdp.mdp import ACTIONS, Episode, State, Step, fold, start
from harness_mdp.settings import open_setting

__all__ = ["Details", "embed", "feature_names"]

MAX_TEXT = 20_000
"""Characters of one artifact version that are kept."""

MAX_ITEMS = 50
"""Problems, evidence ids or claims of one step that are kept."""

_BLOCK = 48
"""Episodes a block: what the page unpacks to open one of them."""

_PILOT = 192
"""Episodes whose size tells how many fit."""

_SHRINK = 0.85


@dataclass(frozen=True, eq=False)
class Details:
    """Blocks of episodes, packed, and where each episode is."""

    blocks: tuple[str, ...]
    places: Mapping[str, tuple[int, int]]
    """Episode id -> (block, place in it)."""

    @property
    def size(self) -> int:
        """Bytes in the page."""
        return sum(map(len, self.blocks))


def embed(sources: Sequence[Source], index: Index, budget: int) -> Details:
    """As many episodes as fit `budget` bytes, chosen in turn from every setting, policy and task.

    Those of an evaluation come first, and of each policy the same rollouts of a task, so that what can be opened
    can also be compared. The same buffers give the same choice.
    """
    order = _order(index)
    wanted = order.head(_PILOT)
    details = _packed(sources, wanted)
    if not details.places or budget <= 0:
        return Details((), {})
    fitting = int(budget / (details.size / len(details.places)))
    while fitting > 0:
        wanted = order.head(fitting)
        details = _packed(sources, wanted)
        if details.size <= budget:
            return details
        fitting = int(min(fitting, len(details.places)) * _SHRINK)
    return Details((), {})


def _order(index: Index) -> pl.DataFrame:
    """Episodes by the turn in which they are chosen: a task by all policies of all settings, then the next task."""
    group = [SOURCE, "setting", "evaluation", "policy", "task_id"]
    rows = index.rows.filter(pl.col("return").is_not_null()).sort(*group, "rollout", "seed", "episode_id")
    turn = pl.int_range(pl.len()).over(group)
    evaluated = pl.when(pl.col("evaluation") >= 0).then(0).otherwise(1)
    task = pl.col("task_id").rank("dense").over(SOURCE, "setting", "evaluation")
    ranked = rows.with_columns(turn=turn, evaluated=evaluated, task=task)
    return ranked.sort("turn", "evaluated", "task", *group).unique("episode_id", keep="first", maintain_order=True)


def _packed(sources: Sequence[Source], wanted: pl.DataFrame) -> Details:
    blocks: list[str] = []
    places: dict[str, tuple[int, int]] = {}
    for number, source in enumerate(sources):
        ids = wanted.filter(pl.col(SOURCE) == number)["episode_id"].to_list()
        if not ids:
            continue
        # Neighbours are drafts of one task, which pack well and are what one compares.
        episodes = sorted(
            source.buffer.episodes(episode_id=ids), key=lambda e: (e.setting, e.task_id, e.rollout, e.episode_id)
        )
        for first in range(0, len(episodes), _BLOCK):
            block = episodes[first : first + _BLOCK]
            places |= {episode.episode_id: (len(blocks), place) for place, episode in enumerate(block)}
            blocks.append(pack([_episode(episode) for episode in block]))
    return Details(tuple(blocks), places)


def feature_names(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Setting -> names of its features; left out where this installation does not know them."""
    names: dict[str, list[str]] = {}
    for source in sources:
        for setting, schema in source.episodes.select("setting", "feature_schema_id").unique().iter_rows():
            try:
                known = open_setting(setting).schema
            except ConfigError:
                continue
            if known.id == schema:
                names[setting] = list(known.names)
    return names


def _episode(episode: Episode) -> dict[str, Json]:
    states = fold(episode.events, start(episode.horizon, episode.budgets))
    return {
        "horizon": episode.horizon,
        "budgets": [episode.budgets.tokens, episode.budgets.usd],
        "policy": episode.policy,
        "template": episode.template,
        "rubric": [[name, score, weight] for name, score, weight in episode.rubric],
        "events": [list(event) for event in episode.maturity_events],
        "artifacts": {sha: _cut(text) for sha, text in episode.artifacts.items()},
        "final": episode.final_artifact,
        "seconds": round(episode.seconds, 3),
        "steps": [_step(step, state) for step, state in zip(episode.steps, states, strict=False)],
    }


def _step(step: Step, state: State) -> dict[str, Json]:
    event = step.event
    made: dict[str, Json] = {
        "action": int(step.action),
        "base": int(step.base_action),
        "legal": sum(1 << int(action) for action in ACTIONS if step.mask[action]),
        "probs": [round(float(p), 4) for p in step.propensities],
        "features": [round(float(x), 3) for x in step.features],
        "state": _state(state),
        "status": event.status.value,
        "error": event.error.value,
        "note": _cut(event.note),
        "evidence": _some(event.evidence),
        "calls": event.calls,
        "tokens": event.tokens,
        "cost": event.cost_usd,
        "seconds": round(event.seconds, 3),
    }
    if event.tool is not None:
        tool = event.tool
        made["tool"] = [tool.name, tool.valid, tool.ok, tool.version, tool.passed, tool.total, _some(tool.problems)]
    if event.check is not None:
        check = event.check
        made["check"] = [check.score, check.version, check.passed, check.total, _some(check.problems)]
    if event.artifact is not None:
        made["artifact"] = [event.artifact.version, event.artifact.sha256, event.artifact.chars]
    if event.claims is not None:
        made["claims"] = [[_cut(claim.text), claim.supported] for claim in event.claims[:MAX_ITEMS]]
    return made


def _state(state: State) -> list[Json]:
    """What the page says in words of the state before a step."""
    return [
        state.version,
        len(state.evidence),
        state.evidence_new,
        state.open_problems,
        state.version_checked,
        state.version_tested,
        state.tokens,
        state.stalled,
    ]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n[cut: {len(text):,} characters]"


def _some(items: Sequence[str]) -> list[str]:
    more = [f"[and {len(items) - MAX_ITEMS} more]"] if len(items) > MAX_ITEMS else []
    return [*(_cut(item) for item in items[:MAX_ITEMS]), *more]
