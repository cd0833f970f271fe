"""What a server answers to other people's clients, and a body that they send once."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aiohttp import web


def unavailable(request: web.Request) -> web.Response:
    return web.Response(status=503)


def hang_up(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def throttled(request: web.Request) -> web.Response:
    return web.json_response({"ok": False}, status=429, headers={"Retry-After": "0"})


async def in_pieces() -> AsyncIterator[bytes]:
    yield b"a report"
