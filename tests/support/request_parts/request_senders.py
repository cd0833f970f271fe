"""Ways to send a request and to read its answer, each of which tells what came."""

from __future__ import annotations

import asyncio
import re
from typing import Any, NamedTuple

import aiohttp

BOUNDARY = re.compile("[0-9a-f]{32}")


class Call(NamedTuple):
    """A request that is to be sent by a session."""

    session: aiohttp.ClientSession
    method: Any
    url: Any
    options: dict[str, Any]

    def __call__(self) -> Any:
        return self.session.request(self.method, self.url, **self.options)


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


async def by_verb(call: Call) -> Any:
    """Call ``session.get()`` and its like."""
    send = getattr(call.session, call.method.lower())
    async with send(call.url, **call.options) as response:
        return await read(response)


async def entered(call: Call) -> Any:
    """Read in a block, as nearly all do."""
    async with call() as response:
        return await read(response)


async def awaited(call: Call) -> Any:
    """Do without ``async with``."""
    return await read(await call())


async def twice(call: Call) -> Any:
    """Send the very same arguments two times."""
    return [await awaited(call) for _ in range(2)]


async def side_by_side(call: Call) -> Any:
    """Wait for the same connection three times at once."""
    return await asyncio.gather(*(awaited(call) for _ in range(3)))


async def unread(call: Call) -> Any:
    """Leave the body where it is."""
    async with call() as response:
        return told(response)


async def streamed(call: Call) -> Any:
    """Read the body in pieces."""
    async with call() as response:
        return b"".join([piece async for piece in response.content.iter_chunked(1000)])


async def as_json(call: Call) -> Any:
    """Decode the body, as JSON and as text."""
    async with call() as response:
        return await response.text(), await response.json()


async def as_text(call: Call) -> Any:
    """Decode the body."""
    async with call() as response:
        return await response.text()


async def refused_afterwards(call: Call) -> Any:
    """Ask for an exception when the response is there."""
    async with call() as response:
        response.raise_for_status()


async def read_from_error(call: Call) -> Any:
    """Read the response that an exception carries."""
    try:
        await call()
    except RefusedError as refusal:
        return await read(refusal.response)


async def tracked(call: Call) -> Any:
    """Look at the tracker of an upload."""
    tracker = call.options["upload_tracker"]
    answer = await awaited(call)
    return answer, tracker.bytes_written, tracker.upload_complete.done()


async def ws(call: Call) -> Any:
    """Open a websocket and read it to its end."""
    options = {"method": call.method, **call.options}
    async with call.session.ws_connect(call.url, **options) as socket:
        first, second = await socket.receive(), await socket.receive()
        return first, second.type, socket.close_code, socket.protocol


async def to_closed(call: Call) -> Any:
    """Use a session that is closed."""
    await call.session.close()
    await call()


async def without_url(call: Call) -> Any:
    """Forget an argument."""
    await call.session.request(call.method, **call.options)


class RefusedError(Exception):
    """Carries a response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        super().__init__(f"refused {response.status}")
        self.response = response
