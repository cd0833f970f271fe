"""Ways to send a request and to read its answer, each of which tells what came."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import aiohttp

BOUNDARY = re.compile("[0-9a-f]{32}")


async def read(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Read a response whole, and tell all of it."""
    body = await response.read()
    return {**told(response), "body": body, "closed": response.closed}


def told(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Tell what a response is, without its body."""
    info = response.request_info
    asked = [
        (name, BOUNDARY.sub("boundary", value)) for name, value in info.headers.items()
    ]
    return {
        "class": type(response),
        "status": (response.status, response.reason, response.version),
        "headers": response.raw_headers,
        "cookies": response.cookies.output(),
        "method": response.method,
        "url": (response.url, response.real_url),
        "asked": (info.method, info.url, info.real_url, asked),
        "history": [(hop.status, hop.method, hop.url) for hop in response.history],
        "links": response.links,
        "charset": response.charset,
    }


async def by_verb(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Call ``session.get()`` and its like."""
    async with getattr(session, method.lower())(url, **options) as response:
        return await read(response)


async def awaited(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Do without ``async with``."""
    return await read(await session.request(method, url, **options))


async def twice(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Send the very same arguments two times."""
    return [await awaited(session, method, url, options) for _ in range(2)]


async def side_by_side(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Wait for the same connection three times at once."""
    calls = (awaited(session, method, url, options) for _ in range(3))
    return await asyncio.gather(*calls)


async def unread(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Leave the body where it is."""
    async with session.request(method, url, **options) as response:
        return told(response)


async def streamed(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Read the body in pieces."""
    async with session.request(method, url, **options) as response:
        return b"".join([piece async for piece in response.content.iter_chunked(1000)])


async def as_json(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Decode the body, as JSON and as text."""
    async with session.request(method, url, **options) as response:
        return await response.text(), await response.json()


async def as_text(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Decode the body."""
    async with session.request(method, url, **options) as response:
        return await response.text()


async def refused_afterwards(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Ask for an exception when the response is there."""
    async with session.request(method, url, **options) as response:
        response.raise_for_status()


async def read_from_error(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Read the response that an exception carries."""
    try:
        await session.request(method, url, **options)
    except RefusedError as refusal:
        return await read(refusal.response)


async def tracked(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Look at the tracker of an upload."""
    tracker = options["upload_tracker"]
    answer = await awaited(session, method, url, options)
    return answer, tracker.bytes_written, tracker.upload_complete.done()


async def ws(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Open a websocket and read it to its end."""
    async with session.ws_connect(url, method=method, **options) as socket:
        first, second = await socket.receive(), await socket.receive()
        return first, second.type, socket.close_code, socket.protocol


async def to_closed(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Use a session that is closed."""
    await session.close()
    await session.request(method, url, **options)


async def without_url(
    session: aiohttp.ClientSession, method: str, url: Any, options: dict[str, Any]
) -> Any:
    """Forget an argument."""
    await session.request(method, **options)


class RefusedError(Exception):
    """Carries a response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        super().__init__(f"refused {response.status}")
        self.response = response


async def refuse(response: aiohttp.ClientResponse) -> None:
    """Refuse every response."""
    raise RefusedError(response)
