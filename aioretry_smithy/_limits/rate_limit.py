"""Limit the rate at which requests go out; they wait in line at several rates at once.

A request enters all its lines in one step, without a wait in between, so the one that
came first is the first in all of its lines, and no two wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from heapq import heappop
from itertools import count
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias

from .. import _checks as check
from .._clock import NEAR, loop_time
from .._errors import LimitedRequestError, bad_argument, is_finite
from .._failures.failure import judge
from .._policies.queues import TimedWaits
from .._text.printable import name_of
from .._values import Shared
from .rate_rules import Bucket, Charge, RatePermit, Resets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._log.request_log import RequestLog
    from .._request.request import HttpRequest

    Cost: TypeAlias = Callable[[ClientRequestContext, HttpRequest], float]
    Actual: TypeAlias = Callable[[RequestLog, bytes | None], float | None]
    Costs: TypeAlias = Sequence[tuple["Line", float]]
    """The cost of a request in each of its queues, above 0."""
    SharedTurn: TypeAlias = Callable[[float, float], Awaitable["Admission"]]
    """Takes the latest time for a turn, and a deadline before which it has to be."""


_logger = logging.getLogger("aioretry_smithy")

_numbers: Final = count()


class Line(TimedWaits):
    """The queue of the requests that wait for a rate limit.

    Args:
        rule: Says when the first of them may go out.
    """

    __slots__ = ("_ahead", "_waiting", "rule")

    rule: Bucket | Resets

    def __init__(self, rule: Bucket | Resets) -> None:
        super().__init__()
        self.rule = rule
        rule.wake = self.hurry
        self._waiting: OrderedDict[int, Waiter] = OrderedDict()
        # What those that wait cost.
        self._ahead = 0.0

    def __len__(self) -> int:
        first = self.first
        return 0 if first is None or first.is_lost else len(self._waiting)

    def __contains__(self, waiter: Waiter) -> bool:
        return waiter.number in self._waiting

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
        """Return when the first waiting request goes out, given its cost."""
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
        """Let a request leave this line."""
        del self._waiting[waiter.number]
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
        """Admit the request if due, and at the head of all of its queues.

        Return whether it has left them; that of a closed event loop does so, too.
        """
        if any(line.first is not self for line, _ in self.costs):
            return False
        if self.is_lost:
            self.leave()
            return True
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
        if self in self.costs[0][0]:
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


_CHARGES: Final = "_aioretry_smithy_charges"
"""The attribute of a response with the charges of limits, by id of the limit."""


def cost_of(
    cost: Cost | None, ctx: ClientRequestContext, request: HttpRequest
) -> float:
    """Return the cost of a request: 1 without a cost function.

    Raises:
        ValueError: It is no number that is finite and >= 0.
        Exception: The function has raised it; a mistake of the caller's, as is a bad
            number: no other attempt is made, and no circuit breaker counts it.
    """
    if cost is None:
        return 1.0
    try:
        figure = cost(ctx, request)
        check.not_negative("cost", figure)
    except Exception as error:
        judge(error).raised_by_caller = True
        raise
    return figure


def keep_charge(
    response: aiohttp.ClientResponse, limit: object, charge: object
) -> None:
    """Store a charge for :func:`charge_of`, while the response is alive."""
    # A response of a user's class may refuse to be written on.
    attributes = getattr(response, "__dict__", None)
    if attributes is not None:
        # What a decorator has kept, and returns again, has that of the last request.
        attributes.setdefault(_CHARGES, {})[id(limit)] = limit, charge


def charge_of(response: object, limit: object) -> object:
    """Return what a limit has charged for the attempt that brought a response."""
    kept = getattr(response, "__dict__", {}).get(_CHARGES, {})
    # A limit that is kept here has its id for itself.
    return kept.get(id(limit), (None, None))[1]


_MAX_WAIT = 60.0

_MOST_BURSTS = 10
"""The most that a request can have cost in the end, in times of the burst."""


class Admission(NamedTuple):
    """The outcome of a wait for a turn that a storage gives."""

    is_given: bool
    """Whether the request may go out."""

    seconds: float
    """Seconds of waiting; if refused, seconds until tokens may be available."""


_KEPT_OF_LIMIT: Final = {"limit": ("pending",)}


class RateLimitError(LimitedRequestError):
    """The turn of the request at a rate limit comes too late; it was not sent.

    No circuit breaker and no retry limiter counts it. Any method may be sent again, and
    a retrying client waits until the turn would have come.

    The turn of a request that costs more than the burst never comes. Such an error is
    permanent: ``retry_in`` is ``inf``, ``retry_safety()`` says ``NO``, and nothing is
    tried again.

    It may be pickled; it then has a snapshot of the limit, with its ``pending``.

    Args:
        limit: The limit that was reached; of several, the one whose turn is latest.
        retry_in: Seconds until a request may go out, counted from the refusal.
        cost: What the request costs, where that is more than the burst.
        burst: The most that a request may cost, where this one costs more.
        missed: Until when the turn should have come, in words.
    """

    limit: RateLimit
    """The limit that was reached; of several limits, the last to admit the request."""

    retry_in: float
    """Seconds until a request may go out, counted from the refusal."""

    cost: float | None
    """The cost of the request if above the burst; else None."""

    burst: float | None
    """The highest cost of a request, if this request costs more; else None."""

    missed: str | None
    """The missed time limit in words (``within the timeout of 2.0 s``); None if refused
    for a different reason.
    """

    _snapshots = _KEPT_OF_LIMIT

    def __init__(
        self,
        limit: RateLimit,
        retry_in: float,
        *,
        cost: float | None = None,
        burst: float | None = None,
        missed: str | None = None,
    ) -> None:
        super().__init__(limit, retry_in)
        self.limit = limit
        self.retry_in = retry_in
        self.cost = cost
        self.burst = burst
        self.missed = missed

    @property
    def retry_after(self) -> float:
        """An alias of ``retry_in``, which retrying clients read."""
        return self.retry_in

    @property
    def is_retry_safe(self) -> bool | None:
        """False where the request would be refused again; retrying clients ask it."""
        return None if self.cost is None else False

    def __str__(self) -> str:
        if self.cost is not None:
            what = f"a cost of {self.cost} is above the burst of {self.burst}"
        else:
            missed = self.missed or "in time"
            what = f"no turn {missed}; next in {self.retry_in:.3f} s"
        return f"{self.limit!r}: {what}"


class RateLimit(Shared):
    """Limits the rate of requests, or of what they cost, with a token bucket.

    In any *t* seconds there are never more than ``burst + requests * t / per``. One
    limit may serve many clients, tasks and sessions of one event loop, but not threads.
    A copy is the same object.

    A request costs 1, or what *cost* says. Where that is an estimate, *actual* or
    :meth:`settle` corrects it after the answer: what was too much comes back, and what
    was too little is a debt, which those that come next wait for.

    Args:
        requests: How many may go out in *per* seconds, finite and > 0.
        per: Seconds, finite and > 0.
        burst: How many may go out at once after a pause, finite and >= 1; by default
            *requests*, or 1 if that is less.
        cost: ``cost(ctx, request)`` returns what a request costs, finite and >= 0, such
            as an estimate of its tokens; *requests* and *burst* are of the same unit. A
            request that costs nothing goes out at once, one that costs more than
            *burst* raises a :class:`RateLimitError` that is final. None: each costs 1.
        actual: ``actual(log, content)`` returns what an attempt has cost in the end, or
            None to leave it at the estimate. It is asked for every answer, with the
            whole body where something buffers it, such as ``buffer_response=True``,
            else at the headers with None. What it raises is logged.

    Raises:
        ValueError: An argument is not as described.

    >>> RateLimit(100, per=60.0, burst=10)
    RateLimit(100, 60.0, burst=10)
    """

    _line: Line
    """The queue of waiting requests, with its rule."""

    _is_shared: ClassVar[bool] = False
    """Whether a storage gives the turns, which takes a question and no turn back."""

    _shared_turn: Callable[[ClientRequestContext, HttpRequest], SharedTurn]
    """Returns what waits for such a turn; raises what is for good, before any wait."""

    _cost: Cost | None = None

    _actual: Actual | None = None

    def __init__(
        self,
        requests: float,
        per: float = 1.0,
        *,
        burst: float | None = None,
        cost: Cost | None = None,
        actual: Actual | None = None,
    ) -> None:
        check.positive("requests", requests)
        check.positive("per", per)
        size = max(1, requests) if burst is None else burst
        if not is_finite(size) or size < 1:
            raise bad_argument("burst", burst, "finite and >= 1, or None")
        if not is_finite(size * (per / requests)):
            # By a clock no turn would ever come, or each at once.
            raise bad_argument("per", per, "burst * per / requests finite")
        check.function("cost", cost, "the context and the request")
        check.function("actual", actual, "the log and the content")
        self._cost, self._actual = cost, actual
        self._burst = size
        given = "" if burst is None else f", burst={burst!r}"
        for name, function in ("cost", cost), ("actual", actual):
            given += "" if function is None else f", {name}={name_of(function)}"
        self._description = f"{type(self).__name__}({requests!r}, {per!r}{given})"
        self._line = Line(Bucket(per / requests, size))

    @staticmethod
    def from_headers(*, max_wait: float = _MAX_WAIT) -> RateLimit:
        """Return a limit that follows the headers in which a server reports a limit.

        When nothing is left, requests wait for the reset, and then all of them go out,
        in their order and scattered: over a fifth of the wait, but no more than a
        second. A longer wait is cut to *max_wait*. Then one request goes out, and the
        others wait for what its answer says; if it fails, is cancelled, or has no
        answer after *max_wait*, the next one goes out. It reads

        - ``RateLimit`` and ``RateLimit-Policy`` of the IETF's draft, such as
          ``"default";r=0;t=30``: nothing is left for 30 s. Of several policies with
          nothing left the longest reset counts.
        - ``X-RateLimit-Remaining`` with ``X-RateLimit-Reset``, and the same with
          ``-Requests`` or ``-Tokens`` behind it, as servers of language models send
          them. A reset is a number of seconds, a Unix time where it is above 10^9, a
          duration such as ``6m0s`` or ``120ms``, or a date.
        - ``Retry-After`` of a 429 or a 403, which comes before the others.

        Take one for each host, with
        :meth:`RateLimitingClient.new_per_host_decorator`.

        Args:
            max_wait: The longest wait for a reset in seconds, finite and > 0.

        Raises:
            ValueError: *max_wait* is not as described.

        >>> def limit(key):
        ...     return RateLimit.from_headers()
        >>> decorator = RateLimitingClient.new_per_host_decorator(limit)
        """
        return _Learned(max_wait)

    @property
    def pending(self) -> int:
        """How many requests wait for their turn."""
        return len(self._line)

    def settle(self, response: aiohttp.ClientResponse, actual: float) -> None:
        """Correct what the attempt has cost that a response came from.

        Where it is called more than once, or *actual* is asked too, the last figure
        counts. What was too much comes back, up to a full bucket; what was too little
        is a debt. More than ten times the burst counts as
        that, with a warning: a server that reports nonsense must not close the limit.

        Args:
            response: The response.
            actual: What the attempt has cost in the end, finite and >= 0.

        Raises:
            ValueError: *actual* is not as described, the response did not come from
                this limit, or the limit has neither ``cost`` nor ``actual``.

        >>> limit = RateLimit(90_000, per=60.0, cost=lambda ctx, request: 2_000)
        >>> async def ask(session, question):
        ...     async with session.post("/chat", json=question) as response:
        ...         answer = await response.json()
        ...         limit.settle(response, answer["usage"]["total_tokens"])
        ...         return answer
        """
        if self._cost is None and self._actual is None:
            raise bad_argument("limit", self, "a limit with cost or actual")
        check.not_negative("actual", actual)
        charge = charge_of(response, self)
        if not isinstance(charge, Charge):
            raise bad_argument(
                "response", response, "a response that passed this limit"
            )
        self._settle(charge, actual)

    def __repr__(self) -> str:
        return self._description

    @property
    def _is_plain(self) -> bool:
        """Whether each request costs 1, and nothing more is to be known of it."""
        return self._cost is None and self._actual is None and not self._is_shared

    def _settle(self, charge: Charge, actual: float) -> None:
        most = _MOST_BURSTS * self._burst
        if actual > most:
            words = "%r: a request has cost %s, which counts as %s"
            _logger.warning(words, self, actual, most)
        charge.settle(min(actual, most))


class _Learned(RateLimit):
    def __init__(self, max_wait: float) -> None:
        check.positive("max_wait", max_wait)
        given = "" if max_wait == _MAX_WAIT else f"max_wait={max_wait!r}"
        self._description = f"RateLimit.from_headers({given})"
        # Only the server knows.
        self._burst = math.inf
        self._line = Line(Resets(max_wait))
