"""Take a part of a body, piece by piece, and tell when its connection ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import aiohttp
from aiohttp.connector import Connection

from .._bodies.new_response import TruncatedBody
from .._context.recording import use_call_deadline_for_body

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from aiohttp.client_proto import ResponseHandler

    from .._call.call import Call
    from .._call.outcome import Outcome


class DownloadConnection(Connection):
    """A proxy for the connection of a download's current part.

    Callbacks are added to it by those who hold a place, or count a request, to the end
    of the stream: of aiohttp's response there may be nothing left by then.

    Args:
        first: The connection of the first part.
        let_go: Called when the response lets go of it.
    """

    current: Connection
    """The connection of the part that is under way, or was the last."""

    def __init__(self, first: Connection, let_go: Callable[[], None]) -> None:
        # It has nothing itself that could be left open: no protocol.
        self._protocol = None
        self._callbacks = []
        self.current = first
        self._let_go: Callable[[], None] | None = let_go

    def __getattr__(self, name: str) -> object:
        # What aiohttp has beside this is that of the present connection.
        return getattr(self.current, name)

    @property
    def protocol(self) -> ResponseHandler | None:
        """The protocol of the present connection."""
        return self.current.protocol

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport of the present connection."""
        return self.current.transport

    @property
    def closed(self) -> bool:
        """Whether the present connection is closed."""
        return self.current.closed

    def close(self) -> None:
        """Close the present connection: the caller has closed the response."""
        self.current.close()
        self.release()

    def release(self) -> None:
        """Release the download, because the response was released or collected."""
        if self._let_go is not None:
            self._let_go()

    def end(self) -> None:
        """Release the current connection at the end of the download."""
        if self._let_go is not None:
            self._let_go = None
            self.current.release()
            self._notify_release()


class Piece(NamedTuple):
    """Some bytes of a body."""

    data: bytes

    ends_chunk: bool = False
    """Whether an HTTP chunk ends with them."""


class Part:
    """The body of one answer, a part of the whole.

    Args:
        response: The answer.
        began_at: The position of its first byte.
        end: The position after its last byte; None of the first part, of which aiohttp
            knows where it ends.
    """

    __slots__ = (
        "_headers",
        "_in_chunks",
        "_response",
        "_sent",
        "began_at",
        "content",
        "end",
    )

    began_at: int
    """The position of its first byte in the whole."""

    end: int | None
    """The position after its last byte; None of the first part."""

    content: aiohttp.StreamReader
    """The stream of the part, possibly cut by an injected fault."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        began_at: int = 0,
        end: int | None = None,
    ) -> None:
        self._headers = response.headers
        # The first one is the caller's, who may drop it.
        self._response = None if end is None else response
        self.began_at = began_at
        self.end = end
        self.content = content = response.content
        self._in_chunks = is_chunked(response)
        # As the server sends it.
        self._sent = content.whole if isinstance(content, TruncatedBody) else content

    @property
    def is_cut(self) -> bool:
        """Whether a fault ends it before all that has arrived."""
        return self._sent is not self.content

    @property
    def has_arrived(self) -> bool:
        """Whether the part was received whole, read or not."""
        return self._sent.is_eof()

    @property
    def received(self) -> int:
        """The number of bytes received so far."""
        return self._sent.total_bytes

    @property
    def is_at_end(self) -> bool:
        """Whether all of it was taken."""
        return self.content.at_eof() and not self.content._http_chunk_splits

    def use_call_deadline(self, call: Call, response: aiohttp.ClientResponse) -> None:
        """Let the call's deadline, not the attempt's, limit the reading of the body."""
        use_call_deadline_for_body(call, response, self._sent)

    def at_end(self, before: Callable[[], None], then: Callable[[], None]) -> None:
        """Call a function when all has arrived, in place of another one."""
        callbacks = self._sent._eof_callbacks
        callbacks[:] = [then if each == before else each for each in callbacks]

    def outcome_in(self, call: Call) -> Outcome | None:
        """Return the recorded outcome of the part's request."""
        outcomes = (each.outcome for each in reversed(call.sent))
        return next((each for each in outcomes if each.headers is self._headers), None)

    async def next_piece(self) -> Piece | None:
        """Return the next piece, waiting for it if necessary; None at the end.

        What has arrived before a failure comes before that.

        Raises:
            Exception: The body has failed.
        """
        content = self.content
        here = None if content.exception() is None else self.piece_at_hand()
        if here is not None:
            return here
        if not self._in_chunks:
            data = await content.readany()
            return Piece(data) if data else None
        piece = Piece(*await content.readchunk())
        return piece if piece.data or piece.ends_chunk else None

    def piece_at_hand(self) -> Piece | None:
        """Return bytes that have arrived, also before a failure; None for none.

        aiohttp refuses what it has in its buffer once the body has failed.
        """
        content = self.content
        start, ends = content._cursor, content._http_chunk_splits
        if ends:
            end = ends[0]
            del ends[0]
            data = content._read_nowait(end - start) if end > start else b""
            return Piece(data, ends_chunk=True)
        return Piece(content._read_nowait(-1)) if content._buffer else None

    def close(self, connection: DownloadConnection | None) -> None:
        """Close its connection: before another one is asked for, a pool may be full.

        That of the first part is under the *connection* of the download; its response
        stays open, since that is the one that the caller has.
        """
        sent = self._sent
        if sent.exception() is None and not sent.is_eof():
            # A reader may be waiting.
            sent.set_exception(aiohttp.ClientConnectionError("Connection closed"))
        if self._response is not None:
            self._response.close()
        elif connection is not None:
            connection.current.close()


def is_chunked(response: aiohttp.ClientResponse) -> bool:
    """Say whether a body comes in HTTP chunks."""
    return "chunked" in response.headers.get("Transfer-Encoding", "").lower()
