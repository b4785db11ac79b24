"""Re-scores of maturity: a Delta table in `_harness/`, one row an episode and config, only ever added to.

Partitioned by the hash of the config. A merge inserts what is not there yet and updates nothing; of two processes
that add the same scores one wins, and the other looks again.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from buffers.location import first_line, named_errors
from harness_mdp.errors import HarnessError, UnusableBuffer
from harness_mdp.hashing import Json, canonical_json, generator
from harness_mdp.scoring.maturity_config import MaturityConfig, MaturityEvent

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RESCORES", "Rescores"]

RESCORES: pa.Schema = pa.schema(
    [
        pa.field("episode_id", pa.string(), nullable=False),
        pa.field("preset", pa.string(), nullable=False),
        pa.field("config_hash", pa.string(), nullable=False),
        pa.field("config", pa.string(), nullable=False),
        pa.field("hms", pa.float64()),
        *(pa.field(event.value, pa.bool_()) for event in MaturityEvent),
    ]
)
"""Arrow schema of a re-score. `config` is JSON of everything that `config_hash` covers; `hms` is null where no event
with a weight was applicable; an event is null where it was not applicable, else it says whether it fired."""

_SAME = "stored.config_hash = added.config_hash AND stored.episode_id = added.episode_id"
_MAX_TRIES = 100


class Rescores:
    """The table at `path`; made by the first `add`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, scores: pl.DataFrame, config: MaturityConfig) -> int:
        """Adds the scores of episodes that have none under `config`; what is there stays as it is.

        Args:
            scores: `episode_id`, `hms`, and a column an event.
            config: that they were made with.

        Returns:
            How many rows were added.

        Raises:
            InputError: the folder cannot be made or written.
            HarnessError: they cannot be added.
            UnusableBuffer: the table there cannot be read.
        """
        import polars as pl

        rows = scores.with_columns(
            preset=pl.lit(config.preset), config_hash=pl.lit(config.hash), config=pl.lit(canonical_json(config.values))
        )
        added = rows.select(RESCORES.names).to_arrow().cast(RESCORES)
        for attempt in count():
            try:
                with named_errors(self.path):
                    return _insert(self._made(), added, config.hash)
            except CommitFailedError as error:
                if attempt >= _MAX_TRIES:
                    raise self._unwritable(added, error) from error
                time.sleep(generator("re-score back-off", os.getpid(), attempt).uniform(0.01, 0.2))
            except DeltaError as error:
                raise self._unwritable(added, error) from error
        raise AssertionError("unreachable")

    def episode_ids(self, config_hash: str) -> frozenset[str]:
        """Episodes that have a score under that config."""
        return frozenset(self._read(["episode_id"], config_hash).column("episode_id").to_pylist())

    def configs(self) -> dict[str, Mapping[str, Json]]:
        """Thresholds, weights and label (`MaturityConfig.values`) by config hash."""
        rows = self._read(["config_hash", "config"], None)
        pairs = rows.group_by(["config_hash", "config"]).aggregate([]).to_pylist()
        return {row["config_hash"]: json.loads(row["config"]) for row in pairs}

    def frame(self, config_hash: str | None = None) -> pl.DataFrame:
        """The columns of `RESCORES`, of one config or of all, in order of config and episode."""
        import polars as pl

        rows = cast("pl.DataFrame", pl.from_arrow(self._read(RESCORES.names, config_hash)))
        return rows.sort("config_hash", "episode_id")

    def _read(self, columns: list[str], config_hash: str | None) -> pa.Table:
        if not DeltaTable.is_deltatable(str(self.path)):
            return RESCORES.empty_table().select(columns)
        import pyarrow.dataset as ds  # loads pandas

        wanted = None if config_hash is None else ds.field("config_hash") == config_hash
        try:
            rows: pa.Table = self._open().to_pyarrow_dataset().to_table(columns=columns, filter=wanted)
        except (pa.ArrowException, DeltaError, OSError) as error:
            raise self._unreadable(error) from error
        return rows.cast(pa.schema([RESCORES.field(name) for name in columns]))

    def _made(self) -> DeltaTable:
        """The table as it is now; two processes may make it at the same moment."""
        if not DeltaTable.is_deltatable(str(self.path)):
            self.path.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(str(self.path), schema=RESCORES, mode="ignore", partition_by=["config_hash"])
        return self._open()

    def _open(self) -> DeltaTable:
        try:
            return DeltaTable(str(self.path))
        except Exception as error:  # the log reader raises several types, some of them bare
            raise self._unreadable(error) from error

    def _unwritable(self, added: pa.Table, error: Exception) -> HarnessError:
        return HarnessError(f"{self.path}: {added.num_rows} re-scores could not be added ({first_line(error)})")

    def _unreadable(self, error: Exception) -> UnusableBuffer:
        return UnusableBuffer(
            f"{self.path}: the re-scores of maturity cannot be read ({first_line(error)}); restore the folder, or "
            "delete it and score again: episodes are not affected"
        )


def _insert(table: DeltaTable, added: pa.Table, config_hash: str) -> int:
    metrics = (
        # The literal lets Delta look at one partition, and lets other configs be added at the same time.
        table.merge(
            added, f"{_SAME} AND stored.config_hash = '{config_hash}'", source_alias="added", target_alias="stored"
        )
        .when_not_matched_insert_all()
        .execute()
    )
    return int(metrics["num_target_rows_inserted"])
