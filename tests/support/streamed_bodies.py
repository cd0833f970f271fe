"""Bodies that can be read once, as users write them, and what came of an upload."""

from typing import NamedTuple

import aiohttp
from chains import connected
from fault_server import FaultServer

from aioretry_smithy import RequestLog, RetryStopReason, client_decorator

CHUNK = 1 << 16


async def pieces(content, size=CHUNK):
    """Yield a content piece by piece."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


class Progress:
    """Tells how much of a stream has gone; each ``aiter()`` makes another iterator."""

    def __init__(self, stream):
        self._stream = stream
        self.passed = 0

    async def __aiter__(self):
        async for piece in self._stream:
            self.passed += len(piece)
            yield piece


class Once:
    """May be iterated once, and says so."""

    def __init__(self, content):
        self._content = content
        self.asked = 0

    def __aiter__(self):
        self.asked += 1
        if self.asked > 1:
            message = "it was iterated before"
            raise RuntimeError(message)
        return self._pieces()

    async def _pieces(self):
        for piece in self._content:
            yield piece


def form(value):
    """Return a form that uploads it as a file."""
    data = aiohttp.FormData()
    data.add_field("file", value, filename="file")
    return data


def multipart(value):
    """Return a multipart body with it as the only part."""
    writer = aiohttp.MultipartWriter(boundary="x")
    writer.append(value)
    return writer


async def fetch_token():
    return "token"


@client_decorator
async def to_nobody_first(delegate, ctx, request):
    """Send the first attempt to a port where nobody listens."""
    if ctx.attempt == 1:
        request = request.replace(url="http://127.0.0.1:1/")
    return await delegate.execute(ctx, request)


class Upload(NamedTuple):
    """What came of a request with a body, and the bodies that arrived whole."""

    log: RequestLog
    bodies: list
    answer: tuple | None = None
    error: Exception | None = None

    @property
    def is_not_replayable(self):
        return self.log.stop_reason is RetryStopReason.BODY_NOT_REPLAYABLE


async def upload(faults, *decorators, method="PUT", is_warm=False, **options):
    """Send a body through a chain to a server that answers so, and then with 200.

    A connection that is warm was used for a request before.
    """
    async with (
        FaultServer(faults) as server,
        connected(server.url, *decorators) as session,
    ):
        if is_warm:
            await session.get("/")
        try:
            async with session.request(method, "/", **options) as response:
                answer = response.status, await response.text()
        except (aiohttp.ClientError, OSError) as error:
            return Upload(RequestLog.of(error), server.bodies, error=error)
        return Upload(RequestLog.of(response), server.bodies, answer)
