"""What a deterministic executor answers to each path of actions, kept so that policies share what they have in common.

With draws that depend on the request and not on the policy, an episode is a function of task, rollout and the actions
taken. Policies agree on most paths (observe, retrieve, draft, check, ...), so a path that one policy took need not be
run for the next; only the decisions are made anew, with the draws that `run_episode` makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness_mdp.hashing import generator
from harness_mdp.mdp import DecisionBatch, DecisionPoint, Episode, Policy, Probs
from harness_mdp.runner import EpisodePlan, draw_action

__all__ = ["Outcome", "PathMemory", "Recorder"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a path ended."""

    return_: float
    steps: int


@dataclass(slots=True)
class _Place:
    """A state that some policy reached."""

    point: DecisionPoint
    after: dict[int, _Place | Outcome] = field(default_factory=dict["int", "_Place | Outcome"])


class Recorder:
    """A policy that keeps the points it was asked about; for one episode.

    Args:
        policy: what decides.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name = policy.name
        self.fingerprint = policy.fingerprint
        self.points: list[DecisionPoint] = []

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,) the policy's, the point kept."""
        self.points.append(point)
        return self.policy.probs(point)

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7) the policy's; nothing is kept."""
        return self.policy.probs_batch(batch)


class PathMemory:
    """Known paths by task and rollout, of one executor and seed."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, int], _Place] = {}

    def follow(self, plans: Sequence[EpisodePlan]) -> Mapping[int, Outcome]:
        """Outcomes of the plans, by index, whose whole path is known; all of one policy."""
        found: dict[int, Outcome] = {}
        live = {
            index: start
            for index, plan in enumerate(plans)
            if (start := self._starts.get((plan.task.id, plan.rollout))) is not None
        }
        t = 1
        while live:
            places = list(live.values())
            probs = plans[next(iter(live))].policy.probs_batch(_batch([place.point for place in places]))
            following: dict[int, _Place] = {}
            for (index, place), row in zip(live.items(), probs, strict=True):
                match place.after.get(int(draw_action(row, generator("policy", plans[index].id, t)))):
                    case Outcome() as outcome:
                        found[index] = outcome
                    case _Place() as ahead:
                        following[index] = ahead
                    case None:
                        pass
            live, t = following, t + 1
        return found

    def keep(self, points: Sequence[DecisionPoint], episode: Episode) -> None:
        """Add the path of an episode that was run; `points` are those of its steps, in order."""
        key = episode.task_id, episode.rollout
        place = self._starts.setdefault(key, _Place(points[0]))
        for step, ahead in zip(episode.steps[:-1], points[1:], strict=True):
            known = place.after.setdefault(int(step.action), _Place(ahead))
            if isinstance(known, Outcome):
                raise ValueError(
                    f"task {key[0]}, rollout {key[1]}: the same actions ended an episode before and did not now; "
                    "the executor's answers depend on more than request and draw"
                )
            place = known
        place.after[int(episode.steps[-1].action)] = Outcome(episode.return_, len(episode.steps))


def _batch(points: Sequence[DecisionPoint]) -> DecisionBatch:
    return DecisionBatch(
        np.stack([point.features for point in points]),
        np.stack([point.mask for point in points]),
        np.array([int(point.base_action) for point in points]),
        [point.state for point in points],
    )
