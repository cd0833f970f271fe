"""A server on this machine."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """Answer every request at a URL on 127.0.0.1, for as long as the block lasts."""
    application = web.Application()
    application.router.add_get("/{path:.*}", _answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def _answer(request: web.Request) -> web.Response:
    return web.Response(text="Here you are.\n")
