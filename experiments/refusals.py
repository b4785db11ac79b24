"""How often a guard refused its controller in an evaluation, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from buffers import ReplayBuffer
from controllers.guard import GuardedPolicy, Refusal
from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import DecisionBatch, Policy

__all__ = ["Refusals", "count_refusals"]


@dataclass(frozen=True, slots=True)
class Refusals:
    """Decisions of one arm in which its controller was not followed."""

    decisions: int
    by_reason: Mapping[Refusal, float]
    """Expected number: of a sampled controller, the probability that was moved to base."""

    @property
    def share(self) -> float:
        """Of all decisions."""
        return sum(self.by_reason.values()) / max(self.decisions, 1)


def count_refusals(
    buffer: ReplayBuffer, setting: str, split: str, arm: Collection[tuple[Policy, Collection[str]]]
) -> Refusals | None:
    """What the guards of an arm refused; None where it has none, or no finished episode.

    Args:
        buffer: holds the episodes.
        setting: their setting.
        split: `train`, `eval` or `all`.
        arm: each policy of the arm with the ids of its episodes.
    """
    decisions = 0
    found: dict[Refusal, float] = {}
    for policy, episode_ids in arm:
        if not isinstance(policy, GuardedPolicy):
            continue
        try:
            steps = buffer.tensors(setting, "eval", split, episode_id=list(episode_ids))
        except UnusableBuffer:  # none of them is finished
            continue
        decisions += steps.n_steps
        for reason, count in policy.refusals(DecisionBatch(steps.features, steps.mask, steps.base_action)).items():
            found[reason] = found.get(reason, 0.0) + count
    return Refusals(decisions, found) if decisions else None
