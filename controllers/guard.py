"""Follow a controller only where the data speak for it; otherwise do what base does (DESIGN section 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from controllers.config import ConfigurationJson, LinearQConfig
from controllers.data import Ints, StepData
from controllers.linear_q import LinearQ
from controllers.q_function import expect_states, tensors_digest
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import digest, generator
from harness_mdp.mdp import DecisionBatch, DecisionPoint, Probs

if TYPE_CHECKING:
    from controllers.kinds import Controller

__all__ = [
    "GUARDED",
    "Guard",
    "GuardConfig",
    "GuardLevel",
    "GuardedPolicy",
    "Refusal",
    "fit_guard",
    "guard_from_tensors",
]

GUARDED = "guarded/"
"""Begins the kind of a guarded controller; the kind of the controller inside follows."""


class GuardLevel(StrEnum):
    """What an action other than base's has to show."""

    NONE = "none"
    SUPPORT = "support"
    """The behaviour proposed the action in states like this one."""
    ADVANTAGE = "advantage"
    """That, and a lower bound of its advantage over base above the margin."""


class Refusal(StrEnum):
    """Why an action was not followed."""

    SUPPORT = "support"
    ADVANTAGE = "advantage"


_REASONS = (None, Refusal.SUPPORT, Refusal.ADVANTAGE)


@dataclass(frozen=True, slots=True)
class GuardConfig(ConfigurationJson):
    """When a controller is followed.

    Raises:
        ConfigError: a margin or z that cannot be.
    """

    level: GuardLevel = GuardLevel.ADVANTAGE
    margin: float = 0.0
    """Lower bound of the advantage over base that an action needs, in units of the return."""
    z: float = 1.0
    """Standard deviations between the members of the ensemble by which the advantage is lowered."""
    members: int = 6
    """Q functions of the ensemble, each from its own half of the tasks."""
    linear: LinearQConfig = field(default_factory=LinearQConfig)
    """How each is fitted: advantages come from it, and support is what it holds for proposed."""

    def __post_init__(self) -> None:
        if self.members < 1:
            raise ConfigError(f"guard members is {self.members}; expected a whole number of at least 1")
        if self.level not in list(GuardLevel):
            raise ConfigError(f"guard is {self.level!r}; expected one of {', '.join(GuardLevel)}")
        if not (np.isfinite(self.margin) and np.isfinite(self.z) and self.z >= 0):
            raise ConfigError(f"guard margin is {self.margin} and z {self.z}; expected finite numbers, z at least 0")


@dataclass(frozen=True, eq=False)
class Guard:
    """Which actions the data speak for, by Q functions of its own."""

    members: Sequence[LinearQ]
    """K Q functions."""
    level: GuardLevel
    margin: float
    z: float

    def reasons(self, features: npt.NDArray[np.float32], base_action: Ints) -> Ints:
        """(n, 7) index into (none, support, advantage): why each action would be refused; base never is.

        The bound is mean_k D_k - z · sd_k D_k with D_k = Q_k(s, a) - Q_k(s, base), over the members of the
        ensemble that have data for both. Where base itself has too little data nothing can be compared.
        """
        members = np.stack([q.values(features) for q in self.members], axis=1)  # (n, K, 7)
        members = np.where(np.isfinite(members), members, np.nan)
        rows = np.arange(len(features))
        half = 2 * (~np.isnan(members)).sum(axis=1) >= len(self.members)
        found = np.where(half, 0, 1)
        if self.level is GuardLevel.ADVANTAGE:
            gain = members - members[rows, :, base_action][:, :, None]
            both = ~np.isnan(gain)
            count = both.sum(axis=1)
            mean = np.where(both, gain, 0.0).sum(axis=1) / np.maximum(count, 1)
            deviation = np.where(both, gain - mean[:, None], 0.0)
            spread = np.sqrt((deviation**2).sum(axis=1) / np.maximum(count - 1, 1))
            compared = 2 * count >= len(self.members)
            clears = compared & (mean - self.z * spread > self.margin)
            found = np.where((found == 0) & ~clears, np.where(compared, 2, 1), found)
        found[rows, base_action] = 0
        return found

    @property
    def n_features(self) -> int:
        """Features that are read."""
        return max(q.n_features for q in self.members)

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """The members' arrays, by index and name."""
        return {f"{index}.{name}": array for index, q in enumerate(self.members) for name, array in q.tensors().items()}


