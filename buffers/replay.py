"""The replay buffer: a Delta table with one row per finished episode, and `_harness/` beside it."""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, overload

import pyarrow as pa

from buffers.card import card_of
from buffers.columns import column_frame, leaf
from buffers.files import bytes_of_data, file_names, local_files, read, read_batches
from buffers.location import Location, named_errors, require_path, require_writable
from buffers.log import log_exists, prepare_log
from buffers.rows import to_episode, to_table
from buffers.schema import SCHEMA
from buffers.side import HarnessFolder
from buffers.table import EpisodeTable
from buffers.tensors import EPISODE_LEAVES, STEP_LEAVES, TrainingArrays, training_arrays
from buffers.where import Narrower, Where, keep
from buffers.writer import MAX_EPISODES, MAX_SECONDS, EpisodeWriter
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.mdp import Episode, Mask
from harness_mdp.scoring.maturity import MaturityConfig, SettingFacts
from harness_mdp.settings import open_setting

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from d3rlpy.dataset import MDPDataset

__all__ = ["BufferStats", "ReplayBuffer"]


_SCATTERED = 4
"""Files from which on merging them is worth the second copy."""


@dataclass(frozen=True, slots=True)
class BufferStats:
    """What a buffer holds, at one version."""

    version: int
    episodes: int
    files: int
    data_bytes: int
    """Bytes of the Parquet files, without the log."""
    counts: Mapping[tuple[str, str, str, str], int]
    """(setting, phase, split, eval_status) -> episodes"""


