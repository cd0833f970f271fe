"""Count the requests in flight, and make others wait for a place."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Any, Self

from .._clock import loop_time
from .line import Line

_logger = logging.getLogger("aioretry_smithy")


class Places(ABC):
    """Counts requests in flight and waiting ones, under a limit that may change."""

    _line: Line[Place]
    _in_flight: int
    _seen: int | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make the state that a subclass need not know of."""
        self = super().__new__(cls)
        self._in_flight = 0
        self._seen = None
        self._line = Line()
        return self

    @property
    @abstractmethod
    def limit(self) -> int:
        """How many requests may be in flight at once."""

    @property
    def in_flight(self) -> int:
        """How many requests are in flight."""
        return self._in_flight

    @property
    def pending(self) -> int:
        """How many requests wait for a place."""
        return len(self._line)

    @abstractmethod
    def on_sample(self, round_trip: float, in_flight: int, dropped: bool) -> None:
        """Learn from a request that was answered or dropped."""

    def _try_enter(self) -> Place | None:
        """Take a place, if one is free and no other request waits."""
        limit = self._look()
        if self._line or self._in_flight >= limit:
            return None
        return self._enter()

    async def _wait(self, until: float) -> Place | None:
        """Wait for a place; None where there is none in time."""
        return await self._line.wait(until, Place.leave)

    def _enter(self) -> Place:
        self._in_flight += 1
        return Place(self, self._in_flight)

    def _look(self) -> int:
        """Return the limit, and let waiting requests in while there is room."""
        limit, before = self.limit, self._seen
        self._seen = limit
        while self._in_flight < limit and self._line.serve(self._enter):
            pass
        if limit != before:
            self._note_change()
        return limit

    @abstractmethod
    def _note_change(self) -> None:
        """Notify listeners that the limit has changed, or of the first."""


class Place:
    """The place of a request in flight.

    Args:
        places: Where it is one of several.
        in_flight: The requests in flight, this one among them.
    """

    __slots__ = ("_begun", "_in_flight", "_is_left", "_places")

    def __init__(self, places: Places, in_flight: int) -> None:
        self._places = places
        self._in_flight = in_flight
        self._is_left = False
        self._begun = loop_time()

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it leaves."""
        places = self._places
        try:
            places.on_sample(loop_time() - self._begun, self._in_flight, dropped)
            places._look()
        except Exception:
            _logger.warning("%r raised, which is ignored", places, exc_info=True)

    def leave(self) -> None:
        """Give up the place, to the next request that waits; once."""
        if self._is_left:
            return
        self._is_left, places = True, self._places
        places._in_flight -= 1
        try:
            places._look()
        except Exception:
            _logger.warning("%r raised, which is ignored", places, exc_info=True)
