"""Truncate the body of a response."""

from __future__ import annotations

import asyncio
import sys
import weakref
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.client_proto import ResponseHandler

from .._call.response_facts import connection_of

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """The body as the server sends it."""

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
