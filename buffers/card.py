"""The dataset card: what a buffer holds, who acted in it, how many, under which licences, made by which versions.

A pure function of the episodes and of the run manifests, so that the same buffer has the same card, byte by byte,
whatever order its episodes were committed in. It holds no path, no URL and no clock time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Unpack

from buffers.schema import SCHEMA_VERSION
from buffers.where import Where
from harness_mdp.hashing import Json

if TYPE_CHECKING:
    import polars as pl

    from buffers.replay import ReplayBuffer

__all__ = ["CARD_COLUMNS", "MODEL", "SIMULATED", "UNSTATED", "card_of", "dataset_card"]

CARD_COLUMNS = (
    "setting",
    "setting_version",
    "feature_schema_id",
    "phase",
    "split",
    "eval_status",
    "termination",
    "executor",
    "policy",
    "policy_fingerprint",
    "run",
    "task_id",
    "horizon",
    "token_budget",
    "usd_budget",
    "return",
    "tokens",
    "cost_usd",
    "propensity_source",
    "steps.t",
)
"""What a card is made from, as `ReplayBuffer.read` names it."""

SIMULATED = "simulated"
"""How the fingerprint of the simulated executor begins."""

UNSTATED = "not stated"
"""Licence of a setting that no collection has named one for."""

MODEL = ("kind", "model", "profile", "label", "temperature", "top_p", "max_tokens")
"""What of an executor's configuration is shown: not the URL, nor fields of a user's own, which may be confidential."""

_Key = tuple[Json, ...]
_Row = Mapping[str, Json]


def card_of(
    buffer: ReplayBuffer,
    *,
    licences: Mapping[str, str] | None = None,
    simulated: bool = False,
    **where: Unpack[Where],
) -> dict[str, Json]:
    """The card of the selected episodes of `buffer` as JSON; writes nothing.

    Args:
        buffer: where they are; without a folder `_harness`, nothing is known of runs, licences and attempts.
        licences: licence of the tasks by setting, beside those that the written card names.
        simulated: whether an executor is simulated of which no manifest says so; also if the written card says so.
        where: only these episodes.

    Raises:
        InputError, UnusableBuffer: what is there cannot be read.
    """
    episodes = buffer.read(CARD_COLUMNS, **where)
    settings = set(episodes["setting"])
    harness = buffer.harness if buffer.has_harness else None
    written = (harness.card() if harness else None) or {}
    attempts = {attempt.episode_id: attempt.setting for attempt in harness.attempts()} if harness else {}
    missing = Counter(attempts[identity] for identity in (buffer.infra_missing() if attempts else ()))
    known = _merged(written.get("licences", {}), licences or {})
    return dataset_card(
        episodes,
        runs=harness.runs() if harness else {},
        licences={name: text for name, text in known.items() if not where or name in settings},
        simulated=simulated or bool(written.get("simulated")),
        infra_missing={name: n for name, n in missing.items() if not where or name in settings},
    )


def dataset_card(
    episodes: pl.DataFrame,
    *,
    runs: Mapping[str, Mapping[str, Json]],
    licences: Mapping[str, str],
    simulated: bool,
    infra_missing: Mapping[str, int],
) -> dict[str, Json]:
    """The card as JSON.

    Args:
        episodes: one row an episode, with `CARD_COLUMNS`.
        runs: run manifest by run (`HarnessFolder.runs`); a run without one counts, and its versions are not known.
        licences: licence of the tasks by setting.
        simulated: whether an executor is simulated of which no manifest says what it is.
        infra_missing: episodes that were attempted and never finished, by setting; they have no return.
    """
    rows: list[_Row] = [{**row, "steps": len(row["steps.t"] or ())} for row in episodes.iter_rows(named=True)]
    executors = _executors(rows, runs)
    return {
        "schema_version": SCHEMA_VERSION,
        "totals": _sums(rows),
        "counts": _counts(rows),
        "settings": _settings(rows, licences),
        "policies": _policies(rows),
        "executors": [executor["fingerprint"] for executor in executors],
        "models": executors,
        "simulated": any(e["simulated"] or (simulated and "kind" not in e) for e in executors),
        "infra_missing": {setting: n for setting, n in sorted(infra_missing.items()) if n},
        "propensities": dict(sorted(Counter(row["propensity_source"] for row in rows).items())),
        "terminations": dict(sorted(Counter(row["termination"] for row in rows).items())),
        "licences": {name: licences.get(name, UNSTATED) for name in sorted({*licences, *(r["setting"] for r in rows)})},
        "runs": _runs(rows, runs),
    }


def _merged(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Licence by setting; a setting whose tasks came under several has all of them, in the order of the alphabet."""
    merged: dict[str, str] = {}
    for setting in sorted({*before, *now}):
        texts = {text for side in (before, now) for text in side.get(setting, "").split("; ") if text}
        merged[setting] = "; ".join(sorted(texts - {UNSTATED} or texts))
    return merged


