"""One way out for every format: choose the episodes, write them beside a dataset card, all or nothing."""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Unpack

import pyarrow as pa

from buffers.card import card_of
from buffers.card_text import card_text
from buffers.export.atif_files import write_atif
from buffers.export.minari_dataset import write_minari
from buffers.export.parquet_tables import write_parquet
from buffers.export.target import new_folder
from buffers.where import Where
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.hashing import Json
from harness_mdp.settings import open_setting
from harness_mdp.settings.protocol import Setting

if TYPE_CHECKING:
    from buffers.replay import ReplayBuffer

__all__ = ["FORMATS", "Exported", "export"]


class _Write(Protocol):
    def __call__(
        self, rows: pa.Table, folder: Path, *, card: Mapping[str, Json], open_setting: Callable[[str], Setting]
    ) -> tuple[str, ...]:
        """Writes all `rows` into the empty `folder`; says in a few lines what is there and how to read it."""
        ...


_WRITERS: Mapping[str, _Write] = {"parquet": write_parquet, "minari": write_minari, "atif": write_atif}

FORMATS: tuple[str, ...] = tuple(_WRITERS)


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote."""

    format: str
    out: Path
    version: int
    """Table version that was read."""
    episodes: int
    steps: int
    infra_missing: int
    """Episodes of the same settings that were attempted and never finished: not among those exported."""
    simulated: bool
    notes: tuple[str, ...]
    """What lies there and how to read it, a line each."""


def export(
    buffer: ReplayBuffer,
    format: str,  # noqa: A002  (the word of the command)
    out: str | Path,
    *,
    open_setting: Callable[[str], Setting] = open_setting,
    **where: Unpack[Where],
) -> Exported:
    """Writes the selected episodes to the new folder `out`, in an order that does not depend on when they came.

    Only finished episodes have a row and so a return: what was attempted and never finished is counted, not exported.
    On any error nothing is left at `out`.

    Args:
        buffer: read at its newest version, or the one it is pinned to.
        format: one of `FORMATS`.
        out: a folder that is not there yet, or empty.
        open_setting: the setting by its name, for what a format needs of it (`minari`).
        where: only these episodes.

    Raises:
        ConfigError: an unknown format, a package that is not installed, or a setting that `open_setting` does not know.
        InputError: `out` exists or lies in the buffer; or there is no buffer.
        UnusableBuffer: no such episodes, or one that the format cannot hold.
        SchemaMismatch: episodes of another version of a setting than the one installed (`minari`).
    """
    if format not in _WRITERS:
        raise ConfigError(f"format is {format!r}; expected one of {', '.join(FORMATS)}")
    version = buffer.version
    rows = _ordered(buffer.rows(**where))
    card = card_of(buffer, **where)
    missing = sum(card["infra_missing"].values())
    if rows.num_rows == 0:
        raise UnusableBuffer(_nothing(buffer, where, missing))
    with new_folder(Path(out), buffer=buffer.path) as folder:
        notes = _WRITERS[format](rows, folder, card=card, open_setting=open_setting)
        (folder / "README.md").write_text(card_text(card), encoding="utf-8")
    totals = card["totals"]
    return Exported(format, Path(out), version, totals["episodes"], totals["steps"], missing, card["simulated"], notes)


def _ordered(rows: pa.Table) -> pa.Table:
    order = ("setting", "phase", "task_id", "seed", "rollout", "episode_id")
    return rows.sort_by([(name, "ascending") for name in order])


def _nothing(buffer: ReplayBuffer, where: Where, missing: int) -> str:
    words = " ".join(f"{key}={value}" for key, value in where.items())
    counts = buffer.stats.counts
    if counts:
        there = "; ".join(f"{n} x setting={s} phase={p} split={d}" for (s, p, d, _), n in counts.items())
        return f"{buffer.path}: no episode with {words}; the buffer holds {there}"
    failed = f" ({missing} were attempted and are infra_missing: they have no return to export)" if missing else ""
    return f"{buffer.path}: the buffer holds no episode{failed}; collect first"
