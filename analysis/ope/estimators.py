"""The estimators side by side: one protocol, one registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Protocol

from analysis.ope.abstract_model import AbstractConfig, AbstractModel, abstract_model
from analysis.ope.fitted_q import CrossFit, FittedQConfig, cross_fit
from analysis.ope.intervals import Refitted, Terms
from analysis.ope.logged import Logged
from analysis.ope.weighting import (
    doubly_robust,
    importance_sampling,
    per_decision,
    weighted_doubly_robust,
    weighted_importance_sampling,
    weighted_per_decision,
)
from controllers.data import Floats

__all__ = ["ESTIMATORS", "Estimator", "Models", "RestsOn"]


class RestsOn(StrEnum):
    """What carries an estimate, and so which part of the support verdict it needs."""

    WEIGHTS = "weights"
    MODEL = "model"


class Models:
    """The models of one log, each fitted when it is first asked for and then shared by the estimators."""

    def __init__(
        self, log: Logged, fitted_q: FittedQConfig | None = None, abstract: AbstractConfig | None = None
    ) -> None:
        self.log = log
        self._fitted_q_config = fitted_q
        self._abstract_config = abstract

    @cached_property
    def fitted_q(self) -> CrossFit:
        """Cross-fitted Q̂ of the target."""
        return cross_fit(self.log, self._fitted_q_config)

    @cached_property
    def abstract(self) -> AbstractModel:
        """Transitions between clusters."""
        return abstract_model(self.log, self._abstract_config)


class Estimator(Protocol):
    """Estimates the value of the target on the tasks of a log."""

    @property
    def name(self) -> str:
        """Its key in the registry."""
        ...

    @property
    def rests_on(self) -> RestsOn:
        """What carries it."""
        ...

    def __call__(self, models: Models, counts: Floats) -> Terms | Refitted:
        """The estimate for `models.log`.

        Args:
            models: the log and models of it.
            counts: (B, K) how often each task is drawn in each resample, for what is fitted again.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Weighted:
    """An estimator from the weights alone."""

    name: str
    formula: Callable[[Logged], Terms]
    rests_on: RestsOn = RestsOn.WEIGHTS

    def __call__(self, models: Models, counts: Floats) -> Terms:  # noqa: ARG002  (the protocol)
        return self.formula(models.log)


@dataclass(frozen=True, slots=True)
class _Corrected:
    """An estimator from the weights, with the cross-fitted value model beside."""

    name: str
    formula: Callable[[Logged, Floats], Terms]
    rests_on: RestsOn = RestsOn.WEIGHTS

    def __call__(self, models: Models, counts: Floats) -> Terms:  # noqa: ARG002  (the protocol)
        return self.formula(models.log, models.fitted_q.q)


@dataclass(frozen=True, slots=True)
class _Modelled:
    """An estimator from a model alone."""

    name: str
    formula: Callable[[Models, Floats], Refitted]
    rests_on: RestsOn = RestsOn.MODEL

    def __call__(self, models: Models, counts: Floats) -> Refitted:
        return self.formula(models, counts)


_ALL: tuple[Estimator, ...] = (
    _Weighted("is", importance_sampling),
    _Weighted("wis", weighted_importance_sampling),
    _Weighted("per_decision", per_decision),
    _Weighted("weighted_per_decision", weighted_per_decision),
    _Corrected("dr", doubly_robust),
    _Corrected("weighted_dr", weighted_doubly_robust),
    _Modelled("fqe", lambda models, counts: models.fitted_q.estimate(counts)),
    _Modelled("model", lambda models, counts: models.abstract.estimate(counts)),
)

ESTIMATORS: Mapping[str, Estimator] = {estimator.name: estimator for estimator in _ALL}
"""By name, in the order of tables."""
