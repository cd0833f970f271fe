"""Downloads that break, and sessions that continue them."""

from __future__ import annotations

import aiohttp
import pytest
from chains import connected

from aioretry_smithy import RequestLog

TIMES = {
    "ETag": None,
    "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
    "Date": "Sun, 06 Nov 1994 08:50:37 GMT",
}


async def download(url, *decorators, read=None, options=None, **settings):
    """Read a body whole; return it with the log of its call."""
    async with connected(None, *decorators, **settings) as session:
        async with session.get(url, **(options or {})) as response:
            body = await (response.read() if read is None else read(response))
        return body, RequestLog.of(response)


async def failure(url, *decorators, **settings):
    """Read as much of a body as comes; return that, the failure and the log."""
    got = bytearray()
    async with connected(None, *decorators, **settings) as session:
        async with session.get(url) as response:
            with pytest.raises((aiohttp.ClientError, TimeoutError)) as error:
                await gather(response, got)
        return bytes(got), error.value, RequestLog.of(response)


async def gather(response, got):
    async for piece in response.content.iter_any():
        got += piece


async def text(response):
    return (await response.text()).encode()
