"""An executor that answers from a fixed list and has no task store; one that records what it was asked; a policy that
takes its actions from a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from harness_mdp.executors.protocol import Completion, Executor, Purpose, Request
from harness_mdp.hashing import digest
from harness_mdp.mdp import N_ACTIONS, Action, DecisionBatch, DecisionPoint, Probs


@dataclass
class ScriptedExecutor:
    """Replies by purpose, whatever the task."""

    replies: Mapping[Purpose, str]
    fingerprint: str = "scripted"
    simulated: bool = False
    requests: list[Request] = field(default_factory=list)

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        text = self.replies[request.purpose]
        return Completion(text, len(request.messages[-1].content), len(text), None, 0.0, "stop", "scripted")

    async def close(self) -> None:
        pass


@dataclass
class RecordingExecutor:
    """Passes everything on and remembers the requests."""

    inner: Executor
    requests: list[Request] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    @property
    def simulated(self) -> bool:
        return self.inner.simulated

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return await self.inner.complete(request)

    async def close(self) -> None:
        await self.inner.close()


@dataclass(frozen=True)
class Course:
    """Takes `actions` one after another, whatever comes of them; `observe` where one is not legal or none is left."""

    actions: tuple[Action, ...]
    name: str = "course"

    @property
    def fingerprint(self) -> str:
        return digest([self.name, *(action.label for action in self.actions)], 16)

    def probs(self, point: DecisionPoint) -> Probs:
        at = point.state.steps
        action = self.actions[at] if at < len(self.actions) else Action.OBSERVE
        probs = np.zeros(N_ACTIONS)
        probs[action if point.mask[action] else Action.OBSERVE] = 1.0
        return probs

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        raise NotImplementedError("a course is run, not learned from")