class ReplayBuffer:
    """Episodes at `path`, appended by any number of processes and read at any version.

    Making the object touches nothing: a missing folder is made by the first append, and reported by the first read.

    Args:
        path: a local folder, or an object-store URI (`s3://...`).
        version: read this table version instead of the newest; appending is refused then.
        storage_options: credentials and options of the object store.
        side: local folder for what else belongs to the buffer; `path/_harness` unless `path` is a URI.

    Raises:
        InputError: an empty path, or one with a character that the Delta library cannot store a table under.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        side: Path | None = None,
    ) -> None:
        self.path = str(path)
        if "://" not in self.path:
            require_path(path)
        if side is not None:
            require_path(side)
        self._where = Location(self.path, dict(storage_options) if storage_options else None)
        self._table = EpisodeTable(self._where, version)
        self._side = side

    def __repr__(self) -> str:
        return f"ReplayBuffer({self.path!r})"

    @cached_property
    def harness(self) -> HarnessFolder:
        """Attempts, run manifests, dataset card and the path of the completion cache.

        Raises:
            ConfigError: the buffer is on an object store and no local `side` folder was given.
        """
        if self._side is not None:
            return HarnessFolder(self._side)
        if self._where.local is None:
            raise ConfigError(
                f"{self.path}: attempts, manifests and the completion cache need a local folder, and a URI has none. "
                "Use a local folder for the buffer; from Python, ReplayBuffer takes one beside the URI as its `side`"
            )
        return HarnessFolder(self._where.local / "_harness")

    @property
    def has_harness(self) -> bool:
        """Whether `harness` has a place: not for a URI without a local `side` folder."""
        return self._side is not None or self._where.local is not None

    @property
    def exists(self) -> bool:
        """Whether the table has been made."""
        return log_exists(self._where)

    @property
    def version(self) -> int:
        """Newest table version (or the one this object was opened at)."""
        return self._table.snapshot().version()

    # -- writing -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Makes the empty buffer, or checks that the one there can be read and added to; for before a run spends.

        A folder of somebody else is left as it is. A finished buffer on read-only storage is refused here, and still
        reads: call this only when there is something to add.

        Raises:
            InputError: a file or a folder with other files, or one where nothing can be made or written.
            UnusableBuffer: a table of somebody else or of another schema version, a damaged log, or a pinned version.
            ConfigError: a URI without a local folder for what else belongs to the buffer.
            HarnessError: the object store refuses it.
        """
        self._table.require_newest()
        folder = self.harness.path
        prepare_log(self._where)
        with named_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        require_writable(folder)

    def append(self, episodes: Sequence[Episode]) -> int:
        """Commits the episodes that are not there yet, all of them in one commit; returns how many that were.

        An episode id never occurs twice, whatever other processes append at the same time.

        Raises:
            ValueError: an episode whose event and action differ, or with arrays of the wrong shape.
            InputError: a number that its column cannot hold, or a folder that cannot be made or written.
            UnusableBuffer: what is there is no buffer, or damaged.
            HarnessError: the commit cannot be made.
        """
        return self._table.append(to_table(episodes)) if episodes else 0

    def writer(
        self, *, max_episodes: int = MAX_EPISODES, max_seconds: float = MAX_SECONDS, compact: bool = False
    ) -> EpisodeWriter:
        """A context that commits in batches in the background; `with` or `async with`.

        `compact` merges the files at the end, if slow collection left more than a few. The small files stay on disk
        until `vacuum`, for readers of older versions.
        """
        return EpisodeWriter(
            self.append,
            self._compact_if_scattered if compact else None,
            max_episodes=max_episodes,
            max_seconds=max_seconds,
        )

    def write_card(self, *, licences: Mapping[str, str], simulated: bool) -> Path:
        """Writes the dataset card of all episodes there are now (see `card_of`); licences named before stay."""
        return self.harness.write_card(card_of(self, licences=licences, simulated=simulated))

    def compact(self) -> None:
        """Merges the files of many small commits; every episode and `_harness/` stay."""
        self._table.compact()

    def _compact_if_scattered(self) -> None:
        if self.stats.files > _SCATTERED:
            self.compact()

    def vacuum(self, retention_hours: int = 168, *, dry_run: bool = False) -> list[str]:
        """Deletes data files that no table version of the last `retention_hours` names; `_harness/` stays.

        Below 168 hours nobody may be appending: a file that is not committed yet would be deleted.
        """
        return self._table.vacuum(retention_hours, dry_run)

    # -- reading -----------------------------------------------------------------------------------------------

    def episode_ids(self, phase: str | None = None, run: str | None = None) -> frozenset[str]:
        """Ids of the finished episodes; empty for a buffer that is not there yet."""
        if phase is None and run is None:
            return self._table.ids()
        if not self.exists:
            return frozenset()
        where = Where()
        if phase is not None:
            where["phase"] = phase
        if run is not None:
            where["run"] = run
        return frozenset(self._read(("episode_id",), where).column("episode_id").to_pylist())

    def infra_missing(self) -> frozenset[str]:
        """Ids of episodes that were attempted and never finished."""
        return self.harness.attempted_ids() - self.episode_ids()

    def read(self, columns: Sequence[str], **where: Unpack[Where]) -> pl.DataFrame:
        """One row an episode, oldest commit first, with just `columns`, each by its name.

        Args:
            columns: of the schema; a dot leads into a nested column, so `steps.action` is one list of int8 an
                episode, `steps.mask` a list of lists of bool, `rubric.score` a list of float64. Only these leaves of
                the files are read. Text is as stored: unpaired surrogates appear as U+001A and four hex digits.
            where: only these episodes.

        Raises:
            InputError: nothing at the path, or no such column.
            UnusableBuffer: no buffer, or a damaged or missing file, by name.
        """
        rows = self._read([leaf(column) for column in columns], where)
        return column_frame(rows, columns)

    def scan(self) -> pl.LazyFrame:
        """The table as a lazy polars frame, nested columns included: the way out to queries of your own.

        The files are read when the frame is collected, by polars, whose errors then come as they are: for a damaged
        file a `polars.exceptions.PolarsError` or a `pyo3_runtime.PanicException`, for one deleted meanwhile a
        `FileNotFoundError`. `read` and the frames below name the file and say what to do.

        Raises:
            InputError: nothing at the path.
            UnusableBuffer: no buffer, a damaged log, or (local) a file that is missing by now.
        """
        import polars as pl

        snapshot = self._table.snapshot()
        if self._where.local is None:
            return pl.scan_delta(snapshot)
        # By names, because polars takes the table's URL for a path, in which a space has become %20.
        if files := local_files(self._where, snapshot):
            return pl.scan_parquet(files, glob=False, hive_partitioning=False)
        return cast("pl.DataFrame", pl.from_arrow(SCHEMA.empty_table())).lazy()

    @overload
    def episodes_df(self, backend: Literal["polars"] = ..., **where: Unpack[Where]) -> pl.DataFrame: ...
    @overload
    def episodes_df(self, backend: Literal["pandas"], **where: Unpack[Where]) -> pd.DataFrame: ...
    def episodes_df(self, backend: str = "polars", **where: Unpack[Where]) -> pl.DataFrame | pd.DataFrame:
        """One row an episode: the flat columns, `n_steps`, `maturity_<preset>`, `rubric`, `maturity_events`."""
        from buffers.frames import EPISODE_FRAME_LEAVES, episode_frame

        return _to(backend, episode_frame(self._read(EPISODE_FRAME_LEAVES, where)))

    @overload
    def steps_df(
        self, backend: Literal["polars"] = ..., *, named_features: bool = ..., **where: Unpack[Where]
    ) -> pl.DataFrame: ...
    @overload
    def steps_df(
        self, backend: Literal["pandas"], *, named_features: bool = ..., **where: Unpack[Where]
    ) -> pd.DataFrame: ...
    def steps_df(
        self, backend: str = "polars", *, named_features: bool = False, **where: Unpack[Where]
    ) -> pl.DataFrame | pd.DataFrame:
        """One row a step: ids, decision (mask, base action, action, propensity) and outcome of the event.

        `named_features` gives one column a feature instead of the list `features` (one setting and version only).
        """
        from buffers.frames import STEP_FRAME_LEAVES, step_frame

        return _to(backend, step_frame(self._read(STEP_FRAME_LEAVES, where), named_features=named_features))

    @overload
    def rescores_df(
        self, backend: Literal["polars"] = ..., *, config_hash: str | None = ..., **where: Unpack[Where]
    ) -> pl.DataFrame: ...
    @overload
    def rescores_df(
        self, backend: Literal["pandas"], *, config_hash: str | None = ..., **where: Unpack[Where]
    ) -> pd.DataFrame: ...
    def rescores_df(
        self, backend: str = "polars", *, config_hash: str | None = None, **where: Unpack[Where]
    ) -> pl.DataFrame | pd.DataFrame:
        """One row an episode and re-score (all of them, or those of `config_hash`): the columns of `episodes_df`,
        then `preset`, `config_hash`, `hms`, and one column an event: null where it was not applicable, else whether
        it fired.
        """
        scores = self.harness.rescores.frame(config_hash).drop("config")
        return _to(backend, self.episodes_df(**where).join(scores, on="episode_id", maintain_order="left_right"))

    def rescore(self, config: MaturityConfig, open_setting: Callable[[str], SettingFacts] = open_setting) -> int:
        """Scores the maturity of every episode under `config`, beside all scores there are; needs no executor.

        Episodes that have a score of this very config are left alone.

        Returns:
            How many episodes had none.

        Raises:
            UnusableBuffer: no episodes.
            InputError: an episode whose events contradict its termination or its horizon.
            ConfigError: an unknown setting.
        """
        from buffers.maturity import MATURITY_LEAVES, judge_rows

        missing = self.episode_ids() - self.harness.rescores.episode_ids(config.hash)
        if not missing and self.stats.episodes == 0:
            raise UnusableBuffer(f"{self.path}: the buffer holds no episodes; collect first")
        if not missing:
            return 0
        rows = self._read(MATURITY_LEAVES, Where(episode_id=missing))
        return self.harness.rescores.add(judge_rows(rows, config, open_setting), config)

    def rows(self, **where: Unpack[Where]) -> pa.Table:
        """The episodes as stored, all columns of `SCHEMA`, in memory at once, in stored order."""
        return self._read(SCHEMA.names, where).select(SCHEMA.names)

    def episodes(self, *, batch: int = 256, **where: Unpack[Where]) -> Iterator[Episode]:
        """Episodes as they were appended, bit for bit, `batch` of them in memory at a time; in stored order."""
        snapshot = self._table.snapshot()
        for rows in read_batches(self._where, snapshot, batch):
            for row in keep(pa.Table.from_batches([rows]), where).to_pylist():
                yield to_episode(row)

    def tensors(
        self,
        setting: str,
        phase: str = "collect",
        split: str = "train",
        *,
        mixed_executors: bool = False,
        **where: Unpack[Narrower],
    ) -> TrainingArrays:
        """Steps and episodes as arrays for learning (`split="all"` for both splits).

        Raises:
            UnusableBuffer: no such episodes (the message says which there are), or several setting versions (one is
                chosen with `setting_version=`) or executors.
            SchemaMismatch: episodes of different feature schemas.
        """
        selection = Where(**where, setting=setting, phase=phase)
        if split != "all":
            selection["split"] = split
        snapshot = self._table.snapshot()
        rows = self._read((*EPISODE_LEAVES, *STEP_LEAVES), selection, snapshot)
        words = ", ".join(f"{key}={value}" for key, value in selection.items())
        if rows.num_rows == 0:
            raise UnusableBuffer(f"{self.path}: no episodes with {words}; the buffer holds {self._holdings()}")
        return training_arrays(
            rows, version=snapshot.version(), where=f"{self.path} ({words})", mixed_executors=mixed_executors
        )

    def to_d3rlpy(
        self, setting: str, phase: str = "collect", split: str = "train", **where: Unpack[Narrower]
    ) -> tuple[MDPDataset, Mask]:
        """`(dataset, masks)`: terminal rewards, one d3rlpy episode per episode, masks (n, 7) in step order."""
        from buffers.d3rlpy_dataset import to_d3rlpy

        return to_d3rlpy(self.tensors(setting, phase, split, **where))

    @property
    def stats(self) -> BufferStats:
        """Version, sizes and counts."""
        snapshot = self._table.snapshot()
        keys = ("setting", "phase", "split", "eval_status")
        groups = read(self._where, snapshot, keys).group_by(list(keys)).aggregate([([], "count_all")]).to_pylist()
        counts = {(g["setting"], g["phase"], g["split"], g["eval_status"]): g["count_all"] for g in groups}
        return BufferStats(
            version=snapshot.version(),
            episodes=sum(counts.values()),
            files=len(file_names(snapshot)),
            data_bytes=bytes_of_data(snapshot),
            counts=dict(sorted(counts.items())),
        )

    def _read(self, leaves: Sequence[str], where: Where, snapshot: Any = None) -> pa.Table:
        asked = [column for column in where if column not in leaves]
        return keep(read(self._where, snapshot or self._table.snapshot(), [*leaves, *asked]), where)

    def _holdings(self) -> str:
        counts = self.stats.counts
        if not counts:
            return "no episodes at all"
        return "; ".join(f"{n} x setting={s} phase={p} split={d} ({e})" for (s, p, d, e), n in counts.items())


def _to(backend: str, frame: pl.DataFrame) -> pl.DataFrame | pd.DataFrame:
    if backend not in ("polars", "pandas"):
        raise ConfigError(f"backend is {backend!r}; expected polars or pandas")
    return frame if backend == "polars" else frame.to_pandas()
