"""Limit the rate at which requests go out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .._clock import NEAR, loop_time
from .._errors import bad_argument, check_positive, is_finite
from .line import Line
from .next_turn import Bucket, Resets
from .rate_headers import seconds_to_reset

if TYPE_CHECKING:
    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


_MAX_WAIT = 60.0


class Turn(NamedTuple):
    """The outcome of a wait for a turn."""

    is_given: bool
    """Whether the request may go out."""

    seconds: float
    """How long it waited for its turn; where there was none, until there may be one."""

    permit: Permit | None = None
    """The permit of the request, where it is not the limit itself."""


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
        check_positive("requests", requests)
        check_positive("per", per)
        size = max(1, requests) if burst is None else burst
        if not is_finite(size) or size < 1:
            raise bad_argument("burst", burst, "finite and >= 1, or None")
        given = "" if burst is None else f", burst={burst!r}"
        self._begin(
            Bucket(per / requests, size),
            f"{type(self).__name__}({requests!r}, {per!r}{given})",
        )

    @staticmethod
    def from_headers(*, max_wait: float = _MAX_WAIT) -> RateLimit:
        """Return a limit that follows the headers in which a server reports its own.

        When nothing is left, requests wait for the reset, and then all of them go out.
        A longer wait is cut to *max_wait*. Then one request goes out, and the others
        wait for what its answer says; if it fails, is cancelled, or has no answer after
        *max_wait*, the next one goes out. It reads

        - ``RateLimit`` and ``RateLimit-Policy`` of the IETF's draft, such as
          ``"default";r=0;t=30``: nothing is left for 30 s. Of several policies with
          nothing left the longest reset counts.
        - ``X-RateLimit-Remaining`` with ``X-RateLimit-Reset``: seconds, or a Unix time
          where it is above 10^9.
        - ``Retry-After`` of a 429, which comes before the others.

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

    def __repr__(self) -> str:
        return self._description

    def _begin(self, rule: Bucket | Resets, description: str) -> None:
        self._rule = rule
        self._description = description
        self._line: Line[Permit] = Line()
        self._timer: asyncio.TimerHandle | None = None

    def _try_take(self, now: float) -> Permit | None:
        """Return a permit for a request, if its turn is now."""
        return self if not self._line.turns and self._rule.try_take(now) else None

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
        permit = None if is_late else await self._wait(min(latest, deadline))
        if permit is None:
            return Turn(is_given=False, seconds=self._next_turn() - loop_time())
        return Turn(is_given=True, seconds=loop_time() - started, permit=permit)

    async def _wait(self, until: float) -> Permit | None:
        """Wait for a turn; return None where it does not come in time after all."""
        if self._timer is None:
            self._set_timer()
        try:
            return await self._line.wait(until, give_back)
        finally:
            if not self._line:
                self._stop_timer()

    def _learn(self, response: aiohttp.ClientResponse) -> None:
        """Learn from an answer."""

    def _lose(self) -> None:
        """Note that a request had no answer."""

    def _take(self) -> Permit:
        self._rule.take(loop_time())
        return self

    def _give_back(self) -> None:
        """Give a turn back, for the requests in line behind it."""
        self._rule.give_back()
        self._serve()

    def _serve(self) -> None:
        self._stop_timer()
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

    def __init__(self, max_wait: float) -> None:
        check_positive("max_wait", max_wait)
        given = "" if max_wait == _MAX_WAIT else f"max_wait={max_wait!r}"
        self._begin(Resets(max_wait), f"RateLimit.from_headers({given})")

    def _next_turn(self) -> float:
        return self._rule.known_turn(loop_time())

    def _try_take(self, now: float) -> Permit | None:
        return super()._try_take(now) or self._try_probe(now)

    def _try_probe(self, now: float) -> Permit | None:
        is_due = not self._line.turns and self._rule.turn(now, 0) <= now + NEAR
        return self._take() if is_due else None

    def _take(self) -> Permit:
        probed = self._rule.take(loop_time())
        return self if probed is None else Probe(self, probed)

    def _learn(self, response: aiohttp.ClientResponse) -> None:
        seconds = seconds_to_reset(response.status, response.headers)
        if seconds is not None:
            self._rule.close(loop_time(), seconds)


class Probe:
    """The permit of the one request that goes out after a wait that was cut.

    Args:
        limit: Gave it.
        probed: The round of the limit that it is a probe of.
    """

    __slots__ = ("_limit", "_probed")

    def __init__(self, limit: _Learned, probed: int) -> None:
        self._limit, self._probed = limit, probed

    def _learn(self, response: aiohttp.ClientResponse) -> None:
        """Learn from the answer anew, and let the others go as it says."""
        is_open = self._limit._rule.open(self._probed)
        self._limit._learn(response)
        if is_open:
            self._limit._serve()

    def _lose(self) -> None:
        """Let the next request find out."""
        if self._limit._rule.lose(self._probed, loop_time()):
            self._limit._serve()

    _give_back = _lose


Permit: TypeAlias = RateLimit | Probe
"""What a request goes out with: it is told how that ended."""


def give_back(permit: Permit) -> None:
    """Give the turn of a request back that does not go out."""
    permit._give_back()