def _grouped(rows: Iterable[_Row], *names: str) -> list[tuple[_Key, list[_Row]]]:
    """Rows by the values of `names`, in their order; an absent value comes first."""
    groups: dict[_Key, list[_Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return sorted(groups.items(), key=lambda group: [(value is not None, value) for value in group[0]])


def _sums(rows: Sequence[_Row]) -> dict[str, Json]:
    costs = [row["cost_usd"] for row in rows]
    return {
        "episodes": len(rows),
        "steps": sum(row["steps"] for row in rows),
        "tokens": sum(row["tokens"] for row in rows),
        # Exact sums, because floating addition depends on the order and commits have none.
        "cost_usd": None if None in costs else fsum(costs),
    }


def _counts(rows: Sequence[_Row]) -> list[Json]:
    names = ("setting", "phase", "split", "eval_status")
    return [dict(zip(names, key, strict=True)) | {"episodes": len(group)} for key, group in _grouped(rows, *names)]


def _settings(rows: Sequence[_Row], licences: Mapping[str, str]) -> list[Json]:
    names = ("setting", "setting_version", "feature_schema_id", "horizon", "token_budget", "usd_budget")
    return [
        dict(zip(names, key, strict=True))
        | {
            "tasks": len({row["task_id"] for row in group}),
            **_sums(group),
            "licence": licences.get(key[0], UNSTATED),
        }
        for key, group in _grouped(rows, *names)
    ]


def _policies(rows: Sequence[_Row]) -> list[Json]:
    names = ("setting", "phase", "policy", "policy_fingerprint", "executor")
    return [
        dict(zip(names, key, strict=True))
        | {
            "episodes": len(group),
            "invalid": sum(row["eval_status"] == "invalid" for row in group),
            "mean_return": fsum(row["return"] for row in group) / len(group),
        }
        for key, group in _grouped(rows, *names)
    ]


def _executors(rows: Sequence[_Row], runs: Mapping[str, Mapping[str, Json]]) -> list[dict[str, Json]]:
    found: list[dict[str, Json]] = []
    for (fingerprint,), group in _grouped(rows, "executor"):
        configured = [_executor_config(runs.get(name)) for name in sorted({row["run"] for row in group})]
        known: dict[str, Json] = next((config for config in configured if config), {})
        is_simulated = known.get("kind") == "simulated" or fingerprint.startswith(SIMULATED)
        found.append({"fingerprint": fingerprint, "simulated": is_simulated, "episodes": len(group), **known})
    return found


def _executor_config(manifest: Mapping[str, Json] | None) -> dict[str, Json]:
    config = _inside(manifest, "resolved", "config", "executor")
    return {key: config[key] for key in MODEL if config.get(key) not in (None, "")}


def _runs(rows: Sequence[_Row], runs: Mapping[str, Mapping[str, Json]]) -> list[Json]:
    return [
        {
            "run": run,
            "phase": phase,
            "episodes": len(group),
            "git_commit": _inside(runs.get(run), "resolved").get("git_commit"),
            "versions": dict(sorted(_inside(runs.get(run), "versions").items())),
        }
        for (run, phase), group in _grouped(rows, "run", "phase")
    ]


def _inside(value: Json, *path: str) -> Mapping[str, Json]:
    """The object at `path`; empty where a manifest, which a person may have edited, has none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
