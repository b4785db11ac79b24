"""Collection through an OpenAI-compatible endpoint, beside a bare `AsyncOpenAI` loop making the same calls.

`python -m benchmarks.collection`. The endpoint is `tests.loopback` in a process of its own, with 50 ms latency; 64
calls are in flight at once. Ours is `experiments.collection.collect`, whole: tasks, policy, tools, parsing, the
completion cache, scoring, both maturity scores, and commits to a new buffer, which is compacted at the end. The peer
sends the bodies that ours sent, by `chat.completions.create` in 64 tasks, and throws the answers away. Both make the
same number of calls, so the ratio of calls per second is the ratio of the times.

The server answers what the simulated executor wrote to the same prompts, looked up by the seed in the request: so
drafts parse, checks name problems and revisions follow, and no model's time is measured on either side. Every round
has a new buffer and cache; rounds alternate between ours and the peer, and which of them begins alternates too.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import openai

from benchmarks.table import REPEATS, Line, Report, text
from experiments.collection import collect
from experiments.config import CollectConfig, OpenAIConfig, PortfolioPolicyConfig, SettingConfig, SimulatedConfig
from experiments.executors import make_executor
from experiments.policies import make_policy
from experiments.tasks import load_tasks
from harness_mdp.executors.openai import LOOPBACK_KEY, draw_seed
from harness_mdp.executors.protocol import Completion, Executor, Request
from harness_mdp.runner import EpisodePlan, run_episodes
from harness_mdp.scoring.rubric import Scorer
from tests.loopback import Loopback, by_seed

__all__ = ["Workload", "measure"]

LATENCY_MS = 50
AT_ONCE = 64
MODEL = "loopback-model"
GOAL = 0.90


@dataclass(frozen=True)
class Workload:
    """What is collected."""

    setting: str
    rollouts: int
    """Of each of 80 training tasks."""
    goal: float | None

    def config(self, base_url: str, buffer: Path) -> CollectConfig:
        """The configuration of the collection."""
        return CollectConfig(
            setting=SettingConfig(self.setting),
            executor=OpenAIConfig(model=MODEL, base_url=base_url),
            policy=PortfolioPolicyConfig(),
            buffer=str(buffer),
            rollouts=self.rollouts,
            concurrency=AT_ONCE,
        )


WORKLOADS = (Workload("planning", 20, GOAL), Workload("coding", 2, None))
"""A setting whose tools cost little, so that what is ours shows; and one that runs code in the sandbox."""


class _Recorder:
    """The simulated executor under the name of another one; keeps what it answered, by the seed of the call."""

    simulated = True

    def __init__(self, inner: Executor, fingerprint: str) -> None:
        self._inner = inner
        self.fingerprint = fingerprint
        self.replies: dict[str, dict[str, Any]] = {}

    async def complete(self, request: Request) -> Completion:
        completion = await self._inner.complete(request)
        usage = {"prompt_tokens": completion.prompt_tokens, "completion_tokens": completion.completion_tokens}
        usage["total_tokens"] = sum(usage.values())
        reply = {"text": completion.text, "usage": usage}
        if self.replies.setdefault(str(draw_seed(request)), reply) != reply:
            raise AssertionError("two requests have the same seed: the server could not tell them apart")
        return replace(completion, cost_usd=None)

    async def close(self) -> None:
        await self._inner.close()


def record(workload: Workload, folder: Path) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """The replies to serve, and the bodies that a collection sends, both from runs that are not measured."""
    config = workload.config("http://127.0.0.1:9/v1", folder / "unused")  # only its fingerprint is asked for
    tasks = load_tasks(config.setting, config.split_by)
    plain = replace(config.executor, cache=False)
    named = make_executor(plain, tasks, AT_ONCE).fingerprint
    recorder = _Recorder(make_executor(SimulatedConfig(), tasks, AT_ONCE), named)
    policy = make_policy(config.policy, tasks.setting)
    plans = [
        EpisodePlan(
            run="",
            phase="collect",
            setting=tasks.setting,
            task=task,
            policy=policy,
            executor=named,
            seed=config.seed,
            rollout=rollout,
            horizon=tasks.horizon,
            budgets=tasks.budgets,
        )
        for rollout in range(config.rollouts)
        for task in tasks.select(config.split)
    ]

    async def ignore(_: object) -> None:
        return None

    scorer = Scorer(tasks.setting, tasks.store.sealed)
    asyncio.run(run_episodes(plans, recorder, scorer, concurrency=AT_ONCE, on_episode=ignore, on_failure=ignore))
    with Loopback(by_seed(recorder.replies)) as server:
        run_ours(workload, server.base_url, folder / "recorded")
        return recorder.replies, server.requests


@contextmanager
def endpoint(replies: Mapping[str, Any], folder: Path) -> Generator[str]:
    """The loopback server in a process of its own; gives its base URL."""
    file = folder / "replies.json"
    file.write_text(json.dumps(replies), encoding="utf-8")
    command = [sys.executable, "-m", "tests.loopback", "--latency-ms", str(LATENCY_MS), "--replies", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("base_url="):
            raise RuntimeError(f"the loopback server did not start; it said {line!r}")
        yield line.partition("=")[2].strip()
    finally:
        process.terminate()
        process.wait()


def run_ours(workload: Workload, base_url: str, buffer: Path) -> int:
    """The whole collection into a new buffer; the number of its episodes."""
    outcome = collect(workload.config(base_url, buffer), quiet=True).outcome
    if outcome.run != outcome.planned or outcome.infra_missing:
        raise AssertionError(f"{outcome}; expected every planned episode to be run now, and none to fail")
    return outcome.run


def run_peer(base_url: str, bodies: Sequence[Mapping[str, Any]]) -> None:
    """The same calls by the SDK alone."""

    async def loop() -> None:
        # As ours: no proxy of the environment can reach loopback. Its pool holds 100 connections, more than needed.
        http = openai.DefaultAsyncHttpxClient(trust_env=False)
        async with openai.AsyncOpenAI(base_url=base_url, api_key=LOOPBACK_KEY, http_client=http) as client:
            queue = iter(bodies)

            async def worker() -> None:
                for body in queue:
                    await client.chat.completions.create(**body)

            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(worker())

    asyncio.run(loop())


async def _calls_so_far(base_url: str) -> int:
    async with openai.DefaultAsyncHttpxClient(trust_env=False) as client:
        return int((await client.get(base_url.removesuffix("/v1") + "/stats")).json()["calls"])


def rates(workload: Workload, folder: Path) -> tuple[list[float], list[float], int, int]:
    """Calls per second of ours and of the peer, one of each a round; calls and episodes of a run."""
    replies, bodies = record(workload, folder)
    numbers, episodes = count(), 0
    seconds: dict[str, list[float]] = {"ours": [], "peer": []}
    with endpoint(replies, folder) as base_url:
        for repeat in range(REPEATS + 1):  # the first round warms up and does not count
            for side in ("ours", "peer") if repeat % 2 else ("peer", "ours"):
                before = asyncio.run(_calls_so_far(base_url))
                began = perf_counter()
                if side == "ours":
                    episodes = run_ours(workload, base_url, folder / f"buffer{next(numbers)}")
                else:
                    run_peer(base_url, bodies)
                seconds[side].append(perf_counter() - began)
                made = asyncio.run(_calls_so_far(base_url)) - before
                if made != len(bodies):
                    raise AssertionError(f"{side} made {made} calls; expected {len(bodies)}, as recorded")
    ours, peer = ([len(bodies) / second for second in seconds[side][1:]] for side in ("ours", "peer"))
    return ours, peer, len(bodies), episodes


def measure(workloads: Sequence[Workload] = WORKLOADS) -> Report:
    """Calls per second of both sides, for each workload."""
    lines: list[Line] = []
    sizes: list[str] = []
    for workload in workloads:
        with tempfile.TemporaryDirectory() as folder:
            ours, peer, calls, episodes = rates(workload, Path(folder))
        lines.append(Line(workload.setting, "calls/s", median(ours), median(peer), workload.goal, more_is_better=True))
        sizes.append(f"{workload.setting} {episodes} episodes, {calls} calls")
    return Report(
        title="collection",
        peer="a bare AsyncOpenAI loop",
        setup=f"{'; '.join(sizes)}; loopback server with {LATENCY_MS} ms latency, {AT_ONCE} at once; "
        f"median of {REPEATS}",
        lines=tuple(lines),
    )


if __name__ == "__main__":
    print(text(measure()))
