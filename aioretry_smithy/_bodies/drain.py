"""Release a response, and keep its connection if that costs little."""

from __future__ import annotations

import asyncio

import aiohttp

_DRAIN_BYTES = 64 * 1024
_DRAIN_SECONDS = 0.1
_SWITCHING_PROTOCOLS = 101


async def discard(
    response: aiohttp.ClientResponse, *, seconds: float = _DRAIN_SECONDS
) -> None:
    """Release a response; its connection is free, or closed, when this returns.

    A small rest of the body is read, to use the connection again. A rest that is large
    or slow is not worth a connection. It never takes more than 0.1 s.
    """
    try:
        is_at_end = response.connection is None or response.content.at_eof()
        if is_at_end or await _drain(response, seconds):
            response.release()
    finally:
        response.close()  # does nothing after release()


async def _drain(response: aiohttp.ClientResponse, seconds: float) -> bool:
    content = response.content
    declared = response.content_length or 0
    if response.status == _SWITCHING_PROTOCOLS or declared > _DRAIN_BYTES:
        return False
    limit = content.total_bytes + _DRAIN_BYTES
    try:
        async with asyncio.timeout(min(_DRAIN_SECONDS, seconds)):
            while not content.at_eof() and content.total_bytes <= limit:
                await content.readany()
    except (aiohttp.ClientError, OSError):
        return False
    return content.at_eof()
