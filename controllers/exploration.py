"""Policies that collect: exploration around one policy, a portfolio of scripts, and uniform (DESIGN section 3).

All are exact mixtures, so every propensity is known, and Markov, because a mixture component is drawn anew at
every step. Support is designed here: an off-policy learner can only use what these policies try.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import digest
from harness_mdp.mdp import Action, DecisionBatch, DecisionPoint, Mask, Policy, Probs
from harness_mdp.settings.protocol import Setting
from harness_mdp.settings.scripts import script_policy

__all__ = [
    "PORTFOLIO_WEIGHTS",
    "Epsilon",
    "Explore",
    "Portfolio",
    "Uniform",
    "epsilon_policy",
    "portfolio_policy",
]

PORTFOLIO_WEIGHTS: Mapping[str, float] = {
    "base": 0.45,
    "check_revise": 0.25,
    "tool_first": 0.1,
    "more_evidence": 0.1,
}
"""Script -> weight of the default portfolio; with ε = 0.1 they sum to 1."""

_SUM_TOLERANCE = 1e-9


class Explore(StrEnum):
    """R, the actions that exploration may take; only the legal ones of a state are ever drawn."""

    LEGAL_NO_SUBMIT = "legal_no_submit"
    """All but submit: exploration never cuts an episode short. The default."""
    LEGAL = "legal"
    """All, as in the paper."""


@dataclass(frozen=True)
class Uniform:
    """The same probability for every legal action."""

    name: str = "random"

    @property
    def fingerprint(self) -> str:
        """Constant: there is nothing to configure."""
        return digest(["uniform", 1], 16)

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,); raises ValueError where no action is legal."""
        return _uniform(point.mask[None])[0]

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7); raises ValueError where a row has no legal action."""
        return _uniform(batch.mask)


@dataclass(frozen=True)
class Epsilon:
    """A policy π with exploration, `R_s = R ∩ m(s)` and `ε_s = ε·1[R_s ≠ ∅]`.

    μ(a|s) = (1 - ε_s)·π_ρ(a|s) + ε_s·1[a ∈ R_s] / |R_s|

    π_ρ is π, but for the share ρ of its submissions that a check replaces where one is legal: an episode that is over
    cannot show what another check would have found, and few scripts check what a check found clean.

    Args:
        inner: π.
        epsilon: ε in [0, 1]. The paper collects with base and 0.25.
        explore: R.
        recheck: ρ in [0, 1].

    Raises:
        ConfigError: ε or ρ is not in [0, 1], or R is unknown.
    """

    inner: Policy
    epsilon: float
    explore: Explore = Explore.LEGAL_NO_SUBMIT
    name: str = "epsilon"
    recheck: float = 0.0

    def __post_init__(self) -> None:
        _check_share(self.name, "epsilon", self.epsilon)
        _check_share(self.name, "recheck", self.recheck)
        object.__setattr__(self, "explore", _explore(self.name, self.explore))

    @property
    def fingerprint(self) -> str:
        """π, ε, R and ρ."""
        parts = ["epsilon", 1, self.inner.fingerprint, float(self.epsilon), self.explore.value]
        return digest([*parts, *_given(self.recheck)], 16)

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,)"""
        return _mix(self.inner.probs(point)[None], point.mask[None], self)[0]

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7)"""
        return _mix(self.inner.probs_batch(batch), batch.mask, self)


@dataclass(frozen=True)
class Portfolio:
    """At every step a mixture of policies π_j plus a little uniform exploration.

    μ(a|s) = Σ_j α_j·π_j(a|s) + ε·1[a ∈ R_s] / |R_s|,   Σ_j α_j + ε = 1,   R_s = R ∩ m(s)

    Where R_s is empty, ε goes to the members in proportion to their weights. A check replaces the share ρ of the
    members' submissions, as in `Epsilon`.

    Args:
        members: (π_j, α_j); no policy twice.
        epsilon: ε in [0, 1).
        explore: R.
        recheck: ρ in [0, 1].

    Raises:
        ConfigError: no member, a repeated one, a weight that is not positive, weights and ε that do not sum
            to 1, ε outside [0, 1), ρ outside [0, 1], or R unknown.
    """

    members: Sequence[tuple[Policy, float]]
    epsilon: float = 0.1
    explore: Explore = Explore.LEGAL_NO_SUBMIT
    name: str = "portfolio"
    recheck: float = 0.0

    def __post_init__(self) -> None:
        _check_share(self.name, "epsilon", self.epsilon)
        _check_share(self.name, "recheck", self.recheck)
        object.__setattr__(self, "explore", _explore(self.name, self.explore))
        object.__setattr__(self, "members", tuple(self.members))
        names = [policy.name for policy, _ in self.members]
        # Two controllers may share a name, as two rounds of one learner do; what they are tells them apart.
        if not names or len({policy.fingerprint for policy, _ in self.members}) != len(names):
            raise ConfigError(
                f"{self.name}: members are {names}; expected at least one policy, each named once. "
                "Add up the weights of a policy that is listed twice"
            )
        for policy, weight in self.members:
            if not (math.isfinite(weight) and weight > 0):
                raise ConfigError(
                    f"{self.name}: weight of {policy.name!r} is {weight}; expected a number above 0. "
                    "Leave a policy out to give it no weight"
                )
        total = math.fsum(weight for _, weight in self.members) + self.epsilon
        if abs(total - 1.0) > _SUM_TOLERANCE:
            listed = ", ".join(f"{policy.name} {weight:g}" for policy, weight in self.members)
            raise ConfigError(
                f"{self.name}: weights ({listed}) and epsilon {self.epsilon:g} sum to {total:.6g}; expected 1. "
                "Change a weight or epsilon so that they do"
            )

    @property
    def fingerprint(self) -> str:
        """Members with their weights (in any order), ε, R and ρ."""
        members = sorted([policy.fingerprint, float(weight)] for policy, weight in self.members)
        parts = ["portfolio", 1, members, float(self.epsilon), self.explore.value]
        return digest([*parts, *_given(self.recheck)], 16)

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,)"""
        parts = [weight * policy.probs(point) for policy, weight in self.members]
        return self._explored(np.sum(parts, axis=0)[None], point.mask[None])[0]

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7)"""
        parts = [weight * policy.probs_batch(batch) for policy, weight in self.members]
        return self._explored(np.sum(parts, axis=0), batch.mask)

    def _explored(self, mixed: Probs, mask: Mask) -> Probs:
        return _mix(mixed / mixed.sum(axis=1, keepdims=True), mask, self)


def epsilon_policy(
    setting: Setting,
    inner: str = "base",
    epsilon: float = 0.25,
    explore: Explore = Explore.LEGAL_NO_SUBMIT,
) -> Epsilon:
    """Exploration around the script `inner`; with `explore=legal` and the other defaults, the paper's collector.

    Raises:
        ConfigError: see `Epsilon`; or the setting has no such script.
    """
    return Epsilon(script_policy(setting, inner), epsilon, explore)


def portfolio_policy(
    setting: Setting,
    weights: Mapping[str, float] | None = None,
    epsilon: float = 0.1,
    explore: Explore = Explore.LEGAL_NO_SUBMIT,
) -> Portfolio:
    """A portfolio of the setting's scripts; `weights` is script -> α_j, None for `PORTFOLIO_WEIGHTS`.

    Raises:
        ConfigError: see `Portfolio`; or the setting has no such script.
    """
    chosen = PORTFOLIO_WEIGHTS if weights is None else weights
    members = [(script_policy(setting, name), float(weight)) for name, weight in chosen.items()]
    return Portfolio(members, epsilon, explore)


def _mix(probs: Probs, mask: Mask, by: Epsilon | Portfolio) -> Probs:
    """(1 - ε_s)·probs_ρ + ε_s·uniform(R_s), row by row: (n, 7) from (n, 7) and the legal masks (n, 7)."""
    region = mask.copy()
    if by.explore is Explore.LEGAL_NO_SUBMIT:
        region[:, Action.SUBMIT] = False
    size = region.sum(axis=1, keepdims=True)
    rate = np.where(size > 0, by.epsilon, 0.0)
    mixed: Probs = (1.0 - rate) * _rechecked(probs, mask, by.recheck) + rate * region / np.maximum(size, 1)
    return mixed


def _rechecked(probs: Probs, mask: Mask, share: float) -> Probs:
    """(n, 7): a check in place of `share` of the submissions in the rows of `probs` (n, 7) where one is legal."""
    moved = np.where(mask[:, Action.CHECK], share, 0.0) * probs[:, Action.SUBMIT]
    mixed = probs.copy()
    mixed[:, Action.SUBMIT] -= moved
    mixed[:, Action.CHECK] += moved
    return mixed


def _given(recheck: float) -> list[float]:
    """ρ as part of a fingerprint; nothing where it is 0, as in buffers that were collected before there was a ρ."""
    return [float(recheck)] if recheck else []


def _uniform(mask: Mask) -> Probs:
    legal = mask.sum(axis=1, keepdims=True)
    if not legal.all():
        raise ValueError(f"no action is legal in row {int(np.argmin(legal[:, 0]))} of {len(mask)}")
    uniform: Probs = mask / legal
    return uniform


def _check_share(name: str, key: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name}: {key} is {value}; expected a number from 0 to 1")


def _explore(name: str, value: str) -> Explore:
    try:
        return Explore(value)
    except ValueError:
        choices = " or ".join(Explore)
        raise ConfigError(f"{name}: explore is {value!r}; expected {choices}") from None
