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
    """The limit that was found last."""

    _learns: bool
    """Whether it does anything with samples."""

    _changes_alone: bool
    """Whether the limit may change without a sample."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make the state that a subclass need not know of."""
        self = super().__new__(cls)
        self._in_flight = 0
        self._seen = None
        self._learns = self._changes_alone = True
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

    def _sample(self, now: float, place: Place, dropped: bool) -> None:
        """Learn from a request, and let others in if the limit has risen."""
        try:
            self.on_sample(now - place.begun, place.in_flight, dropped)
            self._look()
        except Exception:
            _logger.warning("%r raised, which is ignored", self, exc_info=True)

    def _try_enter(self, now: float) -> Place | None:
        """Take a place, if one is free and no other request waits."""
        limit = self._seen
        if limit is None or self._changes_alone:
            limit = self._look()
        if self._line.turns or self._in_flight >= limit:
            return None
        self._in_flight += 1
        return Place(self, now)

    async def _wait(self, until: float) -> Place | None:
        """Wait for a place; None where there is none in time."""
        return await self._line.wait(until, Place.leave)

    def _enter(self) -> Place:
        self._in_flight += 1
        return Place(self, loop_time())

    def _look(self) -> int:
        """Return the limit, and let waiting requests in while there is room."""
        limit = self.limit
        before, self._seen = self._seen, limit
        if self._line.turns:
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
        begun: The time of the event loop.
    """

    __slots__ = ("begun", "in_flight", "places")

    places: Places | None
    """Where it is one of several; None once it is left."""

    begun: float
    """When the place was taken."""

    in_flight: int
    """How many requests were in flight then, this one among them."""

    def __init__(self, places: Places, begun: float) -> None:
        self.places = places
        self.begun = begun
        self.in_flight = places._in_flight

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it leaves."""
        places = self.places
        if places is not None and places._learns:
            places._sample(loop_time(), self, dropped)

    def leave(self) -> None:
        """Give up the place, to the next request that waits; once."""
        places = self.places
        if places is None:
            return
        self.places = None
        places._in_flight -= 1
        if not (places._line.turns or places._changes_alone):
            return
        try:
            places._look()
        except Exception:
            _logger.warning("%r raised, which is ignored", places, exc_info=True)
