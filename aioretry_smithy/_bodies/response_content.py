"""Bodies that are looked at, or read whole, and can still be read by the caller."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._body_text import BodyHead
    from .._log.request_log import RequestLog

_SWITCHING_PROTOCOLS = 101


class _Taken(NamedTuple):
    """The chunks that were read from a stream and put back again."""

    chunks: list[bytes]
    ends: list[int]
    """Where HTTP chunks ended, as the stream counts its bytes."""

    def head(self, limit: int) -> bytes:
        head = bytearray()
        for chunk in self.chunks:
            head += chunk[: limit - len(head)]
        return bytes(head)


async def peek(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the first *limit* bytes of a body; the response reads as before."""
    taken = _Taken([], [])
    await _look(response, limit, taken)
    return taken.head(limit)


async def glance(
    response: aiohttp.ClientResponse,
    limit: int,
    *,
    seconds: float,
    enough: Callable[[bytes], bool],
) -> bytes:
    """Return what arrives of the first *limit* bytes of a body in a short time.

    A body that fails is no error here: who reads it will meet the failure.

    Args:
        response: The response, which reads as before.
        limit: The most bytes to look at.
        seconds: The longest time to wait.
        enough: Says of what has arrived that no more is needed.
    """
    taken = _Taken([], [])
    with suppress(Exception):
        async with asyncio.timeout(seconds):
            await _look(response, limit, taken, enough)
    return taken.head(limit)


async def _look(
    response: aiohttp.ClientResponse,
    limit: int,
    taken: _Taken,
    enough: Callable[[bytes], bool] | None = None,
) -> None:
    if response.status == _SWITCHING_PROTOCOLS:
        return
    body = getattr(response, "_body", None)
    if body is None and not isinstance(response.content, aiohttp.StreamReader):
        # A response class of somebody's own: reading whole is all that it promises.
        body = await response.read()
    if body is None:
        await _take(response.content, limit, taken, enough)
    else:
        taken.chunks.append(body)


async def buffer(response: aiohttp.ClientResponse) -> None:
    """Read a body whole, as ``read()`` does, and leave it in the stream too."""
    if response.status == _SWITCHING_PROTOCOLS:
        return
    content = response.content
    if not isinstance(content, aiohttp.StreamReader):
        await response.read()
    elif response._body is None:
        taken = _Taken([], [])
        await _take(content, math.inf, taken)
        body = await response.read()
        # One object for both, so that the body is held once.
        _put_back(content, [body], taken.ends)


def tap(response: aiohttp.ClientResponse, head: BodyHead) -> bool:
    """Copy the first bytes of a body as they come; nothing waits, nothing is read.

    Returns:
        Whether it could be done: the body has not begun to be read.
    """
    if response.status == _SWITCHING_PROTOCOLS:
        return False
    body = getattr(response, "_body", None)
    if isinstance(body, bytes):
        head.add(body)
        return True
    content: object = response.content
    # The reader of empty bodies, one for all, has no such attributes.
    chunks = getattr(content, "_buffer", None)
    if not isinstance(content, aiohttp.StreamReader) or type(chunks) is not deque:
        return False
    if content._cursor:
        return False
    for chunk in chunks:
        head.add(chunk)
    if not (head.is_full or content.is_eof()):
        content._buffer = _TappedChunks(chunks, head)
    return True


class _TappedChunks(deque[bytes]):
    """Copies what a stream is fed, until that is enough."""

    __slots__ = ("_head",)

    def __init__(self, chunks: Iterable[bytes], head: BodyHead) -> None:
        super().__init__(chunks)
        self._head = head

    def append(self, chunk: bytes) -> None:
        super().append(chunk)
        if not self._head.is_full:
            self._head.add(chunk)


def fail(
    log: RequestLog, response: aiohttp.ClientResponse, cause: BaseException
) -> None:
    """Note that reading a body failed with *cause*, and hang up.

    The log keeps the status that came, unless the body had ended before.
    """
    length = getattr(response.content, "total_bytes", 0)
    log._end_body(length, cause)
    # What had been an answer is a failure after all.
    log._is_settled = False
    log._record_failure(cause)
    log._is_settled = True
    response.close()


async def _take(
    content: aiohttp.StreamReader,
    limit: float,
    taken: _Taken,
    enough: Callable[[bytes], bool] | None = None,
) -> None:
    """Wait for *limit* bytes, for the end or for enough; they stay in the stream."""
    size = next_look = 0
    try:
        while size < limit and not content.at_eof():
            chunk, is_end = await content.readchunk()
            size += len(chunk)
            taken.chunks.append(chunk)
            if is_end:
                taken.ends.append(content._cursor)
            if enough is not None and size >= next_look:
                # Each look costs what has arrived: not one for each drop of it.
                next_look = 2 * size
                if enough(b"".join(taken.chunks)):
                    break
    finally:
        _put_back(content, *taken)


def _put_back(
    content: aiohttp.StreamReader, chunks: list[bytes], ends: list[int]
) -> None:
    # What unread_data() does, but that warns, and forgets where HTTP chunks ended.
    size = sum(map(len, chunks))
    if not size:
        return  # the reader of empty bodies is one for all
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
