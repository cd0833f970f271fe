"""Limit the rate at which requests go out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from .._clock import loop_time
from .._errors import bad_argument, is_finite
from .bucket import NEAR, Bucket, Resets
from .line import Line
from .rate_headers import seconds_to_reset

if TYPE_CHECKING:
    import aiohttp

    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest


class Turn(NamedTuple):
    """The outcome of a wait for a turn."""

    is_given: bool
    """Whether the request may go out."""

    seconds: float
    """How long it waited for its turn; where there was none, until there may be one."""


class RateLimit:
    """Limits the rate of requests with a token bucket.

    In any *t* seconds there are never more than ``burst + requests * t / per``. One
    limit may serve many clients, tasks and sessions of one event loop, but not threads.

    Args:
        requests: How many may go out in *per* seconds, finite and > 0.
        per: Seconds, finite and > 0.
        burst: How many may go out at once after a pause, finite and >= 1; by default
            *requests*, or 1 if that is less.

    Raises:
        ValueError: An argument is not as described.

    >>> RateLimit(100, per=60.0, burst=10)
    RateLimit(100, 60.0, burst=10)
    """

    _rule: Bucket | Resets

    def __init__(
        self, requests: float, per: float = 1.0, *, burst: float | None = None
    ) -> None:
        for name, value in (("requests", requests), ("per", per)):
            if not is_finite(value) or value <= 0:
                raise bad_argument(name, value, "finite and > 0")
        size = max(1, requests) if burst is None else burst
        if not is_finite(size) or size < 1:
            raise bad_argument("burst", burst, "finite and >= 1, or None")
        given = "" if burst is None else f", burst={burst!r}"
        self._begin(
            Bucket(per / requests, size),
            f"{type(self).__name__}({requests!r}, {per!r}{given})",
        )

    @staticmethod
    def from_headers() -> RateLimit:
        """Return a limit that follows the headers in which a server reports its own.

        When nothing is left, requests wait for the reset. It reads

        - ``RateLimit`` and ``RateLimit-Policy`` of the IETF's draft, such as
          ``"default";r=0;t=30``: nothing is left for 30 s. Of several policies with
          nothing left the longest reset counts.
        - ``X-RateLimit-Remaining`` with ``X-RateLimit-Reset``: seconds, or a Unix time
          where it is above 10^9.
        - ``Retry-After`` of a 429, which comes before the others.

        Take one for each host, with
        :meth:`RateLimitingClient.new_per_host_decorator`.

        >>> def limit(key):
        ...     return RateLimit.from_headers()
        >>> decorator = RateLimitingClient.new_per_host_decorator(limit)
        """
        return _Learned()

    @property
    def pending(self) -> int:
        """How many requests wait for their turn."""
        return len(self._line)

    def __repr__(self) -> str:
        return self._description

    def _begin(self, rule: Bucket | Resets, description: str) -> None:
        self._rule = rule
        self._description = description
        self._line: Line[bool] = Line()
        self._timer: asyncio.TimerHandle | None = None

    def _try_take(self, now: float) -> bool:
        """Let a request go out, if its turn is now."""
        return not self._line.turns and self._rule.try_take(now)

    def _next_turn(self) -> float:
        """Return when a request that comes now would have its turn."""
        return self._rule.turn(loop_time(), len(self._line))

    async def _turn(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest,
        latest: float,
        deadline: float,
    ) -> Turn:
        """Wait for the turn of a request, where it comes by *latest* and in time."""
        started = loop_time()
        turn = self._next_turn()
        is_late = turn > latest or turn >= deadline
        if is_late or not await self._wait(min(latest, deadline)):
            return Turn(is_given=False, seconds=self._next_turn() - loop_time())
        return Turn(is_given=True, seconds=loop_time() - started)

    async def _wait(self, until: float) -> bool:
        """Wait for a turn; return False where it does not come in time after all."""
        if self._timer is None:
            self._set_timer()
        try:
            return await self._line.wait(until, self._give_back) is not None
        finally:
            if not self._line:
                self._stop_timer()

    def _learn(self, response: aiohttp.ClientResponse) -> None:
        """Learn from an answer."""

    def _take(self) -> bool:
        self._rule.take(loop_time())
        return True

    def _give_back(self, given: bool = True) -> None:
        """Give a turn back, for the requests in line behind it."""
        self._rule.give_back()
        self._stop_timer()
        self._serve()

    def _serve(self) -> None:
        self._timer = None
        now = loop_time()
        while self._rule.turn(now, 0) <= now + NEAR and self._line.serve(self._take):
            pass
        if self._line:
            self._set_timer()

    def _set_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(self._rule.turn(loop.time(), 0), self._serve)

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


class _Learned(RateLimit):
    _rule: Resets

    def __init__(self) -> None:
        self._begin(Resets(), "RateLimit.from_headers()")

    def _learn(self, response: aiohttp.ClientResponse) -> None:
        seconds = seconds_to_reset(response.status, response.headers)
        if seconds is not None:
            self._rule.close(loop_time() + seconds)
