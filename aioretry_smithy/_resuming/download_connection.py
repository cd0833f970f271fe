"""Let those who wait for the end of a connection wait for the end of a download."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp.connector import Connection

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from aiohttp.client_proto import ResponseHandler


class DownloadConnection(Connection):
    """Stands for the connections of a download: of its first part, then of others.

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
        """Let go of it: the response has, or is not there any more."""
        if self._let_go is not None:
            self._let_go()

    def end(self) -> None:
        """End it with the download; the present connection is not closed for that."""
        if self._let_go is not None:
            self._let_go = None
            self.current.release()
            self._notify_release()
