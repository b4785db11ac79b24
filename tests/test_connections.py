"""A call in flight has a connection of its own; connections are used again, and replaced when they are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx2
import pytest

from harness_mdp.executors.connections import ConnectionStack

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Counting:
    """Counts its connections. `/hang-up` is answered and closed, `/drop` only closed, `/wait` never answered."""

    def __init__(self) -> None:
        self.connections = 0
        self.waiting = asyncio.Event()
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
                if path == b"/wait":
                    self.waiting.set()
                    continue
                if path != b"/drop":
                    writer.write(ANSWER)
                    await writer.drain()
                if path in (b"/drop", b"/hang-up"):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            await writer.wait_closed()
            self.closed.set()


def with_client(work: Callable[[httpx2.AsyncClient, Counting], Awaitable[None]]) -> int:
    """Does `work` against a new server; how many connections were made."""

    async def run() -> int:
        counting = Counting()
        server = await asyncio.start_server(counting.serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        stack = ConnectionStack(httpx2.create_ssl_context())
        async with server, httpx2.AsyncClient(base_url=url, transport=stack, trust_env=False) as client:
            await work(client, counting)
        return counting.connections

    return asyncio.run(run())


async def get_ok(client: httpx2.AsyncClient, path: str = "/") -> None:
    assert (await client.get(path)).text == "ok"


def test_calls_one_after_the_other_share_a_connection() -> None:
    async def work(client: httpx2.AsyncClient, _: Counting) -> None:
        for _ in range(5):
            await get_ok(client)

    assert with_client(work) == 1


def test_as_many_connections_as_calls_were_ever_in_flight_at_once() -> None:
    async def work(client: httpx2.AsyncClient, _: Counting) -> None:
        for at_once in (2, 6, 3, 6):
            await asyncio.gather(*(get_ok(client) for _ in range(at_once)))

    assert with_client(work) == 6


def test_a_connection_that_was_hung_up_meanwhile_is_replaced_and_no_call_fails() -> None:
    async def work(client: httpx2.AsyncClient, counting: Counting) -> None:
        for _ in range(3):
            counting.closed.clear()
            await get_ok(client, "/hang-up")
            await counting.closed.wait()

    assert with_client(work) == 3


def test_a_call_that_failed_leaves_a_connection_that_can_be_used() -> None:
    async def work(client: httpx2.AsyncClient, _: Counting) -> None:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get("/drop")
        await get_ok(client)
        await get_ok(client)

    assert with_client(work) == 2


def test_a_call_that_was_cancelled_does_not_leave_its_answer_to_the_next_one() -> None:
    async def work(client: httpx2.AsyncClient, counting: Counting) -> None:
        call = asyncio.create_task(client.get("/wait"))
        await counting.waiting.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await get_ok(client)

    assert with_client(work) == 2
