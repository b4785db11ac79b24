"""What an executor is: the frozen model behind chat completions (DESIGN section 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Protocol

from harness_mdp.errors import HarnessError
from harness_mdp.hashing import digest
from harness_mdp.mdp import EventError

__all__ = [
    "AgentFault",
    "Completion",
    "DrawKey",
    "Executor",
    "ExecutorStopped",
    "InfraFault",
    "Message",
    "Purpose",
    "Request",
    "Sampling",
]


class Purpose(StrEnum):
    """What a request is for; the simulated executor behaves accordingly, a real one is told by the prompt."""

    DRAFT = "draft"
    CHECK = "check"
    REVISE = "revise"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters, part of the executor's fingerprint."""

    temperature: float = 0.7
    top_p: float = 1.0
    max_tokens: int = 512


@dataclass(frozen=True, slots=True)
class DrawKey:
    """Where an executor's randomness comes from: not the policy, so arms share draws until prompts diverge."""

    seed: int
    rollout: int
    occurrence: int
    """How-many-th identical request of the episode, from 0."""


@dataclass(frozen=True)  # without slots: it keeps its content key, which is asked for several times a call
class Request:
    """One chat completion to make."""

    messages: tuple[Message, ...]
    purpose: Purpose
    task_id: str
    task_hash: str
    draw: DrawKey

    @cached_property
    def content_key(self) -> str:
        """Hash of everything but the draw: two requests with the same one are identical."""
        return digest(
            {
                "messages": [[message.role, message.content] for message in self.messages],
                "purpose": self.purpose.value,
                "task": self.task_hash,
            }
        )

    def key(self, executor: str) -> str:
        """The draw key as one hash: executor fingerprint, request, seed, rollout, occurrence."""
        draw = self.draw
        return digest([executor, self.content_key, draw.seed, draw.rollout, draw.occurrence])


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """USD; None when the price is unknown."""
    seconds: float = field(compare=False)
    """Latency of the call when it was made; a replayed completion keeps the original figure."""
    finish_reason: str
    model: str
    """Model name as the server gave it."""


class Executor(Protocol):
    """A frozen model. Implementations: `OpenAIExecutor`, `SimulatedExecutor`, `CachedExecutor`."""

    @property
    def fingerprint(self) -> str:
        """Model, sampling parameters and the user's label; no URL, no key, nothing the server says."""
        ...

    @property
    def simulated(self) -> bool:
        """Every figure made with a simulated executor says so."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Make one completion.

        Raises:
            AgentFault: the agent's own fault; the step has status `error`, the episode goes on.
            InfraFault: outside the agent, after retries; the episode gets no return.
            ExecutorStopped: no use in going on (authentication, unknown model, spending limit).
        """
        ...

    async def close(self) -> None:
        """Release connections and files."""
        ...


class AgentFault(Exception):
    """A failed call that is the agent's own doing: no retry, a valid return."""

    def __init__(self, error: EventError, detail: str) -> None:
        super().__init__(detail)
        self.error = error


class InfraFault(Exception):
    """A failed call for reasons outside the agent: no return, never 0; tried again by the next run."""


class ExecutorStopped(HarnessError):
    """The whole run has to stop now; what is finished stays."""

    exit_code = 2
