"""Connections to one endpoint, one for each call in flight, without the pool's bookkeeping.

httpx's pool looks at every connection twice a call and probes each idle one's socket. With 64 connections, half of
them idle because their episodes are busy with tools, that costs more than the rest of the call (docs/performance.md).
Here each connection is a pool of its own, and the one used last is used next, so a call touches one connection.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable

import httpx2

__all__ = ["ConnectionStack"]


class ConnectionStack(httpx2.AsyncBaseTransport):
    """A transport for callers that bound by themselves how many calls are in flight.

    A connection goes back on the stack when its answer is closed or its call fails; one that expired or was hung up
    meanwhile is replaced by its pool at the next use.

    Args:
        verify: shared by all connections, since a context takes long to make.
    """

    def __init__(self, verify: ssl.SSLContext) -> None:
        self._verify = verify
        self._all: list[httpx2.AsyncHTTPTransport] = []
        self._free: list[httpx2.AsyncHTTPTransport] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` on a free connection, or on a new one."""
        connection = self._free.pop() if self._free else self._connect()
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            self._free.append(connection)
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Borrowed(response.stream, lambda: self._free.append(connection))
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in self._all:
            await connection.aclose()

    def _connect(self) -> httpx2.AsyncHTTPTransport:
        only = httpx2.Limits(max_connections=1, max_keepalive_connections=1)
        connection = httpx2.AsyncHTTPTransport(verify=self._verify, limits=only)
        self._all.append(connection)
        return connection


class _Borrowed(httpx2.AsyncByteStream):
    """The body of an answer; gives its connection back once, when it is closed."""

    def __init__(self, body: httpx2.AsyncByteStream, give_back: Callable[[], None]) -> None:
        self._body = body
        self._give_back: Callable[[], None] | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._body:
            yield chunk

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            if self._give_back is not None:
                self._give_back()
                self._give_back = None
