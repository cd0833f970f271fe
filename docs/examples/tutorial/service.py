"""Serve the tutorial on loopback, with the failures that it asks for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from aiohttp import web


@asynccontextmanager
async def service(*answers: int | Literal["silence"]) -> AsyncIterator[str]:
    """Serve until the block ends and yield the URL.

    Each request gets the next of *answers*, a status or "silence"; the last repeats.
    """
    pending = list(answers)

    async def handle(request: web.Request) -> web.Response:
        answer = pending.pop(0) if len(pending) > 1 else pending[0]
        if answer == "silence":
            await asyncio.sleep(60)
            answer = 504
        return web.json_response({"orders": [1, 2]}, status=answer)

    app = web.Application()
    app.router.add_route("*", "/{anything:.*}", handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
