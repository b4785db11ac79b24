"""Mean returns of policies on tasks, kept in a file as they are found; simulated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness_mdp.hashing import Json, canonical_json

__all__ = ["KnownMeans"]

Floats = npt.NDArray[np.float64]


class KnownMeans:
    """(n_tasks,) mean returns by name of policy.

    Args:
        file: read where it was made under the same conditions, else begun anew.
        conditions: all that the figures depend on.
    """

    def __init__(self, file: Path, conditions: Mapping[str, Json]) -> None:
        self.file = file
        self.buffer_mean = 0.0
        """Mean return of the buffer that was learned from; 0 before there is one."""
        self._of = canonical_json(conditions)
        self._means: dict[str, list[float]] = {}
        if file.exists() and (found := json.loads(file.read_text()))["of"] == self._of:
            self._means, self.buffer_mean = found["means"], found["buffer_mean"]

    def __contains__(self, name: str) -> bool:
        return name in self._means

    def __getitem__(self, name: str) -> Floats:
        """(n_tasks,)"""
        return np.array(self._means[name])

    def add(self, name: str, means: Floats) -> None:
        """Add (n_tasks,) and write the file."""
        self._means[name] = means.tolist()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"of": self._of, "means": self._means, "buffer_mean": self.buffer_mean}))
        part.replace(self.file)
