"""The kinds of saved controllers: which class a folder's arrays belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from controllers.config import DecisionRule
from controllers.forest_q import ForestQ
from controllers.gated_q import GatedQ
from controllers.guard import GUARDED, GuardedPolicy, guard_from_tensors
from controllers.linear_q import LinearQ
from controllers.network import MLPWeights
from controllers.planned_q import PlannedQ
from controllers.policy import ControllerPolicy
from controllers.q_function import QFunction, ValuePolicy
from harness_mdp.mdp import DecisionBatch, DecisionPoint, Probs

__all__ = ["KINDS", "Controller", "make_controller"]

Tensors = Mapping[str, npt.NDArray[np.generic]]


class Controller(Protocol):
    """A learned policy that can be saved: the `Policy` protocol, and the arrays it is made of."""

    name: str
    kind: str

    @property
    def fingerprint(self) -> str:
        """Changes whenever the decisions could."""
        ...

    @property
    def n_features(self) -> int:
        """At least so many features are read (a network: exactly)."""
        ...

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,)"""
        ...

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7)"""
        ...

    def tensors(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything it is made of, by name."""
        ...


def _network(tensors: Tensors, decision: DecisionRule, name: str) -> Controller:
    return ControllerPolicy(MLPWeights.from_tensors(tensors), decision, name)


def _greedy_on(q: Callable[[Tensors], QFunction]) -> Callable[[Tensors, DecisionRule, str], Controller]:
    return lambda tensors, _, name: ValuePolicy(q(tensors), name)


KINDS: Mapping[str, Callable[[Tensors, DecisionRule, str], Controller]] = {
    ControllerPolicy.kind: _network,
    PlannedQ.kind: _greedy_on(PlannedQ.from_tensors),
    ForestQ.kind: _greedy_on(ForestQ.from_tensors),
    LinearQ.kind: _greedy_on(LinearQ.from_tensors),
    GatedQ.kind: _greedy_on(GatedQ.from_tensors),
}
"""Kind -> what makes the controller from its arrays, decision rule and name."""


def make_controller(kind: str, tensors: Tensors, decision: DecisionRule, name: str) -> Controller:
    """The controller of `kind`.

    Raises:
        ValueError: an unknown kind, or arrays that do not fit.
    """
    if kind.startswith(GUARDED):
        return _guarded(kind.removeprefix(GUARDED), tensors, decision, name)
    if kind not in KINDS:
        raise ValueError(f"unknown kind of controller {kind!r}; expected one of {', '.join(KINDS)}")
    try:
        return KINDS[kind](tensors, decision, name)
    except (KeyError, IndexError) as problem:
        raise ValueError(f"the array {problem} is missing or empty") from problem


def _guarded(kind: str, tensors: Tensors, decision: DecisionRule, name: str) -> Controller:
    inner = {key.removeprefix("inner."): array for key, array in tensors.items() if key.startswith("inner.")}
    try:
        guard = guard_from_tensors(tensors)
    except (KeyError, IndexError) as problem:
        raise ValueError(f"the array {problem} of the guard is missing or empty") from problem
    return GuardedPolicy(make_controller(kind, inner, decision, name.removesuffix("+guard")), guard)
