"""A buffer as arrays for learning: the nested step columns, flattened without a Python loop.

Only the Parquet leaves that learning needs are read, so artifacts and events cost nothing here.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from buffers.rows import decode_text
from harness_mdp.errors import SchemaMismatch, UnusableBuffer
from harness_mdp.mdp import N_ACTIONS

if TYPE_CHECKING:
    import torch

__all__ = ["EPISODE_LEAVES", "STEP_LEAVES", "TrainingArrays", "training_arrays"]

EPISODE_LEAVES = (
    "episode_id",
    "task_id",
    "task_hash",
    "setting_version",
    "feature_schema_id",
    "executor",
    "policy",
    "seed",
    "rollout",
    "horizon",
    "return",
    "tokens",
    "cost_usd",
    "seconds",
)
STEP_LEAVES = (
    "steps.list.element.t",
    "steps.list.element.features.list.element",
    "steps.list.element.mask.list.element",
    "steps.list.element.base_action",
    "steps.list.element.action",
    "steps.list.element.propensities.list.element",
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingArrays:
    """n steps of m episodes of one setting; steps of an episode are adjacent and in order.

    Episodes are ordered by (task id, task hash, seed, rollout, episode id), whatever the order of the commits.
    """

    features: npt.NDArray[np.float32]
    """(n, d)"""
    mask: npt.NDArray[np.bool_]
    """(n, 7)"""
    base_action: Ints
    """(n,)"""
    action: Ints
    """(n,)"""
    propensities: Floats
    """(n, 7) the behaviour policy's distribution."""
    t: Ints
    """(n,) 1..H"""
    episode: Ints
    """(n,) index into the episodes, non-decreasing."""
    lengths: Ints
    """(m,) steps of each episode; 0 for one whose budget was spent at once."""
    returns: Floats
    """(m,) Q in [0, 1]."""
    task: Ints
    """(m,) index into `task_ids` and `task_hashes`."""
    seed: Ints
    """(m,)"""
    rollout: Ints
    """(m,)"""
    horizon: Ints
    """(m,)"""
    tokens: Ints
    """(m,)"""
    cost_usd: Floats
    """(m,) USD; NaN where a price is unknown."""
    seconds: Floats
    """(m,) wall time."""
    episode_ids: tuple[str, ...]
    task_ids: tuple[str, ...]
    """Names of the distinct tasks, in order; for display. Tasks that hold different things may share one: generators
    number their tasks anew for every seed."""
    task_hashes: tuple[str, ...]
    """Hash of what each task of `task_ids` holds: what makes it the task that it is."""
    policies: tuple[str, ...]
    """(m,) behaviour policy of each episode."""
    executors: tuple[str, ...]
    """Distinct executor fingerprints, sorted; one unless a mixture was asked for."""
    setting_version: int
    """Version of the setting that made all episodes."""
    feature_schema_id: str
    version: int
    """Table version that was read."""

    @property
    def n_steps(self) -> int:
        """N"""
        return len(self.action)

    @property
    def n_episodes(self) -> int:
        """M"""
        return len(self.returns)

    @property
    def horizons(self) -> tuple[int, ...]:
        """Distinct horizons, ascending; more than one is a mixture of longer and shorter episodes."""
        return tuple(np.unique(self.horizon).tolist())

    @property
    def propensity(self) -> Floats:
        """(n,) μ(action | state)."""
        return self.propensities[np.arange(self.n_steps), self.action]

    def torch(self, device: str | torch.device = "cpu") -> dict[str, torch.Tensor]:
        """Every array by its name as a tensor on `device`, dtypes kept (float32, bool, int64, float64)."""
        import torch

        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: torch.as_tensor(np.require(value, requirements="W"), device=device)
            for name, value in arrays.items()
            if isinstance(value, np.ndarray)
        }


