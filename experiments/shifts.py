"""How the learned arms of an evaluation moved the process, beside what their training predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import polars as pl

from analysis.realised_shift import behaviour_episodes, beside_predicted, realised_shifts
from buffers import ReplayBuffer
from controllers.saved import Manifest

__all__ = ["evaluation_shifts"]


def evaluation_shifts(
    buffer: ReplayBuffer, episodes: pl.DataFrame, learned: Mapping[str, Sequence[Manifest]], reference: str
) -> tuple[pd.DataFrame | None, str]:
    """Realised shifts of the learned arms, and what has to be said about what they are held against.

    Args:
        buffer: holds the collected episodes.
        episodes: of the evaluation.
        learned: arm -> manifests of its controllers.
        reference: the arm that shifts are told against where nothing was collected.

    Returns:
        None where no learned arm has a finished episode.
    """
    own = episodes.filter(pl.col("arm").is_in([*learned, reference]) & pl.col("return").is_not_null())
    if not set(own["arm"]) & set(learned):
        return None, ""
    behaviour, remark = behaviour_episodes(buffer, own)
    if behaviour is None and reference not in set(own["arm"]):
        return None, remark
    every = pl.from_pandas(realised_shifts(own, reference if behaviour is None else behaviour))
    found = every.filter(pl.col("arm").is_in(list(learned))).to_pandas()
    rows = [
        {"arm": arm, **row}
        for arm, manifests in learned.items()
        for manifest in manifests
        for row in manifest.metrics.get("predicted_shifts", [])
    ]
    return (beside_predicted(found, pd.DataFrame(rows)) if rows else found), remark
