"""Let requests wait for their turn at several rates at once, first come, first served.

A request enters all its lines in one step, without a wait in between, so the one that
came first is the first in all of its lines, and no two wait for each other.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from heapq import heappop
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

from .._clock import NEAR, loop_time
from .._policies.queues import TimedWaits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import aiohttp

    from .._failures.hints import RaisedAnswer
    from .rate_limit import Bucket, Charge, RateLimit
    from .resets import Resets

    Reply: TypeAlias = aiohttp.ClientResponse | RaisedAnswer
    """The answer of a server, as a response or as an exception raised for it."""
    Costs: TypeAlias = Sequence[tuple["Line", float]]
    """The cost of a request in each of its queues, above 0."""
    Rule: TypeAlias = Bucket | Resets
    """Says when a request may go out, and counts those that did."""


class RatePermit:
    """The permit of a request at a rate limit: it learns how the request ended."""

    __slots__ = ()

    def learn(self, answer: Reply) -> None:
        """Learn from an answer."""

    def lose(self) -> None:
        """Settle the permit of a request without an answer."""

    def give_back(self) -> None:
        """Take the permit back, for the requests in line behind its request."""

    @property
    def charges(self) -> Iterable[tuple[RateLimit, Charge]]:
        """Pairs of charges that may be corrected, and limits."""
        return ()


_numbers: Final = count()


class Line(TimedWaits):
    """The queue of the requests that wait for a rate limit.

    Args:
        rule: Says when the first of them may go out.
    """

    __slots__ = ("_ahead", "_waiting", "rule")

    rule: Rule

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule
        rule.wake = self.hurry
        self._waiting: OrderedDict[int, Waiter] = OrderedDict()
        # What those that wait cost.
        self._ahead = 0.0

    def __len__(self) -> int:
        first = self.first
        return 0 if first is None or first.is_lost else len(self._waiting)

    @property
    def first(self) -> Waiter | None:
        """The request at the head of the queue."""
        return next(iter(self._waiting.values()), None)

    def try_take(self, now: float) -> RatePermit | None:
        """Return a permit for a request of cost 1, if its turn is now."""
        return None if self._waiting else self.rule.try_take(now)

    def forecast(self, now: float, cost: float) -> float:
        """Return a time before which a request that comes now surely has no turn.

        It may be later: the requests ahead may wait for another limit too.
        """
        return self.rule.forecast(now, cost, self._ahead)

    def turn(self, now: float, cost: float) -> float:
        """Return when the first waiting request, of that cost, goes out."""
        turn = self.rule.turn(now, cost)
        if turn > now + NEAR:
            return turn
        return self.rule.next_turn(now, len(self._waiting), self._patience(now))

    def is_free(self, now: float, cost: float) -> bool:
        """Say whether a request that comes now need not wait."""
        return not self._waiting and self.rule.turn(now, cost) <= now + NEAR

    def join(self, waiter: Waiter, cost: float, until: float) -> None:
        """Add a request, which gives up at a time."""
        self._waiting[waiter.number] = waiter
        self._ahead += cost
        self.end_at(waiter.number, until)

    def remove(self, waiter: Waiter, cost: float) -> None:
        """Remove a request from the queue, if still waiting."""
        if self._waiting.pop(waiter.number, None) is None:
            return
        self._ahead -= cost
        if not self._waiting:
            self._ahead = 0.0
            self.forget_ends()

    def forget_lost(self) -> None:
        """Drop the requests of closed event loops."""
        first = self.first
        if first is not None and first.is_lost:
            for waiter in [*self._waiting.values()]:
                if waiter.is_lost:
                    waiter.leave()
            serve([self])

    def hurry(self) -> None:
        """Admit waiting requests that are due earlier than the rule has said."""
        self.forget_lost()
        serve([self])

    def _patience(self, now: float) -> float:
        """Return the seconds until the first waiting request times out."""
        ends = self._ends
        while ends and ends[0][1] not in self._waiting:
            heappop(ends)
        return ends[0][0] - now if ends else math.inf

    def end(self, number: int) -> None:
        """Let a request leave all its lines without a turn."""
        waiter = self._waiting.get(number)
        if waiter is not None:
            # Its turn may come at this very moment, and look later by rounding alone.
            serve([line for line, _ in waiter.costs])
            waiter.leave_early()
            if not waiter.turns.done():
                waiter.turns.set_result(None)


class Waiter:
    """A request in the queues of its rate limits.

    Args:
        costs: The lines, and what it costs in each.
        until: When it gives up, by the event loop's clock.
    """

    __slots__ = ("_timer", "costs", "number", "turns")

    turns: asyncio.Future[list[RatePermit] | None]
    """The tokens taken from each limit; None after the timeout."""

    def __init__(self, costs: Costs, until: float) -> None:
        self.costs = costs
        self.number = next(_numbers)
        self.turns = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None
        for line, cost in costs:
            line.join(self, cost, until)

    @property
    def is_lost(self) -> bool:
        """Whether the event loop of the line was closed: nobody waits any more."""
        return self.turns.get_loop().is_closed()

    def try_go(self) -> bool:
        """Admit the request if due, and at the head of all of its queues."""
        if any(line.first is not self for line, _ in self.costs):
            return False
        loop = asyncio.get_running_loop()
        now = loop.time()
        turn = max(line.turn(now, cost) for line, cost in self.costs)
        if turn > now + NEAR:
            self._stop_timer()
            self._timer = loop.call_at(turn, self._be_served)
            return False
        self.leave()
        # One that is cancelled has not left yet.
        if not self.turns.done():
            self.turns.set_result(take(self.costs, now))
        return True

    def leave_early(self) -> None:
        """Leave without a turn, and let go out the requests held up behind."""
        self.leave()
        self._be_served()

    def leave(self) -> None:
        """Leave all lines."""
        self._stop_timer()
        for line, cost in self.costs:
            line.remove(self, cost)

    def _be_served(self) -> None:
        serve([line for line, _ in self.costs])

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


def serve(lines: list[Line]) -> None:
    """Admit the due requests of the given queues, and of queues joined to them."""
    while lines:
        waiter = lines.pop().first
        if waiter is not None and waiter.try_go():
            lines += [line for line, _ in waiter.costs]


def take(costs: Costs, now: float) -> list[RatePermit]:
    """Take the turns of a request."""
    return [line.rule.take(now, cost) for line, cost in costs]


def take_now(costs: Costs) -> list[RatePermit] | None:
    """Return the turns of a request that need not wait; None where it has to."""
    now = loop_time()
    for line, _ in costs:
        line.forget_lost()
    is_free = all(line.is_free(now, cost) for line, cost in costs)
    return take(costs, now) if is_free else None


async def wait_in(costs: Costs, until: float) -> list[RatePermit] | None:
    """Wait for a turn in all the lines; return None where none comes in time."""
    waiter = Waiter(costs, until)
    waiter.try_go()
    try:
        return await waiter.turns
    except BaseException:
        waiter.leave_early()
        if waiter.turns.done() and not waiter.turns.cancelled():
            for turn in waiter.turns.result() or ():
                turn.give_back()
        raise
