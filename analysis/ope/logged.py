r"""Logged steps beside a target policy: importance ratios, and what an episode weighs (DESIGN section 11).

With behaviour policy :math:`\mu`, target policy :math:`\pi` and an episode :math:`i` of :math:`T_i` steps,

.. math::

    \rho_{i,t} = \pi(a_{i,t}|s_{i,t}) / \mu(a_{i,t}|s_{i,t}), \qquad
    \rho_{i,1:t} = \prod_{u \le \min(t, T_i)} \rho_{i,u}

An ended episode keeps its ratio. The denominator is the propensity of the action that was *taken*, and so is the
numerator: a ratio with the target's own choice would be another quantity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controllers.data import Bools, Floats, Ints, StepData, check_steps
from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import ACTIONS, N_ACTIONS, Probs

__all__ = ["Logged", "logged"]

_SUM_TOLERANCE = 1e-6
"""Allowed distance of a sum of probabilities from 1: a learned policy may compute in float32."""


@dataclass(frozen=True, slots=True, eq=False)
class Logged:
    """n steps of m episodes of K tasks, ordered by (episode, t), each with what the target would do there."""

    features: npt.NDArray[np.float32]
    """(n, d)"""
    mask: Bools
    """(n, 7)"""
    action: Ints
    """(n,)"""
    behaviour: Probs
    """(n, 7) μ(·|s)"""
    target: Probs
    """(n, 7) π(·|s), exactly 0 on illegal actions."""
    t: Ints
    """(n,) 1..H"""
    episode: Ints
    """(n,) index into the m episodes, non-decreasing."""
    rewards: Floats
    """(n,) r_t; the last step of an episode earns its terminal reward."""
    unearned: Floats
    """(m,) return that no step earned: the whole return of an episode without steps, else 0 up to rounding."""
    returns: Floats
    """(m,) G, the sum of rewards and of what no step earned."""
    task: Ints
    """(m,) 0 .. K-1, every task with at least one episode."""
    cumulative: Floats
    """(m, H+1) ρ_{1:t} at column t; column 0 is 1, and an ended episode keeps its ratio."""

    @property
    def n_episodes(self) -> int:
        """The number m."""
        return len(self.returns)

    @property
    def n_tasks(self) -> int:
        """The number K."""
        return int(self.task.max()) + 1

    @property
    def horizon(self) -> int:
        """Most steps of an episode in the log."""
        return self.cumulative.shape[1] - 1

    @property
    def weights(self) -> Floats:
        """(m,) ρ_{1:T}, the importance weight of each episode."""
        return self.cumulative[:, -1]

    @property
    def mass(self) -> Floats:
        """(m,) share of an episode in the log: tasks weigh equally, and the episodes of a task. Sums to 1."""
        size = np.bincount(self.task)
        shares: Floats = 1.0 / (len(size) * size[self.task])
        return shares

    @property
    def last(self) -> Bools:
        """(n,) the step ends its episode."""
        return np.append(self.episode[1:] != self.episode[:-1], True)

    def by_step(self, values: Floats) -> Floats:
        """(m, H+1) from one value a step: column t holds step t, 0 after the end and in column 0."""
        spread = np.zeros(self.cumulative.shape)
        spread[self.episode, self.t] = values
        return spread

    def per_task(self, values: Floats) -> Floats:
        """(K, ...) task means of values (m, ...) of episodes."""
        size = np.bincount(self.task).astype(np.float64)
        sums = np.zeros((len(size), *values.shape[1:]))
        np.add.at(sums, self.task, values)
        means: Floats = sums / size.reshape(-1, *[1] * (values.ndim - 1))
        return means


def logged(data: StepData, target: Probs, *, rewards: Floats | None = None) -> Logged:
    """The steps of `data`, in any order, beside the probabilities of a target policy.

    Args:
        data: n steps of m episodes; the steps of an episode are numbered 1..T.
        target: (n, 7) π(·|s) of each step.
        rewards: (n,) reward of each step; None when the return is earned by the last one.

    Raises:
        UnusableBuffer: a taken action with propensity 0, propensities that are no distribution, or what
            `check_steps` refuses.
        ValueError: a target that is no distribution over the legal actions, or steps that are missing.
    """
    check_steps(data)
    order = np.lexsort((data.t, data.episode))
    episode, t, action, mask = data.episode[order], data.t[order], data.action[order], data.mask[order]
    n, m = len(order), len(data.returns)
    if target.shape != (n, N_ACTIONS):
        raise ValueError(f"the target's probabilities have shape {target.shape}; expected ({n}, {N_ACTIONS})")
    lengths = np.bincount(episode, minlength=m)
    expected_t = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    if (t != expected_t).any():
        row = int((t != expected_t).argmax())
        raise ValueError(f"episode {episode[row]} has a step t = {t[row]}; expected {expected_t[row]}")
    behaviour, wanted = data.propensities[order], target[order].astype(np.float64)
    _check_behaviour(behaviour, mask, action, t, episode)
    _check_target(wanted, mask, t, episode)
    last = np.append(episode[1:] != episode[:-1], True)
    earned = np.where(last, data.returns[episode], 0.0) if rewards is None else rewards[order].astype(np.float64)
    rows = np.arange(n)
    ratios = np.ones((m, int(t.max()) + 1))
    ratios[episode, t] = wanted[rows, action] / behaviour[rows, action]
    cumulative: Floats = np.asarray(np.cumprod(ratios, axis=1), dtype=np.float64)
    return Logged(
        features=data.features[order],
        mask=mask,
        action=action,
        behaviour=behaviour,
        target=wanted,
        t=t,
        episode=episode,
        rewards=earned,
        unearned=data.returns - np.bincount(episode, weights=earned, minlength=m),
        returns=data.returns,
        task=np.unique(data.task, return_inverse=True)[1].astype(np.int64),
        cumulative=cumulative,
    )


def _check_behaviour(behaviour: Probs, mask: Bools, action: Ints, t: Ints, episode: Ints) -> None:
    taken = behaviour[np.arange(len(action)), action]
    if not (taken > 0).all():
        row = int((~(taken > 0)).argmax())
        raise UnusableBuffer(
            f"episode {episode[row]} took {ACTIONS[action[row]].label} at step {t[row]}, which its behaviour policy "
            f"had probability {taken[row]:g} for; nothing can be weighed by it. Run `python -m harness_mdp.verify`"
        )
    if (row := _no_distribution(behaviour, mask)) is not None:
        raise UnusableBuffer(
            f"propensities of step {t[row]} of episode {episode[row]} are {behaviour[row].tolist()}; expected a "
            "distribution over the legal actions. Run `python -m harness_mdp.verify`"
        )


def _check_target(target: Probs, mask: Bools, t: Ints, episode: Ints) -> None:
    if (row := _no_distribution(target, mask)) is not None:
        raise ValueError(
            f"the target's probabilities at step {t[row]} of episode {episode[row]} are {target[row].tolist()}, legal "
            f"are {mask[row].tolist()}; expected a distribution, exactly 0 on illegal actions"
        )


def _no_distribution(probs: Probs, mask: Bools) -> int | None:
    """First row that is no distribution over the legal actions."""
    wrong = (probs < 0).any(axis=1) | ((probs != 0) & ~mask).any(axis=1)
    wrong |= ~(np.abs(probs.sum(axis=1) - 1.0) <= _SUM_TOLERANCE)  # NaN is wrong too
    return int(wrong.argmax()) if wrong.any() else None
