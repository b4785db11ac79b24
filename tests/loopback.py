"""A small OpenAI-compatible server on loopback, for tests and benchmarks.

In a test, `with Loopback(...) as server:` runs it in a thread: `server.base_url`, `server.requests` (bodies of
the chat calls, in order), `server.calls`, `server.peak` (most calls in flight at once). What it answers is a
function of (request body, how-many-th call from 0) -> `Answer`; the builders below make the usual ones.

For a benchmark, `python -m tests.loopback --latency-ms 50` runs it in a process of its own and prints its base
URL; `GET /stats` tells the counts.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: JSON or raw bytes, after a delay, perhaps cut off."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """Sent instead of `body` when given."""
    seconds: float | None = None
    """Delay; None is the server's latency."""
    cut: bool = False
    """Announce the whole length, send half of it and hang up."""
    drop: bool = False
    """Hang up without an answer."""


Behaviour = Callable[[Body, int], Answer]


def completion(text: str | None = "hello", **changes: Any) -> Answer:
    """A usual answer. `changes` replace fields of message, choice or reply, by name; None for usage leaves it out."""
    message = {"role": "assistant", "content": text}
    choice: Body = {"index": 0, "message": message, "finish_reason": "stop"}
    reply: Body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "loopback-model",
        "choices": [choice],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
    for name, value in changes.items():
        place = message if name == "refusal" else choice if name == "finish_reason" else reply
        place[name] = value
    if reply["usage"] is None:
        del reply["usage"]
    return Answer(reply)


def failure(status: int, message: str = "no", *, code: str | None = None, retry_after_ms: int = 1) -> Answer:
    """An error as OpenAI words it; the header keeps the SDK's retries from waiting long."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return Answer({"error": error}, status, {"retry-after-ms": str(retry_after_ms)})


def echo(body: Body, call: int) -> Answer:
    """The default: a text that depends on messages, seed and the number of the call, so a repeat is noticed."""
    asked = json.dumps([body["messages"], body.get("seed")], sort_keys=True).encode()
    return completion(f"call {call}: {hashlib.sha256(asked).hexdigest()[:16]}", model=body["model"])


def in_turn(*answers: Answer) -> Behaviour:
    """The answers one after the other; the last one for ever."""
    return lambda _, call: answers[min(call, len(answers) - 1)]


class Loopback:
    """The server; a context manager that runs it in a thread, or `serve` in a running loop."""

    def __init__(
        self,
        behaviour: Behaviour | Answer = echo,
        *,
        latency: float = 0.0,
        models: tuple[str, ...] = ("loopback-model",),
    ) -> None:
        self.behaviour: Behaviour = (lambda *_: behaviour) if isinstance(behaviour, Answer) else behaviour
        self.latency = latency
        self.models = models
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.calls = 0
        self.in_flight = 0
        self.peak = 0
        self.record = True
        self.base_url = ""

    async def serve(self, port: int = 0) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=1024)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        return server

    def __enter__(self) -> Loopback:
        self._loop = asyncio.new_event_loop()
        started = threading.Event()

        def run() -> None:
            asyncio.set_event_loop(self._loop)
            self._server = self._loop.run_until_complete(self.serve())
            started.set()
            self._loop.run_forever()
            self._loop.close()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        def stop() -> None:
            self._server.close()
            self._loop.stop()

        self._loop.call_soon_threadsafe(stop)
        self._thread.join()

    def respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        if method == "GET" and path == "/v1/models":
            return Answer({"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]})
        if method == "GET" and path == "/stats":
            return Answer({"calls": self.calls, "peak": self.peak}, seconds=0.0)
        if method != "POST" or path != "/v1/chat/completions":
            return failure(404, f"no route {method} {path}")
        asked = json.loads(body)
        call = self.calls
        self.calls += 1
        if self.record:
            self.requests.append(asked)
            self.headers.append(headers)
        return self.behaviour(asked, call)


class _Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, one request at a time; just what the SDK's client sends."""

    def __init__(self, server: Loopback) -> None:
        self._server = server
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        method, path, _ = lines[0].split(" ")
        server = self._server
        answer = server.respond(method, path, headers, rest[:length])
        server.in_flight += 1
        server.peak = max(server.peak, server.in_flight)
        delay = server.latency if answer.seconds is None else answer.seconds
        if delay:
            asyncio.get_running_loop().call_later(delay, self._send, answer)
        else:
            self._send(answer)

    def _send(self, answer: Answer) -> None:
        self._server.in_flight -= 1
        if self._transport.is_closing():
            return
        if answer.drop:
            self._transport.abort()
            return
        body = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body)), **answer.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        sent = body[: len(body) // 2] if answer.cut else body
        self._transport.write(f"HTTP/1.1 {answer.status} X\r\n{head}\r\n".encode("latin-1") + sent)
        if answer.cut:
            self._transport.close()


def by_seed(replies: Mapping[str, Body]) -> Behaviour:
    """Replies recorded before: seed of the request, as text -> `completion` arguments; a seed not among them fails."""
    answers = {int(seed): completion(**reply) for seed, reply in replies.items()}

    def answer(body: Body, _: int) -> Answer:
        return answers.get(body["seed"]) or failure(404, f"no reply was recorded for seed {body['seed']}")

    return answer


async def _main(port: int, latency: float, behaviour: Behaviour | Answer) -> None:
    server = Loopback(behaviour, latency=latency)
    server.record = False
    running = await server.serve(port)
    print(f"base_url={server.base_url}", flush=True)
    async with running:
        await running.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.loopback", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--text", help="answer every call with this text")
    given.add_argument("--replies", type=Path, help="JSON file: seed of the request -> arguments of `completion`")
    options = parser.parse_args()
    answering: Behaviour | Answer = echo
    if options.text is not None:
        answering = completion(options.text)
    elif options.replies is not None:
        answering = by_seed(json.loads(options.replies.read_text(encoding="utf-8")))
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(options.port, options.latency_ms / 1000, answering))
