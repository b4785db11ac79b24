"""A policy that is a table over features: what dynamic programming finds, as a learned policy would say it."""

from __future__ import annotations

import hashlib

import numpy as np

from harness_mdp.mdp import N_ACTIONS, DecisionBatch, DecisionPoint, Probs
from harness_mdp.settings.tabular.graph import TabularMDP

__all__ = ["FeatureTable"]


class FeatureTable:
    """π as a look-up of features, and so a function of what a learned policy may see.

    Args:
        name: for tables.
        mdp: where its states come from.
        table: (3, n, 7) probabilities, equal where features are equal.

    Raises:
        ValueError: not a distribution over the legal actions, or two states with the same features differ.
    """

    def __init__(self, name: str, mdp: TabularMDP, table: Probs) -> None:
        self.name = name
        flat = mdp.features.reshape(-1, mdp.features.shape[-1])
        rows = mdp.table(table).reshape(-1, N_ACTIONS)
        self._at: dict[bytes, int] = {}
        for place, each in enumerate(flat):
            known = self._at.setdefault(each.tobytes(), place)
            if not np.array_equal(rows[known], rows[place]):
                raise ValueError(
                    f"policy {name} differs between two states that show the same features: "
                    f"{rows[known].tolist()} and {rows[place].tolist()}"
                )
        self._rows = rows
        self.horizon = mdp.horizon
        content = hashlib.sha256(flat.tobytes())
        content.update(rows.tobytes())
        self._fingerprint = content.hexdigest()[:16]

    @property
    def fingerprint(self) -> str:
        """16 hex digits over features and probabilities."""
        return self._fingerprint

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,)

        Raises:
            ValueError: no state of the MDP shows these features (another horizon, a token budget, another executor).
        """
        return self._rows[self._place(point.features)].copy()

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7); raises as `probs`."""
        return self._rows[[self._place(each) for each in batch.features]]

    def _place(self, features: np.ndarray) -> int:
        place = self._at.get(features.tobytes())
        if place is None:
            raise ValueError(
                f"policy {self.name} knows the states of setting tabular with horizon {self.horizon} and no token "
                f"budget; none shows features {features.tolist()}"
            )
        return place
