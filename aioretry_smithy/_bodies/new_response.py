"""Make a response that never touched the network, or truncate the body of one."""

from __future__ import annotations

import asyncio
import inspect
import sys
import weakref
from http.client import responses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import TimerNoop
from multidict import CIMultiDict, CIMultiDictProxy

from .._call.outcome import connection_of
from .._errors import bad_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .._request.request import HttpRequest


# aiohttp 3.14 asks for the writer of the request line too.
HAS_STREAM_WRITER = (
    "stream_writer" in inspect.signature(aiohttp.ClientResponse.__init__).parameters
)
# It also closes a response that a function for ``raise_for_status`` has refused.
CLOSES_REFUSED = HAS_STREAM_WRITER


def new_response(
    request: HttpRequest,
    status: int = 200,
    *,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    body: bytes = b"",
) -> aiohttp.ClientResponse:
    """Make a real response that never touched the network.

    For fallbacks, caches and tests. ``read()``, ``text()``, ``json()`` and the stream
    work as for any response. Needs a running event loop.

    Args:
        request: The request that it answers.
        status: The status code.
        headers: The headers; nothing is added to them.
        body: The body, decoded.

    Returns:
        A response whose body has arrived whole and that holds no connection.

    Raises:
        ValueError: *status* is not an integer, or *body* is not bytes.
    """
    if isinstance(status, bool) or not isinstance(status, int):
        raise bad_argument("status", status, "an integer")
    if not isinstance(body, bytes):
        raise bad_argument("body", body, "bytes")
    loop = asyncio.get_running_loop()
    url = request.full_url()
    if url.user is not None or url.password is not None:
        url = url.with_user(None)
    sent: CIMultiDict[str] = request.merged_headers(None)
    arguments: dict[str, Any] = {
        "writer": None,
        "continue100": None,
        "timer": TimerNoop(),
        "request_info": aiohttp.RequestInfo(
            url, request.method, CIMultiDictProxy(sent), url
        ),
        "traces": [],
        "loop": loop,
        "session": None,
    }
    if HAS_STREAM_WRITER:
        arguments["stream_writer"] = SimpleNamespace(output_size=len(body))
    response = aiohttp.ClientResponse(request.method, url, **arguments)
    given = CIMultiDict(headers or ())
    response.status = status
    response.reason = responses.get(status, "")
    response.version = aiohttp.HttpVersion11
    response._headers = CIMultiDictProxy(given)
    response._raw_headers = tuple(
        (name.encode(), value.encode("utf-8", "surrogateescape"))
        for name, value in given.items()
    )
    response._raw_cookie_headers = tuple(given.getall("Set-Cookie", ())) or None
    # Above the size of the body: there is no transport to pause.
    limit = len(body) + 1
    content = aiohttp.StreamReader(ResponseHandler(loop), limit=limit, loop=loop)
    content.feed_data(body)
    content.feed_eof()
    response.content = content
    return response


_PIECE = 2**16
"""The bytes that are read at a time."""


class TruncatedBody(aiohttp.StreamReader):
    """The body of a response, up to where it is cut off.

    A body that is no longer than that comes whole.

    Args:
        response: The response.
        after: How many bytes come.
        record: Called with the failure as soon as it is certain.
    """

    whole: aiohttp.StreamReader
    """The uncut body, as the server sends it."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        after: int,
        record: Callable[[BaseException], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        # There is no transport to pause.
        super().__init__(ResponseHandler(loop), limit=sys.maxsize // 2, loop=loop)
        self.whole = response.content
        self._connection = connection_of(response)
        self._after = after
        self._record = record
        self._failure = aiohttp.ClientPayloadError(
            f"Response payload is not completed: cut off after {after} bytes"
        )
        reference = weakref.ref(self)

        def look() -> None:
            # This has the whole, which must not have this.
            body = reference()
            if body is not None:
                body._look_at_end()

        self.whole.on_eof(look)

    def _look_at_end(self) -> None:
        # The log has just noted that the body came whole.
        if self.whole.total_bytes > self._after:
            self._record(self._failure)

    async def _wait(self, func_name: str) -> None:
        """Wait for bytes when all that were here are read."""
        left = self._after - self.total_bytes
        piece = await self.whole.read(min(max(left, 1), _PIECE))
        if not piece:
            self.feed_eof()
        elif left > 0:
            self.feed_data(piece)
        else:
            await self._truncate()

    async def _truncate(self) -> None:
        self.whole.set_exception(self._failure)
        # Before its end is noticed, which is looked at once.
        self._record(self._failure)
        if self._connection is not None:
            self._connection.close()
        # It raises, and with its frames RequestLog.of() finds the log.
        await self.whole.read(1)