def training_arrays(rows: pa.Table, *, version: int, where: str, mixed_executors: bool) -> TrainingArrays:
    """Rows with `EPISODE_LEAVES` and `STEP_LEAVES` as arrays.

    Args:
        rows: at least one row, all of one setting.
        version: table version they were read at.
        where: the selection in words, for messages.
        mixed_executors: allow more than one executor fingerprint.

    Raises:
        UnusableBuffer: no episodes, several setting versions or executors, or a step of the wrong shape.
        SchemaMismatch: episodes of different feature schemas.
    """
    if rows.num_rows == 0:
        raise UnusableBuffer(f"{where}: no episodes")
    setting_version = _one_version(rows, where)
    schema_ids = _distinct(rows, "feature_schema_id")
    if len(schema_ids) > 1:
        raise SchemaMismatch(
            f"{where}: episodes of {len(schema_ids)} feature schemas ({', '.join(schema_ids)}) under one version "
            "of the setting; expected one. Collect into a new buffer"
        )
    executors = tuple(decode_text(name) for name in _distinct(rows, "executor"))
    if len(executors) > 1 and not mixed_executors:
        raise UnusableBuffer(
            f"{where}: episodes of {len(executors)} executors ({'; '.join(executors)}); a controller is learned for "
            "one. Choose one of them, or ask for the mixture"
        )
    keys = [(key, "ascending") for key in ("task_id", "task_hash", "seed", "rollout", "episode_id")]
    order = rows.select([key for key, _ in keys]).add_column(0, "row", pa.array(range(rows.num_rows)))
    order = cast("Ints", order.sort_by(keys).column("row").to_numpy())
    nested = rows.column("steps").combine_chunks()
    steps, offsets = nested.flatten(), nested.offsets.to_numpy().astype(np.int64)
    lengths = np.diff(offsets)[order]
    episode = np.repeat(np.arange(len(order), dtype=np.int64), lengths)
    # Where each step of the ordered episodes lies among the stored ones.
    first = offsets[order] - offsets[0] - (np.cumsum(lengths) - lengths)
    at = np.repeat(first, lengths) + np.arange(len(episode))
    flat = rows.select(list(EPISODE_LEAVES)).take(order)
    ids = _texts(flat, "episode_id")
    held = list(zip(_texts(flat, "task_id"), _texts(flat, "task_hash"), strict=True))
    tasks = {one: index for index, one in enumerate(sorted(set(held)))}
    return TrainingArrays(
        features=_matrix(steps, "features", None, at, episode, ids).astype(np.float32, copy=False),
        mask=_matrix(steps, "mask", N_ACTIONS, at, episode, ids),
        base_action=_column(steps, "base_action")[at].astype(np.int64),
        action=_column(steps, "action")[at].astype(np.int64),
        propensities=_matrix(steps, "propensities", N_ACTIONS, at, episode, ids),
        t=_column(steps, "t")[at].astype(np.int64),
        episode=episode,
        lengths=lengths,
        returns=_numbers(flat, "return", np.float64),
        task=np.array([tasks[one] for one in held], dtype=np.int64),
        seed=_numbers(flat, "seed", np.int64),
        rollout=_numbers(flat, "rollout", np.int64),
        horizon=_numbers(flat, "horizon", np.int64),
        tokens=_numbers(flat, "tokens", np.int64),
        cost_usd=_numbers(flat, "cost_usd", np.float64),
        seconds=_numbers(flat, "seconds", np.float64),
        episode_ids=tuple(ids),
        task_ids=tuple(decode_text(name) for name, _ in tasks),
        task_hashes=tuple(task_hash for _, task_hash in tasks),
        policies=tuple(decode_text(name) for name in _texts(flat, "policy")),
        executors=executors,
        setting_version=setting_version,
        feature_schema_id=schema_ids[0],
        version=version,
    )


def _distinct(rows: pa.Table, name: str) -> list[str]:
    return sorted(cast("list[str]", rows.column(name).unique().to_pylist()))


def _one_version(rows: pa.Table, where: str) -> int:
    counts = Counter(cast("list[int]", rows.column("setting_version").to_pylist()))
    if len(counts) > 1:
        found = ", ".join(f"{counts[version]} of version {version}" for version in sorted(counts))
        raise UnusableBuffer(
            f"{where}: episodes of {len(counts)} versions of the setting ({found}), which may pose tasks and score "
            "answers differently; expected one version. Choose one of them, or collect into a new buffer"
        )
    return next(iter(counts))


def _texts(rows: pa.Table, name: str) -> list[str]:
    return cast("list[str]", rows.column(name).to_pylist())


def _numbers(rows: pa.Table, name: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.asarray(rows.column(name).to_numpy(), dtype=dtype)


def _column(steps: Any, name: str) -> npt.NDArray[Any]:
    return steps.field(name).to_numpy(zero_copy_only=False)


def _matrix(
    steps: Any, name: str, width: int | None, at: Ints, episode: Ints, episode_ids: Sequence[str]
) -> npt.NDArray[Any]:
    """(n, width) from a list field, rows in the order `at`; the width of the first step where `width` is None."""
    lists = steps.field(name)
    widths = np.diff(lists.offsets.to_numpy())[at]
    if width is None:
        width = int(widths[0]) if len(widths) else 0
    wrong = np.flatnonzero(widths != width)
    if len(wrong):
        raise UnusableBuffer(
            f"episode {episode_ids[int(episode[wrong[0]])]}: {name} has {widths[wrong[0]]} entries at a step; "
            f"expected {width}. Run `python -m harness_mdp.verify` on the buffer"
        )
    return lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)[at]