def fit_guard(data: StepData, config: GuardConfig, seed: int) -> Guard:
    """The guard's ensemble, each member on a random half of the tasks.

    Raises:
        UnusableBuffer: see `transitions`.
    """
    from controllers.fitted_linear import fit_linear
    from controllers.transitions import half_of_tasks

    members = [
        fit_linear(half_of_tasks(data, generator("guard", seed, index)), config.linear)
        for index in range(config.members)
    ]
    return Guard(tuple(members), config.level, config.margin, config.z)


class GuardedPolicy:
    """π with the probability of every refused action moved to the base action.

    Args:
        inner: π.
        guard: what refuses.
    """

    def __init__(self, inner: Controller, guard: Guard) -> None:
        self.name = f"{inner.name}+guard"
        self.inner = inner
        self.guard = guard
        self.kind = f"{GUARDED}{inner.kind}"
        own = digest([guard.level.value, guard.margin, guard.z, tensors_digest(guard.tensors())], 16)
        self._fingerprint = digest(["guarded", 1, inner.fingerprint, own], 16)

    @property
    def fingerprint(self) -> str:
        """The controller inside, the plan, level, margin and z."""
        return self._fingerprint

    @property
    def n_features(self) -> int:
        """Features that are read."""
        return max(self.inner.n_features, self.guard.n_features)

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,)"""
        base = np.array([int(point.base_action)])
        return self.probs_batch(DecisionBatch(point.features[None], point.mask[None], base))[0]

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7)"""
        expect_states(self.name, self.guard.n_features, batch)
        probs = self.inner.probs_batch(batch)
        if len(batch) == 0:
            return probs
        refused = self.guard.reasons(batch.features, batch.base_action) > 0
        kept = np.where(refused, 0.0, probs)
        kept[np.arange(len(batch)), batch.base_action] += np.where(refused, probs, 0.0).sum(axis=1)
        return kept

    def refusals(self, batch: DecisionBatch) -> dict[Refusal, float]:
        """Expected number of refused decisions over the states of `batch`, by reason."""
        reasons = self.guard.reasons(batch.features, batch.base_action)
        probs = self.inner.probs_batch(batch)
        return {
            reason: float(probs[reasons == index].sum()) for index, reason in enumerate(_REASONS) if reason is not None
        }

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything it is made of, by name."""
        return {
            **{f"inner.{name}": array for name, array in self.inner.tensors().items()},
            **{f"guard.{name}": array for name, array in self.guard.tensors().items()},
            "level": np.array([list(GuardLevel).index(self.guard.level)]),
            "bound": np.array([self.guard.margin, self.guard.z]),
        }


def guard_from_tensors(tensors: Mapping[str, npt.NDArray[np.generic]]) -> Guard:
    """The guard inside the arrays of a `GuardedPolicy`.

    Raises:
        ValueError, KeyError, IndexError: an array is missing, or does not fit.
    """
    groups: dict[int, dict[str, npt.NDArray[np.generic]]] = {}
    for name, array in tensors.items():
        if name.startswith("guard."):
            _, index, own = name.split(".", 2)
            groups.setdefault(int(index), {})[own] = array
    margin, z = (float(number) for number in tensors["bound"])
    members = tuple(LinearQ.from_tensors(groups[index]) for index in range(len(groups)))
    if not members:
        raise ValueError("a guard without a Q function")
    return Guard(members, list(GuardLevel)[int(tensors["level"][0])], margin, z)
