"""The one stream that the caller reads, whatever comes of its parts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.client_proto import ResponseHandler

if TYPE_CHECKING:
    from .download import Download
    from .part import Piece


class _NoConnection(ResponseHandler):
    """Pauses nothing, for a stream without a connection of its own."""

    def pause_reading(self) -> None:
        pass

    def resume_reading(self, resume_parser: bool = True) -> None:
        pass


class ResumedBody(aiohttp.StreamReader):
    """The body of a response that is continued where it breaks.

    It takes a piece of a part when somebody reads, so that aiohttp reads no faster than
    the caller does.

    Args:
        download: Has the pieces.
        first: The body of the first part.
        in_chunks: Whether that comes in HTTP chunks, whose ends are to be seen.
    """

    def __init__(
        self, download: Download, first: aiohttp.StreamReader, *, in_chunks: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        limit, _ = first.get_read_buffer_limits()
        super().__init__(_NoConnection(loop), limit, loop=loop)
        self._download = download
        self._is_waiting = False
        if in_chunks:
            self.begin_http_chunk_receiving()

    def __del__(self) -> None:
        """Give up what nobody can read any more."""
        self._download.give_up()

    async def _wait(self, func_name: str) -> None:
        """Wait for bytes when all that were here are read."""
        if self._is_waiting:
            raise RuntimeError(
                f"{func_name}() called while another coroutine is already waiting for"
                " incoming data"
            )
        self._is_waiting = True
        try:
            self._feed(await self._download.next_piece())
        except Exception as cause:
            if self._exception is None:
                self.set_exception(cause)
            raise
        finally:
            self._is_waiting = False

    def set_exception(self, exc: BaseException, *exc_cause: BaseException) -> None:
        """Fail: the caller has closed the response, or the download cannot go on."""
        super().set_exception(exc, *exc_cause)
        self._download.give_up()

    def read_nowait(self, n: int = -1) -> bytes:
        """Return what has arrived, without a wait."""
        while self._exception is None and not self._eof and not self._is_waiting:
            piece = self._download.piece_at_hand()
            if piece is None:
                break
            self._feed(piece)
        return super().read_nowait(n)

    async def wait_eof(self) -> None:
        """Wait for the end, but take no more of the body than fits into the buffer."""
        while not (self._eof or self._is_waiting or self._size > self._high_water):
            await self._wait("wait_eof")
        await super().wait_eof()

    def _feed(self, piece: Piece | None) -> None:
        if piece is not None:
            self.feed_data(piece.data)
            if piece.ends_chunk and self._http_chunk_splits is not None:
                self.end_http_chunk_receiving()
        if self._download.is_whole and not self._eof:
            self.feed_eof()
