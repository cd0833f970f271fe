"""A server on this machine that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Self, TypeAlias

from aiohttp import web

if TYPE_CHECKING:
    from types import TracebackType

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.Response]]

SILENCE = 1.0
"""Seconds without a word; more than a client should wait."""


class MisbehavingServer:
    """An HTTP server on a free port of 127.0.0.1, for as long as its block lasts.

    Each path misbehaves in its own way for its first requests, and then answers.
    """

    def __init__(self) -> None:
        application = web.Application()
        for path, misbehaviours in _MISBEHAVIOURS.items():
            application.router.add_get(path, _in_turn(misbehaviours))
        self._runner = web.AppRunner(application, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """The URL that the server listens at."""
        host, port = self._runner.addresses[0]
        return f"http://{host}:{port}"


def _in_turn(misbehaviours: Iterable[_Handler]) -> _Handler:
    left = iter(misbehaviours)

    async def handler(request: web.Request) -> web.Response:
        return await next(left, _answer)(request)

    return handler


async def _answer(request: web.Request) -> web.Response:
    return web.Response(text="Here you are.\n")


async def _be_unavailable(request: web.Request) -> web.Response:
    return web.Response(status=503)


async def _be_silent(request: web.Request) -> web.Response:
    await asyncio.sleep(SILENCE)
    return await _answer(request)


async def _reset(request: web.Request) -> web.Response:
    # With no time to linger, closing is a reset and no polite goodbye.
    no_time = struct.pack("ii", 1, 0)
    connection = request.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_time)
    request.protocol.force_close()
    return await _answer(request)


async def _throttle(request: web.Request) -> web.Response:
    return web.Response(status=429, headers={"Retry-After": "1"})


_MISBEHAVIOURS = {
    "/busy": [_be_unavailable] * 2,
    "/silent": [_be_silent],
    "/reset": [_reset],
    "/throttled": [_throttle],
    "/outage": [_be_unavailable] * 3,
}
