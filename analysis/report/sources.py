"""The buffers a report is made of: one, or every buffer beneath a folder; each checked before anything is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from buffers import Attempt, BufferStats, ReplayBuffer
from buffers.schema import SCHEMA_VERSION
from harness_mdp.errors import SchemaMismatch, UnusableBuffer
from harness_mdp.hashing import Json

__all__ = ["SOURCE", "Source", "all_episodes", "open_sources"]

SOURCE = "source"
"""Column that says which buffer an episode is from: an index into the sources."""

_DEPTH = 6
"""How far beneath a folder buffers are looked for."""


@dataclass(frozen=True, eq=False)
class Source:
    """One buffer and what lies beside it."""

    label: str
    """Path beneath the folder that was asked for; empty for a buffer that was named itself."""
    path: str
    buffer: ReplayBuffer
    stats: BufferStats
    episodes: pl.DataFrame
    """`episodes_df()` of the buffer."""
    attempts: tuple[Attempt, ...]
    """Attempts at episodes that are not in the buffer: these are infra_missing."""
    runs: Mapping[str, Mapping[str, Json]]
    """Run manifests by name."""


def open_sources(path: str) -> tuple[Source, ...]:
    """The buffer at `path`, or all beneath it, with at least one finished episode among them.

    Raises:
        InputError: nothing there.
        UnusableBuffer: no buffer, a damaged one, one of another schema version, or no finished episode in any.
        SchemaMismatch: episodes of one setting that were made by different versions.
    """
    sources = tuple(_open(label, found) for label, found in _find(path))
    if not any(len(source.episodes) for source in sources):
        raise _empty(path, sources)
    _refuse_mixtures(path, sources)
    return sources


def all_episodes(sources: Sequence[Source]) -> pl.DataFrame:
    """The episodes of all sources in their order, with the column `source`."""
    frames = [
        source.episodes.with_columns(pl.lit(index, pl.Int64).alias(SOURCE)) for index, source in enumerate(sources)
    ]
    return pl.concat(frames, how="diagonal_relaxed")


def _find(path: str) -> list[tuple[str, str]]:
    if "://" in path or not Path(path).is_dir() or (Path(path) / "_delta_log").is_dir():
        return [("", path)]
    found: list[Path] = []
    _look(Path(path), _DEPTH, found)
    return [(str(each.relative_to(path)), str(each)) for each in found] or [("", path)]


def _look(folder: Path, depth: int, found: list[Path]) -> None:
    for each in sorted(folder.iterdir()):
        if not each.is_dir() or each.is_symlink() or each.name.startswith((".", "_")):
            continue
        if (each / "_delta_log").is_dir():
            found.append(each)
        elif depth > 1:
            _look(each, depth - 1, found)


def _open(label: str, path: str) -> Source:
    buffer = ReplayBuffer(path)
    episodes = buffer.episodes_df()
    here = set(episodes["episode_id"].to_list())
    local = "://" not in path
    attempts = tuple(a for a in buffer.harness.attempts() if a.episode_id not in here) if local else ()
    return Source(label, path, buffer, buffer.stats, episodes, attempts, buffer.harness.runs() if local else {})


def _empty(path: str, sources: Sequence[Source]) -> UnusableBuffer:
    attempts = [attempt for source in sources for attempt in source.attempts]
    if not attempts:
        return UnusableBuffer(
            f"{path}: the buffer holds no episodes; collect and evaluate first (python -m harness_mdp.collect --help)"
        )
    planned = len({attempt.episode_id for attempt in attempts})
    reason, n = Counter(f"{attempt.kind}: {attempt.message}" for attempt in attempts).most_common(1)[0]
    return UnusableBuffer(
        f"{path}: all {planned} episodes that were tried are infra_missing and none is finished, so there is nothing "
        f"to report; most frequent reason, {n} of {len(attempts)} attempts: {reason}. Mend it and run the same "
        "command again"
    )


def _refuse_mixtures(path: str, sources: Sequence[Source]) -> None:
    rows = all_episodes(sources).select("setting", "schema_version", "setting_version", "feature_schema_id").unique()
    if len(odd := sorted(set(rows["schema_version"]) - {SCHEMA_VERSION})):
        raise SchemaMismatch(
            f"{path}: holds episodes of buffer schema version {', '.join(map(str, odd))} beside or instead of "
            f"{SCHEMA_VERSION}, which this version reads. Report each part with the harness-mdp that made it"
        )
    for column, word in (("setting_version", "version"), ("feature_schema_id", "feature schema")):
        mixed = rows.group_by("setting").agg(pl.col(column).unique().sort()).filter(pl.col(column).list.len() > 1)
        for setting, values in mixed.sort("setting").select("setting", column).iter_rows():
            raise SchemaMismatch(
                f"{path}: setting {setting} has episodes of {word} {' and '.join(map(str, values))}; their tasks, "
                "tools and scores may differ, so they do not share a page. Report a buffer with one of them"
            )
