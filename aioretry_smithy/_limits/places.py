"""Count the requests in flight of one event loop, and queue those that wait."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from .._clock import loop_time
from .._waiting.wait_queue import WaitQueue

if TYPE_CHECKING:
    import asyncio

_logger = logging.getLogger("aioretry_smithy")


class Places:
    """The places of a limit in one event loop: who is in flight, and who waits.

    Args:
        loop: The event loop; None before the first request.
    """

    __slots__ = ("in_flight", "loop", "queue")

    in_flight: int
    """How many requests are in flight."""

    queue: WaitQueue[Permit]
    """The requests that wait for a place."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.in_flight = 0
        self.queue = WaitQueue()

    @property
    def are_over(self) -> bool:
        """Whether the event loop is closed, so that nobody is in flight or waits."""
        return self.loop is not None and self.loop.is_closed()

    def in_loop(self, loop: asyncio.AbstractEventLoop) -> Places:
        """Return the places for an event loop: new ones where the last is closed."""
        if self.are_over:
            return Places(loop)
        if self.loop is None:
            self.loop = loop
        return self


class Limit(Protocol):
    """Gives permits, and learns from how the requests are answered."""

    _learns: bool
    _changes_alone: bool
    _places: Places

    def _sample(self, now: float, permit: Permit, dropped: bool) -> None: ...

    def _look(self) -> int: ...


class Permit:
    """The permit of a request in flight.

    Args:
        limit: Gave it.
        begun: The time of the event loop.
    """

    __slots__ = ("_places", "begun", "in_flight", "limit")

    limit: Limit | None
    """The limit that gave the permit; None once the permit is released."""

    begun: float
    """When it was given."""

    in_flight: int
    """The number of requests in flight at that time, this one among them."""

    def __init__(self, limit: Limit, begun: float) -> None:
        self.limit = limit
        self.begun = begun
        self._places = places = limit._places
        self.in_flight = places.in_flight

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it is released."""
        limit = self.limit
        if limit is not None and limit._learns:
            limit._sample(loop_time(), self, dropped)

    def release(self) -> None:
        """Give it back, for the next request that waits; once."""
        limit, places = self.limit, self._places
        if limit is None:
            return
        self.limit = None
        places.in_flight -= 1
        # Those of an event loop that was closed are nobody's any more.
        if places is not limit._places:
            return
        if not (places.queue.waiting or limit._changes_alone):
            return
        try:
            limit._look()
        except Exception:
            _logger.warning("%r raised, which is ignored", limit, exc_info=True)
