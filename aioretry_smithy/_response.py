"""Responses: watched to their end, given up before a retry, or made here."""

from __future__ import annotations

import asyncio
import inspect
from http import HTTPStatus
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import TimerNoop
from multidict import CIMultiDict, CIMultiDictProxy

from ._errors import bad_argument
from ._frames import came_from_aiohttp, went_out
from ._safety import is_unprocessed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ._log import RequestLog
    from ._request import HttpRequest

_DRAIN_BYTES = 64 * 1024
_DRAIN_SECONDS = 0.1
_SWITCHING_PROTOCOLS = 101
# aiohttp 3.14 asks for the writer of the request line too.
HAS_STREAM_WRITER = (
    "stream_writer" in inspect.signature(aiohttp.ClientResponse.__init__).parameters
)
# And it closes what a function for ``raise_for_status`` has refused.
CLOSES_REFUSED = HAS_STREAM_WRITER


def record_response(log: RequestLog, response: aiohttp.ClientResponse | None) -> None:
    """Record a response in a log, and the end of its body when it comes.

    The stream is not wrapped: aiohttp gives the connection back at the end of the body,
    after a failure and after an early exit alike, and tells whoever asks.
    """
    if response is None:
        message = "response: None (expected: what the delegate returned)"
        raise TypeError(message)
    # Each joint on the way comes here, so this is as direct as can be.
    if log._outcome.headers is response.headers or log._is_settled:
        return
    connection = response.connection
    content = response.content
    if connection is None or response.status == _SWITCHING_PROTOCOLS:
        # A response class of somebody's own need not have a stream.
        log._record_response(response, getattr(content, "total_bytes", 0))
        return
    log._record_response(response)
    outcome = log._outcome

    def end_body() -> None:
        # A decorator that asked twice may end the first answer after the second.
        if log._outcome is outcome:
            log._end_body(content.total_bytes, _body_failure(content))

    connection.add_callback(end_body)


def record_failed_send(log: RequestLog, cause: BaseException) -> None:
    """Record what sending a request failed with, and whether it had gone out."""
    if came_from_aiohttp(cause):
        log._sent = log._sent or went_out(cause)
    else:
        log._sent = log._sent or not is_unprocessed(cause)
    log._record_failure(cause)


def _body_failure(content: aiohttp.StreamReader) -> BaseException | None:
    if content.is_eof():
        return None
    try:
        content._timer.assert_timeout()
    except TimeoutError as timeout:
        return timeout.with_traceback(None)
    cause = content.exception()
    # This very class is what a release or a close before the end leaves behind.
    return None if type(cause) is aiohttp.ClientConnectionError else cause


async def discard(
    response: aiohttp.ClientResponse, *, seconds: float = _DRAIN_SECONDS
) -> None:
    """Give a response up; its connection is free, or closed, when this returns.

    A small rest of the body is read, so that the connection can be used again; a rest
    that is large or slow to come is not worth a connection.

    Args:
        response: The response.
        seconds: The longest that this may take; it never takes more than 0.1 s.
    """
    try:
        if _holds_no_more(response) or await _drain(response, seconds):
            response.release()
    finally:
        # After release() this does nothing; in every other case it hangs up.
        response.close()


def _holds_no_more(response: aiohttp.ClientResponse) -> bool:
    return response.connection is None or response.content.at_eof()


async def _drain(response: aiohttp.ClientResponse, seconds: float) -> bool:
    content = response.content
    if response.status == _SWITCHING_PROTOCOLS or _declares_too_much(response):
        return False
    limit = content.total_bytes + _DRAIN_BYTES
    try:
        async with asyncio.timeout(min(_DRAIN_SECONDS, seconds)):
            while not content.at_eof() and content.total_bytes <= limit:
                await content.readany()
    except (aiohttp.ClientError, OSError):
        return False
    return content.at_eof()


def _declares_too_much(response: aiohttp.ClientResponse) -> bool:
    length = response.content_length
    return length is not None and length > _DRAIN_BYTES


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
        ValueError: *status* is no integer, or *body* no bytes.
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
    response.reason = _reason(status)
    response.version = aiohttp.HttpVersion11
    response._headers = CIMultiDictProxy(given)
    response._raw_headers = tuple(
        (name.encode(), value.encode("utf-8", "surrogateescape"))
        for name, value in given.items()
    )
    response._raw_cookie_headers = tuple(given.getall("Set-Cookie", ())) or None
    response.content = _content(body, loop)
    return response


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _content(body: bytes, loop: asyncio.AbstractEventLoop) -> aiohttp.StreamReader:
    protocol = ResponseHandler(loop)
    # A limit that the body stays below: there is no transport to pause.
    content = aiohttp.StreamReader(protocol, limit=len(body) + 1, loop=loop)
    content.feed_data(body)
    content.feed_eof()
    return content
