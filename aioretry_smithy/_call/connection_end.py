"""Notice the end of the connection that a response has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp.connector import Connection

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


def end_with(connection: Connection, end: Callable[[], None]) -> None:
    """Call *end* when a response lets its connection go, or when that is closed; once.

    aiohttp closes the connections of a session with it, and tells no response that is
    kept unread; neither does a server that hangs up.

    Args:
        connection: The connection of a response.
        end: What is called; it has no reference to the response.
    """
    # Other classes stand for several connections, of which one may end early.
    protocol = connection.protocol if type(connection) is Connection else None
    closed = None if protocol is None else protocol.closed
    if closed is None:
        connection.add_callback(end)
    else:
        connection.add_callback(_Watch(closed, end).let_go)
        # Once for all requests, lest asyncio says that nobody has looked.
        closed.remove_done_callback(_look_at)
        closed.add_done_callback(_look_at)


class _Watch:
    """Watches for the close of a connection, until a response lets it go.

    Args:
        closed: Is done when the connection is closed.
        end: What is called then.
    """

    __slots__ = ("_closed", "_end")

    def __init__(self, closed: asyncio.Future[None], end: Callable[[], None]) -> None:
        self._closed = closed
        self._end: Callable[[], None] | None = end
        closed.add_done_callback(self._hear)

    def let_go(self) -> None:
        """Call what is to be called, and watch no longer."""
        end, self._end = self._end, None
        if end is not None:
            # The next request on the connection is none of it.
            self._closed.remove_done_callback(self._hear)
            end()

    def _hear(self, closed: asyncio.Future[None]) -> None:
        self.let_go()


def _look_at(closed: asyncio.Future[None]) -> None:
    if not closed.cancelled():
        closed.exception()
