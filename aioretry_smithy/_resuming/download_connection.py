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

    aiohttp ends it with the response, and calls the callbacks that are added to it: so
    a decorator outside holds a place, or counts a request, to the end of the stream.

    Args:
        first: The connection of the first part.
        ended: Called once, before the callbacks, when the download has ended.
    """

    current: Connection
    """The connection of the part that is under way, or was the last."""

    def __init__(self, first: Connection, ended: Callable[[], None]) -> None:
        # It has nothing itself that could be left open: no protocol.
        self._protocol = None
        self._callbacks = []
        self.current = first
        self._ended: Callable[[], None] | None = ended

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
        """End the download, and close the connection."""
        self.current.close()
        self._end()

    def release(self) -> None:
        """End the download; the connection may be used again, if the part is whole."""
        self.current.release()
        self._end()

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()
            self._notify_release()
