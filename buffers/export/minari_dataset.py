"""A Minari dataset per setting: what a learner needs, without texts (https://minari.farama.org, version 0.5).

- observation: `Box((d,), float32)`, the features; row T+1 is the state after the last step, folded from the events.
- action: `Discrete(7)`, a structural action.
- reward: 0, and the return at the last step. A forced submission ends the episode for good, so every episode ends with
  `termination`, none with `truncation`.
- infos, T+1 rows as Minari has them: `mask` (7,) bool, `propensities` (7,) float64, `base_action` int64. No decision
  was made in the last row: its propensities are 0, its mask and base action are those of that state.
- episode metadata: ids, policy, executor, return, how it ended, and so on.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from buffers.export.packages import MINARI, missing_package
from buffers.rows import Row, to_episode
from buffers.schema import FLAT_COLUMNS
from harness_mdp.errors import ConfigError, SchemaMismatch, UnusableBuffer
from harness_mdp.hashing import Json
from harness_mdp.mdp import ACTIONS, N_ACTIONS, Episode, fold, start
from harness_mdp.settings.protocol import Setting
from harness_mdp.settings.scripts import decision_point

if TYPE_CHECKING:
    from minari.data_collector import EpisodeBuffer

__all__ = ["dataset_id", "write_minari"]

_ROOT = "MINARI_DATASETS_PATH"
_BATCH = 256


def dataset_id(setting: str, version: int) -> str:
    """`harness-mdp/coding-v2`; letters that Minari allows in no id become `_`."""
    return f"harness-mdp/{re.sub(r'[^A-Za-z0-9_-]', '_', setting)}-v{version}"


def write_minari(
    rows: pa.Table, folder: Path, *, card: Mapping[str, Json], open_setting: Callable[[str], Setting]
) -> tuple[str, ...]:
    """Writes one dataset a setting below `folder`, which is then a value for MINARI_DATASETS_PATH.

    Raises:
        ConfigError: Minari is not installed, or a setting is not known here.
        SchemaMismatch: episodes of another version of a setting than the one installed.
        UnusableBuffer: an episode without a step, which Minari cannot hold.
    """
    try:
        import minari  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise missing_package("minari", MINARI, error) from error
    written: list[str] = []
    for name, of_setting in groupby(_rows(rows), key=lambda row: str(row["setting"])):
        setting = _installed(name, open_setting)
        identity = _write_setting(setting, of_setting, folder, card)
        written.append(identity)
    return (
        f"datasets: {', '.join(written)}",
        f'read: MINARI_DATASETS_PATH=<out> python -c "import minari; minari.load_dataset({written[0]!r})"',
        "ids, policy, executor and return of an episode: dataset.storage.get_episode_metadata(range(len(dataset)))",
    )


def _rows(rows: pa.Table) -> Iterable[Row]:
    for batch in rows.to_batches(max_chunksize=_BATCH):
        yield from batch.to_pylist()


def _installed(name: str, open_setting: Callable[[str], Setting]) -> Setting:
    try:
        return open_setting(name)
    except ConfigError as unknown:
        raise ConfigError(
            f"the state after the last step is folded by the setting, and {name!r} is not known here ({unknown}). "
            "Give its place: settings=[MODULE:CLASS]"
        ) from unknown


def _write_setting(setting: Setting, rows: Iterable[Row], folder: Path, card: Mapping[str, Json]) -> str:
    from gymnasium.spaces import Box, Discrete
    from minari import create_dataset_from_buffers

    buffers: list[EpisodeBuffer] = []
    metadata: list[dict[str, str | int | float]] = []
    for row in rows:
        buffers.append(_episode_buffer(to_episode(row), setting))
        metadata.append(_metadata(row))
    identity = dataset_id(setting.name, setting.version)
    with _datasets_below(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # who publishes the dataset adds author, e-mail and a permalink
        dataset = create_dataset_from_buffers(
            identity,
            buffers,
            action_space=Discrete(N_ACTIONS),
            observation_space=Box(-np.inf, np.inf, (len(setting.schema),), np.float32),
            algorithm_name=", ".join(sorted({str(each["policy"]) for each in metadata})),
            description=_description(setting, card),
            data_format="hdf5",
        )
    dataset.storage.update_episode_metadata(metadata)
    facts = {
        "actions": [action.label for action in ACTIONS],
        "feature_names": list(setting.schema.names),
        "feature_schema_id": setting.schema.id,
        "licence": card["licences"].get(setting.name),
        "executors": card["models"],
        "simulated": card["simulated"],
    }
    dataset.storage.update_metadata({"harness_mdp": facts})
    return identity


def _description(setting: Setting, card: Mapping[str, Json]) -> str:
    who = "a simulated executor" if card["simulated"] else f"the executor {', '.join(card['executors'])}"
    return (
        f"Structural decisions of an LLM agent harness in the setting {setting.name}, made with {who}. Tasks: "
        f"{card['licences'].get(setting.name)}. Only actions with infos['mask'] are legal; infos['propensities'] is "
        "the behaviour policy's distribution; infos['base_action'] what the base script would do."
    )


def _episode_buffer(episode: Episode, setting: Setting) -> EpisodeBuffer:
    from minari.data_collector import EpisodeBuffer

    made_by, installed = episode.feature_schema_id, setting.schema.id
    if made_by != installed:
        raise SchemaMismatch(
            f"episode {episode.episode_id} has feature schema {made_by}, setting {setting.name} of this installation "
            f"{installed}; export it with the harness-mdp that made it, or as parquet or atif"
        )
    if not episode.steps:
        raise UnusableBuffer(
            f"episode {episode.episode_id} has no step, which Minari cannot hold; parquet and atif can"
        )
    last = decision_point(setting, fold(episode.events, start(episode.horizon, episode.budgets))[-1])
    steps = episode.steps
    rewards = np.zeros(len(steps))
    rewards[-1] = episode.return_
    ends = np.zeros(len(steps), dtype=np.bool_)
    ends[-1] = True
    arrays: dict[str, Any] = {  # EpisodeBuffer declares lists and takes arrays
        "observations": np.stack([*(step.features for step in steps), last.features]),
        "actions": np.array([int(step.action) for step in steps], dtype=np.int64),
        "rewards": rewards,
        "terminations": ends,
        "truncations": np.zeros_like(ends),
    }
    infos = {
        "mask": np.stack([*(step.mask for step in steps), last.mask]),
        "propensities": np.stack([*(step.propensities for step in steps), np.zeros(N_ACTIONS)]),
        "base_action": np.array([*(int(step.base_action) for step in steps), int(last.base_action)], dtype=np.int64),
    }
    return EpisodeBuffer(seed=episode.seed, infos=infos, **arrays)


def _metadata(row: Row) -> dict[str, str | int | float]:
    """The flat columns and the maturity; HDF5 attributes hold no null, and no NUL: it is escaped as surrogates are."""
    flat: dict[str, Any] = {name: row[name] for name in FLAT_COLUMNS} | {
        f"maturity_{preset['preset']}": preset["score"] for preset in row["maturity"]
    }
    return {
        name: value.replace("\x00", "\x1a0000") if isinstance(value, str) else value
        for name, value in flat.items()
        if value is not None and name != "seed"  # which Minari has a place for
    }


@contextmanager
def _datasets_below(folder: Path) -> Generator[None]:
    """Minari takes the place of its datasets from the environment only."""
    before = os.environ.get(_ROOT)
    os.environ[_ROOT] = str(folder.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[_ROOT]
        else:
            os.environ[_ROOT] = before
