"""Wait for what no event tells."""

from __future__ import annotations

import asyncio


async def until(condition):
    """Ask again and again whether something is so, for at most twenty seconds."""
    async with asyncio.timeout(20.0):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
