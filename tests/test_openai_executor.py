"""The `openai` executor against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.executors.failures import TABLE, Failure, Raises, classify
from harness_mdp.executors.openai import LOOPBACK_KEY, OpenAIExecutor, Pace, draw_seed
from harness_mdp.executors.protocol import (
    AgentFault,
    Completion,
    DrawKey,
    ExecutorStopped,
    InfraFault,
    Message,
    Purpose,
    Request,
    Sampling,
)
from harness_mdp.executors.reply import Price
from harness_mdp.mdp import EventError
from tests.loopback import Answer, Loopback, completion, failure, in_turn

SECRET = "sk-verysecret-0123456789"
MESSAGES = (Message("system", "Be short."), Message("user", "What is 2 + 2?"))


@pytest.fixture(autouse=True)
def _no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def request(rollout: int = 0, occurrence: int = 0, messages: tuple[Message, ...] = MESSAGES) -> Request:
    return Request(messages, Purpose.DRAFT, "task-1", "hash-1", DrawKey(7, rollout, occurrence))


def run(server: Loopback, work: Callable[[OpenAIExecutor], Awaitable[Any]], **options: Any) -> Any:
    """Runs `work` with an executor for `server`."""

    async def body() -> Any:
        options.setdefault("base_url", server.base_url)
        executor = OpenAIExecutor(options.pop("model", "m"), **options)
        try:
            return await work(executor)
        finally:
            await executor.close()

    return asyncio.run(body())


def complete(server: Loopback, **options: Any) -> Completion:
    return run(server, lambda executor: executor.complete(request()), **options)


def fault(answer: Answer, **options: Any) -> BaseException:
    """What one call raises where the server gives `answer`."""
    options.setdefault("max_retries", 0)
    with Loopback(answer) as server, pytest.raises((AgentFault, InfraFault, ExecutorStopped)) as caught:
        complete(server, **options)
    return caught.value


def test_a_completion_carries_text_usage_cost_and_finish_reason() -> None:
    with Loopback(completion("4", finish_reason="length")) as server:
        got = complete(server, prices={"m": Price(prompt=2.0, completion=10.0)})
        body = server.requests[0]
    assert (got.text, got.finish_reason, got.model) == ("4", "length", "loopback-model")
    assert (got.prompt_tokens, got.completion_tokens) == (11, 7)
    assert got.cost_usd == pytest.approx((11 * 2.0 + 7 * 10.0) / 1e6)
    assert got.seconds > 0
    assert body == {
        "model": "m",
        "temperature": 0.7,
        "top_p": 1.0,
        "max_tokens": 512,
        "messages": [{"role": m.role, "content": m.content} for m in MESSAGES],
        "seed": draw_seed(request()),
    }


def test_an_unknown_price_is_none_and_never_zero() -> None:
    with Loopback(completion()) as server:
        assert complete(server, prices={"other": Price(1, 1)}).cost_usd is None


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0, "completion_tokens": None}, "many"])
def test_tokens_are_estimated_where_the_server_does_not_count(usage: Any) -> None:
    with Loopback(completion("12345", usage=usage)) as server:
        got = complete(server)
    assert got.prompt_tokens == -(-sum(len(m.content) for m in MESSAGES) // 4)
    assert got.completion_tokens == 2


@pytest.mark.parametrize(
    "answer",
    [
        completion(None),
        completion(""),
        completion(None, refusal="I cannot help with that."),
        completion(None, finish_reason="content_filter", usage=None),
        completion(None, finish_reason="tool_calls"),
    ],
)
def test_a_reply_without_text_is_an_empty_completion_that_still_counts(answer: Answer) -> None:
    with Loopback(answer) as server:
        got = complete(server)
    assert got.text == ""
    assert got.prompt_tokens > 0
    assert got.finish_reason == answer.body["choices"][0]["finish_reason"]


def test_text_in_parts_is_joined_and_unpaired_surrogates_are_replaced() -> None:
    parts = [{"type": "text", "text": "a\ud800"}, {"type": "image"}, {"type": "text", "text": "é😀"}]
    with Loopback(completion(None)) as server:
        server.behaviour = lambda *_: completion(parts)  # type: ignore[arg-type]
        assert complete(server).text == "a\ufffdé😀"


def test_the_seed_depends_on_the_draw_and_the_content_and_can_be_left_out() -> None:
    other = (MESSAGES[0], Message("user", "What is 3 + 3?"))
    asked = [request(), request(rollout=1), request(occurrence=1), request(messages=other)]
    seeds = [draw_seed(one) for one in asked]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seeds[0] == draw_seed(request())
    with Loopback() as server:
        complete(server, send_seed=False)
        assert "seed" not in server.requests[0]


def test_the_token_limit_can_go_by_its_other_name_and_further_fields_are_sent() -> None:
    with Loopback() as server:
        complete(server, token_limit_field="max_completion_tokens", extra={"reasoning_effort": "low"})
        body = server.requests[0]
    assert body["max_completion_tokens"] == 512
    assert "max_tokens" not in body
    assert body["reasoning_effort"] == "low"


def test_the_fingerprint_is_of_model_sampling_and_label_only() -> None:
    def mark(model: str = "m", **options: Any) -> str:
        return OpenAIExecutor(model, **{"base_url": "http://127.0.0.1:1/v1", **options}).fingerprint

    same = {
        mark(),
        mark(base_url="http://localhost:2/v1", api_key=SECRET),
        mark(concurrency=3, send_seed=False, prices={"m": Price(1, 2)}),
    }
    different = {
        mark(),
        mark("n"),
        mark(label="june"),
        mark(sampling=Sampling(temperature=0.1)),
        mark(sampling=Sampling(max_tokens=9)),
        mark(extra={"top_k": 1}),
    }
    assert len(same) == 1
    assert len(different) == 6


def test_it_tries_again_after_rate_limits_and_server_errors() -> None:
    answers = in_turn(failure(429), failure(503), failure(408), completion("done"))
    with Loopback(answers) as server:
        assert complete(server, max_retries=3).text == "done"
        assert server.calls == 4


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (failure(429, "slow down"), "rate limit"),
        (failure(500), "server error"),
        (failure(529, "overloaded"), "server error"),
        (Answer(raw=b"<html>Bad Gateway</html>", status=502), "server error"),
        (failure(408), "time-out"),
        (Answer(drop=True), "connection"),
        (replace(completion("half of this"), cut=True), "connection"),
        (Answer(raw=b"not json"), "malformed"),
        (Answer(raw=b""), "malformed"),
        (Answer(raw=b"\xff\xfe\x00"), "malformed"),
        (Answer(raw=b"[" * 100_000), "malformed"),
        (Answer([]), "malformed"),
        (Answer({}), "malformed"),
        (Answer({"choices": []}), "malformed"),
        (Answer({"choices": [{"message": "text"}]}), "malformed"),
        (Answer({"choices": [{"message": {"content": 4}}]}), "malformed"),
        (Answer({"error": {"message": "upstream is gone"}}), "upstream is gone"),
    ],
)
def test_failures_outside_the_agent_give_no_return(answer: Answer, named: str) -> None:
    raised = fault(answer)
    assert isinstance(raised, InfraFault)
    assert named in str(raised)


def test_a_server_that_is_not_there_is_a_fault_outside_the_agent() -> None:
    with Loopback() as server:
        url = server.base_url
    with pytest.raises(InfraFault, match=r"connection: .*127\.0\.0\.1"):
        complete(server, base_url=url, max_retries=0)


def test_the_endpoints_time_out_gives_no_return() -> None:
    raised = fault(Answer(seconds=30), timeout=0.05)
    assert isinstance(raised, InfraFault)
    assert "endpoint time-out" in str(raised)


def test_the_agents_own_time_out_is_a_valid_outcome() -> None:
    raised = fault(Answer(seconds=30), step_timeout=0.05)
    assert isinstance(raised, AgentFault)
    assert raised.error is EventError.TIMEOUT


def test_the_agent_is_not_blamed_for_time_that_a_failing_endpoint_took() -> None:
    with Loopback(in_turn(failure(503), Answer(seconds=30))) as server, pytest.raises(InfraFault):
        complete(server, step_timeout=0.3, max_retries=1)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (failure(400, "too long", code="context_length_exceeded"), EventError.CONTEXT),
        (failure(400, "This model's maximum context length is 4096 tokens."), EventError.CONTEXT),
        (failure(500, "Requested tokens (5000) exceed context window of 4096"), EventError.CONTEXT),
        (failure(413, "payload too large"), EventError.CONTEXT),
        (failure(400, "filtered", code="content_filter"), EventError.REFUSED),
        (failure(403, "Your input was flagged"), EventError.REFUSED),
    ],
)
def test_the_agents_own_faults_are_a_valid_outcome(answer: Answer, error: EventError) -> None:
    raised = fault(answer)
    assert isinstance(raised, AgentFault)
    assert raised.error is error


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_stops_the_run_at_once(status: int) -> None:
    async def work(executor: OpenAIExecutor) -> list[Any]:
        first = await asyncio.gather(executor.complete(request()), return_exceptions=True)
        later = await asyncio.gather(*(executor.complete(request(n)) for n in range(9)), return_exceptions=True)
        return [*first, *later]

    with Loopback(failure(status, "Incorrect API key provided")) as server:
        raised = run(server, work, api_key=SECRET, max_retries=5)
        assert server.calls == 1
    assert all(isinstance(one, ExecutorStopped) for one in raised)
    assert "OPENAI_API_KEY" in str(raised[0])


def test_an_unknown_model_stops_with_the_names_that_are_offered() -> None:
    for status in (404, 400):
        answer = failure(status, "The model `m` does not exist", code="model_not_found")
        named = pytest.raises(ExecutorStopped, match=r"'m'.*'right-model', 'other'.*executor\.model")
        with Loopback(answer, models=("right-model", "other")) as server, named:
            complete(server)


def test_a_wrong_path_stops_with_a_word_about_the_address() -> None:
    with Loopback() as server, pytest.raises(ExecutorStopped, match=r"executor\.base_url"):
        complete(server, base_url=server.base_url.replace("/v1", "/v2"))


def test_no_quota_stops_the_run() -> None:
    assert isinstance(fault(failure(429, "pay", code="insufficient_quota")), ExecutorStopped)
    assert isinstance(fault(failure(402, "pay")), ExecutorStopped)


def test_another_4xx_stops_at_first_and_later_fails_its_own_request_only() -> None:
    bad = failure(400, "Unsupported value: 'temperature'")
    raised = fault(bad)
    assert isinstance(raised, ExecutorStopped)
    assert "temperature" in str(raised)
    assert "send_seed" in str(raised)

    async def work(executor: OpenAIExecutor) -> None:
        await executor.complete(request())
        with pytest.raises(InfraFault, match="temperature"):
            await executor.complete(request(1))
        assert (await executor.complete(request(2))).text == "fine"

    with Loopback(in_turn(completion("ok"), bad, completion("fine"))) as server:
        run(server, work)


def test_every_failure_has_one_row_and_the_row_is_consistent() -> None:
    assert set(TABLE) == set(Failure)
    for rule in TABLE.values():
        assert rule.grade == rule.valid_return == (rule.raises is Raises.AGENT)
        assert (rule.error is EventError.NONE) == (rule.raises is not Raises.AGENT)
        assert not (rule.retry and rule.raises is not Raises.INFRA)
    assert classify(ZeroDivisionError(), answered=True) is Failure.CRASH
    assert classify(AgentFault(EventError.CONTEXT, ""), answered=True) is Failure.CONTEXT


def test_calls_in_flight_stay_within_the_concurrency() -> None:
    async def work(executor: OpenAIExecutor) -> None:
        await asyncio.gather(*(executor.complete(request(n)) for n in range(40)))

    with Loopback(latency=0.01) as server:
        run(server, work, concurrency=5)
        assert server.calls == 40
        assert server.peak == 5


def test_the_pace_spreads_calls_over_the_minute() -> None:
    pace = Pace(30)
    assert [pace.reserve(100.0) for _ in range(3)] == [0.0, 2.0, 4.0]
    assert pace.reserve(105.0) == 1.0
    assert pace.reserve(500.0) == 0.0


def test_a_paced_executor_still_answers_every_call() -> None:
    async def work(executor: OpenAIExecutor) -> list[Completion]:
        return list(await asyncio.gather(*(executor.complete(request(n)) for n in range(5))))

    with Loopback() as server:
        assert len(run(server, work, requests_per_minute=6000)) == 5


def test_a_missing_key_names_the_variable_and_loopback_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        OpenAIExecutor("m")
    with pytest.raises(ConfigError, match="MY_KEY"):
        OpenAIExecutor("m", base_url="https://example.invalid/v1", api_key_env="MY_KEY")
    with Loopback() as server:
        complete(server)
        monkeypatch.setenv("MY_KEY", SECRET)
        complete(server, api_key_env="MY_KEY")
        assert [headers["authorization"] for headers in server.headers] == [
            f"Bearer {LOOPBACK_KEY}",
            f"Bearer {SECRET}",
        ]


def test_a_proxy_in_the_environment_is_not_used_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with Loopback() as server:
        assert complete(server, max_retries=0).text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"model": ""}, "executor.model"),
        ({"concurrency": 0}, "concurrency"),
        ({"token_limit_field": "tokens"}, "executor.token_limit_field"),
        ({"requests_per_minute": 0}, "executor.requests_per_minute"),
        ({"timeout": 0}, "executor.timeout"),
        ({"max_retries": -1}, "executor.max_retries"),
        ({"timeout": 5, "step_timeout": 5}, "executor.step_timeout"),
        ({"base_url": "127.0.0.1:8000"}, "executor.base_url"),
    ],
)
def test_arguments_that_cannot_work_are_named(options: dict[str, Any], named: str) -> None:
    arguments = {"model": "m", "base_url": "http://127.0.0.1:1/v1", **options}
    with pytest.raises(ConfigError, match=named):
        OpenAIExecutor(**arguments)


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_the_key_shows_nowhere(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Not even where a server sends it back, or an answer is cut in the middle of it."""
    caplog.set_level(logging.DEBUG)
    password = "pass%2Fword"
    echoed = f"{'x' * 385} key {SECRET}, http://me:{password}@host pass/word Bearer {SECRET}"
    answer = Answer({"error": {"message": echoed}}, status, {"retry-after-ms": "1"})
    shown: list[str] = []

    async def work(executor: OpenAIExecutor) -> None:
        shown.append(repr(executor) + executor.fingerprint)
        with pytest.raises((InfraFault, ExecutorStopped)) as caught:
            await executor.complete(request())
        shown.append("".join(traceback.format_exception(caught.value)))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None

    with Loopback(answer) as server:
        server.models = (SECRET,)
        url = server.base_url
        run(server, work, api_key=SECRET, max_retries=1)
        run(server, work, base_url=url.replace("//", f"//me:{password}@"), api_key=SECRET, max_retries=0)
        assert server.headers[-1]["authorization"].startswith("Basic ")
    assert len(shown) == 4
    for text in (*shown, caplog.text):
        assert SECRET not in text
        assert SECRET[:10] not in text
        assert password not in text
        assert "pass/word" not in text


def test_importing_the_failure_table_does_not_load_the_sdk() -> None:
    code = "import sys, harness_mdp.executors.failures; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False).returncode == 0
