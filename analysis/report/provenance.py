"""Where the figures of a report come from: buffers, runs, controllers, versions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.report.sources import Source
from controllers.manifest import Manifest, read_manifest
from harness_mdp.errors import HarnessError
from harness_mdp.hashing import Json

__all__ = ["BufferOrigin", "ControllerOrigin", "MadeBy", "RunOrigin", "controllers_of", "origins_of", "pretty"]


@dataclass(frozen=True, slots=True)
class MadeBy:
    """The report's own making."""

    passed: Sequence[str]
    """Words of the command line."""
    resolved: Mapping[str, Json]
    """The report's configuration."""
    versions: Mapping[str, str]
    git_commit: str | None


@dataclass(frozen=True, eq=False)
class RunOrigin:
    """A run manifest: how some episodes were made."""

    name: str
    passed: str
    seed: str
    """Of the executor's draws and the policy's choices."""
    git_commit: str
    config: str
    """As resolved, JSON."""
    versions: str


@dataclass(frozen=True, eq=False)
class BufferOrigin:
    """A buffer: which version was read, what it holds, who wrote it."""

    path: str
    version: int
    files: int
    data_bytes: int
    counts: tuple[tuple[str, str, str, str, int], ...]
    """(setting, phase, split, eval_status, episodes)"""
    executors: tuple[str, ...]
    licences: Mapping[str, str]
    attempts: int
    """Failed ones, of episodes that are not finished."""
    runs: tuple[RunOrigin, ...]
    schema_version: int
    feature_schemas: tuple[tuple[str, int, str], ...]
    """(setting, setting version, feature schema id)"""


@dataclass(frozen=True, eq=False)
class ControllerOrigin:
    """A saved controller that an evaluation names."""

    path: str
    manifest: Manifest | None
    """None when the folder cannot be read from here."""
    config: str
    """Training configuration and metrics, JSON."""
    problem: str = ""


def origins_of(sources: Sequence[Source]) -> tuple[BufferOrigin, ...]:
    """One entry a buffer, its runs by name."""
    found: list[BufferOrigin] = []
    for source in sources:
        card: Mapping[str, Json] = {}
        if "://" not in source.path:
            card = source.buffer.harness.card() or {}
        schemas = source.episodes.select("setting", "setting_version", "feature_schema_id").unique().sort("setting")
        version = source.episodes["schema_version"]
        found.append(
            BufferOrigin(
                path=source.path,
                version=source.stats.version,
                files=source.stats.files,
                data_bytes=source.stats.data_bytes,
                counts=tuple((*key, n) for key, n in source.stats.counts.items()),
                executors=tuple(sorted(set(source.episodes["executor"]))),
                licences={str(k): str(v) for k, v in dict(card.get("licences", {})).items()},
                attempts=len(source.attempts),
                runs=tuple(_run(name, manifest) for name, manifest in source.runs.items()),
                schema_version=int(version[0]) if len(version) else 0,
                feature_schemas=tuple(schemas.rows()),
            )
        )
    return tuple(found)


def controllers_of(sources: Sequence[Source]) -> tuple[ControllerOrigin, ...]:
    """The controllers that evaluations name by their folder, as far as they are still there."""
    paths = {
        str(name): None
        for source in sources
        for manifest in source.runs.values()
        for name in _config(manifest).get("policies", ())
        if "/" in str(name) or Path(str(name)).is_dir()
    }
    found: list[ControllerOrigin] = []
    for path in paths:
        try:
            manifest = read_manifest(path)
        except HarnessError as error:
            found.append(ControllerOrigin(path, None, "", str(error)))
            continue
        found.append(ControllerOrigin(path, manifest, pretty({"config": manifest.config, "metrics": manifest.metrics})))
    return tuple(found)


def _config(manifest: Mapping[str, Json]) -> Mapping[str, Json]:
    resolved = manifest.get("resolved", {})
    return dict(resolved.get("config", {})) if isinstance(resolved, dict) else {}


def _run(name: str, manifest: Mapping[str, Json]) -> RunOrigin:
    config = _config(manifest)
    resolved: Mapping[str, Json] = manifest.get("resolved", {})
    return RunOrigin(
        name=name,
        passed=" ".join(map(str, manifest.get("passed", ()))),
        seed=str(config.get("seed", "not recorded")),
        git_commit=str(resolved.get("git_commit") or "not recorded"),
        config=pretty(config),
        versions=", ".join(f"{k} {v}" for k, v in dict(manifest.get("versions", {})).items()),
    )


def pretty(value: Json) -> str:
    """JSON for a person."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)
