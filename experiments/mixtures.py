"""Mixtures that a next collection may use: the portfolio, with more of one policy or of exploration, and ε around one.

Each is a policy's configuration, so what is estimated and what a person is told to run are the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers.exploration import PORTFOLIO_WEIGHTS
from experiments.config import EpsilonPolicyConfig, PortfolioPolicyConfig

__all__ = ["Mixture", "candidate_mixtures"]

_EPSILON = 0.1
_RECHECK = 0.2
_SHIFT = 0.4
"""Share of the portfolio that one policy is given more."""
_BASE_SHARE = 0.25
"""Weight that base keeps beside equal weights of all that propose what is missing."""


@dataclass(frozen=True)
class Mixture:
    """A way to collect."""

    name: str
    policy: EpsilonPolicyConfig | PortfolioPolicyConfig


def candidate_mixtures(proposers: Sequence[str], controllers: Sequence[str]) -> tuple[Mixture, ...]:
    """The default portfolio first, then variants that are likely to bring what is missing.

    Args:
        proposers: scripts and controllers that propose a pair without enough data.
        controllers: folders among all policies that were asked; each may also collect alone, with exploration.
    """
    portfolio = dict(PORTFOLIO_WEIGHTS)
    found = [Mixture("portfolio", PortfolioPolicyConfig(weights=portfolio, epsilon=_EPSILON))]
    found += [Mixture(f"portfolio + {name}", _weighted(_more(portfolio, name), _EPSILON)) for name in proposers]
    others = [name for name in proposers if name != "base"]
    if len(others) > 1:
        equal = {"base": _BASE_SHARE} | {name: (1.0 - _BASE_SHARE) / len(others) for name in others}
        found.append(Mixture("portfolio of equal parts", _weighted(equal, _EPSILON)))
    found += [Mixture(f"portfolio, ε = {epsilon:g}", _weighted(portfolio, epsilon)) for epsilon in (0.2, 0.3)]
    found.append(Mixture(f"portfolio, recheck = {_RECHECK:g}", _weighted(portfolio, _EPSILON, _RECHECK)))
    found.append(Mixture("check_revise, ε = 0.25", EpsilonPolicyConfig(inner="check_revise", epsilon=0.25)))
    found += [
        Mixture(f"{name}, ε = {_EPSILON:g}", EpsilonPolicyConfig(inner=name, epsilon=_EPSILON)) for name in controllers
    ]
    return tuple(found)


def _more(weights: Mapping[str, float], name: str) -> dict[str, float]:
    total = sum(weights.values())
    shifted = {each: (1.0 - _SHIFT) * weight for each, weight in weights.items()}
    shifted[name] = shifted.get(name, 0.0) + _SHIFT * total
    return shifted


def _weighted(weights: Mapping[str, float], epsilon: float, recheck: float = 0.0) -> PortfolioPolicyConfig:
    """`weights` in proportion, in hundredths that sum to exactly 1 - ε: what a person would write."""
    total, room = sum(weights.values()), round(100 * (1.0 - epsilon))
    exact = {name: weight / total * room for name, weight in weights.items()}
    parts = {name: max(1, int(value)) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (-(exact[name] - int(exact[name])), name))
    step = 0
    while (rest := room - sum(parts.values())) != 0:
        name = by_remainder[step % len(by_remainder)] if rest > 0 else max(parts, key=lambda each: (parts[each], each))
        parts[name] += 1 if rest > 0 else -1
        step += 1
    shares = {name: part / 100 for name, part in parts.items()}
    return PortfolioPolicyConfig(weights=shares, epsilon=epsilon, recheck=recheck)
