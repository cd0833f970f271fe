"""End waits whose time is up, in the order in which they are due."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from heapq import heappop, heappush


class TimedWaits(ABC):
    """Many waits, each of which ends at a time of its own.

    One timer serves all of them: timers that are due at the same time go off in any
    order. There is none while nobody waits.
    """

    __slots__ = ("_due", "_ends", "_timer")

    def __init__(self) -> None:
        # When each ends, by its number. A wait that is over stays in it until then.
        self._ends: list[tuple[float, int]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf

    @abstractmethod
    def end(self, number: int) -> None:
        """End a wait whose time is up, if it is not over yet."""

    def end_at(self, number: int, until: float) -> None:
        """Let a wait end then; ``inf`` is never. Later ones have higher numbers."""
        if until < math.inf:
            heappush(self._ends, (until, number))
            self._set_timer()

    def forget_ends(self) -> None:
        """Stop the timer, because nobody waits any more."""
        self._ends.clear()
        self._set_timer()

    def expire(self, due: float) -> None:
        """End the waits that are due."""
        while self._ends and self._ends[0][0] <= due:
            self.end(heappop(self._ends)[1])
        self._set_timer()

    def _set_timer(self) -> None:
        ends, timer = self._ends, self._timer
        due = ends[0][0] if ends else math.inf
        if due == self._due:
            return
        if timer is not None:
            timer.cancel()
        # uvloop's handle does not always know when it is due.
        self._timer, self._due = None, due
        if due < math.inf:
            loop = asyncio.get_running_loop()
            # Two turns of the loop later: a task that wakes at the same time may hand
            # something out, which is still in time.
            soon = loop.call_soon
            self._timer = loop.call_at(due, soon, soon, self.expire, due)
