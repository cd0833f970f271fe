"""Queue calls, first come, first served."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class WaitQueue(Generic[T]):
    """A queue of calls of one event loop, served in order of arrival.

    One timer serves all of them: timers that are due at the same time go off in any
    order. There is none while nobody waits.
    """

    __slots__ = ("_due", "_ends", "_numbers", "_timer", "waiting")

    waiting: OrderedDict[int, asyncio.Future[T | None]]
    """The calls that wait, by their numbers."""

    def __init__(self) -> None:
        self._numbers = count()
        self.waiting = OrderedDict()
        # When each gives up; a call that has left stays in it until then.
        self._ends: list[tuple[float, int]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf

    def __len__(self) -> int:
        return len(self.waiting)

    async def wait(self, until: float, give_back: Callable[[T], None]) -> T | None:
        """Wait until :meth:`serve` hands something out.

        Args:
            until: When to give up, by the event loop's clock; ``inf`` for never.
            give_back: Takes back a thing handed to a call that is cancelled meanwhile.

        Returns:
            The thing handed out, or None where time ran out.
        """
        number, call = self.join(until)
        try:
            return await call
        except BaseException:
            self.leave(number)
            given = call.result() if call.done() and not call.cancelled() else None
            if given is not None:
                give_back(given)
            raise

    def join(self, until: float) -> tuple[int, asyncio.Future[T | None]]:
        """Add a call; return its number, and what will be as :meth:`wait` says."""
        call: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        number = next(self._numbers)
        self.waiting[number] = call
        if until < math.inf:
            heappush(self._ends, (until, number))
            self._set_timer()
        return number, call

    def leave(self, number: int) -> None:
        """Let a call leave, if it still waits."""
        self.waiting.pop(number, None)
        self._set_timer()

    def serve(self, make: Callable[[], T]) -> bool:
        """Make a thing for the first call that waits; return False if there is none."""
        while self.waiting:
            _, call = self.waiting.popitem(last=False)
            # A call that is cancelled has not left yet.
            if not call.done():
                call.set_result(make())
                self._set_timer()
                return True
        self._set_timer()
        return False

    def expire(self, due: float) -> None:
        """Let the calls give up that have waited long enough by then."""
        while self._ends and self._ends[0][0] <= due:
            call = self.waiting.pop(heappop(self._ends)[1], None)
            if call is not None and not call.done():
                call.set_result(None)
        self._set_timer()

    def _set_timer(self) -> None:
        """Set the timer to the moment when the next call gives up, if any waits."""
        if not self.waiting:
            self._ends.clear()
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
