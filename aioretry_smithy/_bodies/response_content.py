"""Make a response without a network; read a body, and leave it readable."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
import weakref
from collections import deque
from contextlib import suppress
from functools import partial
from http.client import responses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import TimerNoop
from multidict import CIMultiDict, CIMultiDictProxy

from .._call.outcome import arrived_of, connection_of, content_of, headers_of
from .._call.recorder import note_length, record_failure
from .._call.time_limits import IN_BODY, passed_limit
from .._context.recording import fail_body
from .._errors import bad_argument
from .._request.request import HttpRequest
from .._text.printable import BodyHead, is_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from .._call.call import Context
    from .._call.record import Record


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
        ValueError: An argument is not as described.
    """
    if not isinstance(request, HttpRequest):
        raise bad_argument("request", request, "an HttpRequest")
    if isinstance(status, bool) or not isinstance(status, int):
        raise bad_argument("status", status, "an integer")
    if not isinstance(body, bytes):
        raise bad_argument("body", body, "bytes")
    given = _checked_headers(headers)
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


def _checked_headers(
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None,
) -> CIMultiDict[str]:
    """Return the headers of a new response; refuse what can be none."""
    with suppress(TypeError, ValueError):
        given = CIMultiDict(headers or ())
        if all(isinstance(value, str) for value in given.values()):
            return given
    raise bad_argument("headers", headers, "a mapping of str, or pairs of str")


_PIECE = 2**16
"""The bytes that are read at a time."""


class TruncatedBody(aiohttp.StreamReader):
    """The body of a response, up to where it is cut off.

    A body that is no longer than that comes whole.
    """

    whole: aiohttp.StreamReader
    """The uncut body from the server."""

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
        """Wait for bytes when all that have arrived are read."""
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


_DRAIN_BYTES = 64 * 1024
_DRAIN_SECONDS = 0.1
_SWITCHING_PROTOCOLS = 101


class _ChunksRead(NamedTuple):
    """The chunks that were read from a stream, to be put back."""

    chunks: list[bytes]
    ends: list[int]
    """The ends of the HTTP chunks, as positions in the stream."""

    def head(self, limit: int) -> bytes:
        head = bytearray()
        for chunk in self.chunks:
            head += chunk[: limit - len(head)]
        return bytes(head)


