"""An executor that answers from a fixed list and has no task store; and one that records what it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness_mdp.executors.protocol import Completion, Executor, Purpose, Request


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