async def read_head(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the first *limit* bytes of a body; the response stays readable."""
    read = _ChunksRead([], [])
    await _read_chunks(response, limit, read)
    return read.head(limit)


async def read_head_within(
    response: aiohttp.ClientResponse,
    limit: int,
    *,
    seconds: float,
    enough: Callable[[bytes], bool],
) -> bytes:
    """Return as many of the first *limit* bytes of a body as arrive in time.

    It stops early when the bytes so far are *enough*. The response stays readable. A
    body that fails is no error here: the caller gets the error on reading it.
    """
    read = _ChunksRead([], [])
    with suppress(Exception):
        async with asyncio.timeout(seconds):
            await _read_chunks(response, limit, read, enough)
    return read.head(limit)


async def buffer(response: aiohttp.ClientResponse) -> None:
    """Read a body whole, as ``read()`` does, and put it back into the stream too."""
    read = _ChunksRead([], [])
    had_body = getattr(response, "_body", None) is not None
    await _read_chunks(response, math.inf, read)
    if had_body or response.status == _SWITCHING_PROTOCOLS:
        return
    content = content_of(response)
    if isinstance(content, aiohttp.StreamReader):
        body = await response.read()
        # The same object in both, to hold the body once.
        _put_back(content, [body], read.ends)
        if type(response).read is aiohttp.ClientResponse.read:
            # The methods of aiohttp call read() where the response has no body yet.
            response._body = None
            given = weakref.ref(response), content, body
            vars(response)["read"] = partial(_read_at_last, *given)


def whole_body(response: aiohttp.ClientResponse) -> bytes | None:
    """Return a body that has come to its end and is in memory; None of any other."""
    body = getattr(response, "_body", None)
    content = content_of(response)
    if body is not None or not isinstance(content, aiohttp.StreamReader):
        return body
    if not hasattr(content, "_cursor"):
        return b""  # all empty bodies share one reader
    if content._cursor or content.exception() is not None or not content.is_eof():
        return None
    return b"".join(content._buffer)


async def _read_at_last(
    reference: weakref.ref[aiohttp.ClientResponse],
    content: aiohttp.StreamReader,
    body: bytes,
) -> bytes:
    """Return the unread rest of a body from memory, and end the stream.

    That is as without a chain.
    """
    response = reference()
    if response is None:
        return body
    vars(response).pop("read", None)
    if response.content is not content:
        # A decorator outside has put another stream in its place.
        return await response.read()
    taken = getattr(content, "_cursor", 0)
    response._body = body = body[taken:]
    with suppress(Exception):
        content.read_nowait()
    return body


def copy_head(response: aiohttp.ClientResponse, head: BodyHead) -> bool:
    """Copy the first bytes of a body as they arrive, without reading or waiting.

    Returns False if other code has begun to read the body.
    """
    if response.status == _SWITCHING_PROTOCOLS:
        return False
    body = getattr(response, "_body", None)
    if isinstance(body, bytes):
        head.add(body)
        return True
    content = content_of(response)
    # The one reader of all empty bodies has no such attributes.
    chunks = getattr(content, "_buffer", None)
    if not isinstance(content, aiohttp.StreamReader) or type(chunks) is not deque:
        return False
    if content._cursor:
        return False
    for chunk in chunks:
        head.add(chunk)
    if not (head.is_full or content.is_eof()):
        content._buffer = _CopyingChunks(chunks, head)
    return True


class _CopyingChunks(deque[bytes]):
    """Copies the chunks fed to a stream, up to a length."""

    __slots__ = ("_head",)

    def __init__(self, chunks: Iterable[bytes], head: BodyHead) -> None:
        super().__init__(chunks)
        self._head = head

    def append(self, chunk: bytes) -> None:
        super().append(chunk)
        if not self._head.is_full:
            self._head.add(chunk)


def record_body_failure(
    ctx: Context, response: aiohttp.ClientResponse, cause: BaseException
) -> None:
    """Record that reading a body failed with *cause*, and close the response.

    The log keeps the status, unless the body had ended before.
    """
    record = ctx.record
    note_length(record.outcome, arrived_of(response))
    fail_body(ctx.call, record.outcome, cause)
    # The outcome may be settled as an answer; now it is a failure.
    was_final, record.is_final = record.is_final, False
    record_failure(ctx, cause)
    record.is_final = was_final
    response.close()


async def _read_chunks(
    response: aiohttp.ClientResponse,
    limit: float,
    read: _ChunksRead,
    enough: Callable[[bytes], bool] | None = None,
) -> None:
    """Read *limit* bytes, to the end, or enough of them, and put them back."""
    if response.status == _SWITCHING_PROTOCOLS:
        return
    content: Any = content_of(response)
    body = getattr(response, "_body", None)
    if body is None and not isinstance(content, aiohttp.StreamReader):
        # A user's response class promises only that it can be read whole.
        body = await response.read()
    if body is not None:
        read.chunks.append(body)
        return
    size = next_look = 0
    try:
        while size < limit and not content.at_eof():
            chunk, is_end = await content.readchunk()
            size += len(chunk)
            read.chunks.append(chunk)
            if is_end:
                read.ends.append(content._cursor)
            if enough is not None and size >= next_look:
                # Each call joins all the chunks; so not one for every chunk.
                next_look = 2 * size
                if enough(b"".join(read.chunks)):
                    break
    finally:
        _put_back(content, *read)


def _put_back(
    content: aiohttp.StreamReader, chunks: list[bytes], ends: list[int]
) -> None:
    # Like unread_data(), but that warns, and forgets the ends of HTTP chunks.
    size = sum(map(len, chunks))
    if not size:
        return  # all empty bodies share one reader
    if content._buffer_offset:
        content._buffer[0] = content._buffer[0][content._buffer_offset :]
        content._buffer_offset = 0
    content._buffer.extendleft(chunk for chunk in reversed(chunks) if chunk)
    content._size += size
    content._cursor -= size
    splits = content._http_chunk_splits
    if splits is not None and ends:
        later = [split for split in splits if split > ends[-1]]
        content._http_chunk_splits = type(splits)([*ends, *later])


async def discard(
    response: aiohttp.ClientResponse, *, seconds: float = _DRAIN_SECONDS
) -> None:
    """Release a response; its connection is free, or closed, when this returns.

    A small rest of the body is read, to use the connection again. A rest that is large
    or slow is not worth a connection. It never takes more than 0.1 s.
    """
    try:
        is_at_end = connection_of(response) is None or response.content.at_eof()
        if is_at_end or await _drain(response, seconds):
            response.release()
    finally:
        response.close()  # does nothing after release()


async def keep(response: aiohttp.ClientResponse) -> None:
    """Free the connection of a response, and keep it as the possible outcome.

    A small body is read, and stays readable. One that is large or slow is not worth a
    connection: reading it will fail. It never takes more than 0.1 s.
    """
    try:
        if (getattr(response, "content_length", None) or 0) <= _DRAIN_BYTES:
            with suppress(aiohttp.ClientError, OSError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await _read_chunks(response, _DRAIN_BYTES, _ChunksRead([], []))
    finally:
        if connection_of(response) is not None:
            response.close()


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


def keep_preview(
    record: Record, response: aiohttp.ClientResponse, max_length: int
) -> None:
    """Record the first characters of a body in the log as they arrive."""
    content_type = headers_of(response).get("Content-Type", "")
    if is_text(content_type):
        head = BodyHead(content_type, max_length)
        if copy_head(response, head):
            record.outcome.preview = head


_T = TypeVar("_T")


async def read_within(
    ctx: Context,
    response: aiohttp.ClientResponse,
    look: Callable[[aiohttp.ClientResponse], Awaitable[_T]],
) -> _T:
    """Read what is wanted of a body within the time of its attempt or call."""
    try:
        try:
            # For bodies that are not from aiohttp, which has its own timer.
            async with asyncio.timeout_at(ctx.call.deadline_of(ctx.record)):
                return await look(response)
        except TimeoutError as cut:
            if (passed := passed_limit(ctx, cut, IN_BODY)) is None:
                raise
            raise passed() from cut
    except Exception as cause:
        record_body_failure(ctx, response, cause)
        raise


async def read_whole(ctx: Context, response: aiohttp.ClientResponse) -> None:
    """Read a whole body within the time of its attempt or call; it stays readable.

    The log gets the preview that is wanted, whatever comes of it.
    """
    record = ctx.record
    if record.preview_length is not None:
        keep_preview(record, response, record.preview_length)
    try:
        await read_within(ctx, response, buffer)
    except Exception:
        raise
    except BaseException as broken_off:
        record_body_failure(ctx, response, broken_off)
        raise


async def read_head_of(
    ctx: Context, response: aiohttp.ClientResponse, limit: int
) -> bytes:
    """Return the first *limit* bytes of a body, read in time; it stays readable."""
    return await read_within(ctx, response, partial(read_head, limit=limit))
