"""Limit the rate at which requests go out."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .._clock import NEAR, loop_time
from .._errors import bad_argument, check_positive, is_finite
from .rate_headers import seconds_to_reset
from .wait_queue import WaitQueue

if TYPE_CHECKING:
    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


_MAX_WAIT = 60.0


class Admission(NamedTuple):
    """The outcome of a wait for a turn."""

    is_given: bool
    """Whether the request may go out."""

    seconds: float
    """How long it waited for its turn; where there was none, until there may be one."""

    permit: RatePermit | None = None
    """The permit of the request, where it is not the limit itself."""


class Bucket:
    """A token bucket, known by the time at which it will be full.

    Args:
        interval: Seconds in which a token comes.
        burst: The tokens that it holds when it is full.
    """

    __slots__ = ("_full_at", "_interval", "_slack")

    def __init__(self, interval: float, burst: float) -> None:
        self._interval = interval
        self._slack = (burst - 1) * interval
        self._full_at = -math.inf

    def turn(self, now: float, ahead: int) -> float:
        """Return when a request may go out that has *ahead* others before it."""
        full_at = max(self._full_at, now) + ahead * self._interval
        return max(now, full_at - self._slack)

    def take(self, now: float) -> None:
        """Let a request go out."""
        self._full_at = max(self._full_at, now) + self._interval

    def try_take(self, now: float) -> bool:
        """Let a request go out, if its turn has come."""
        full_at = self._full_at
        full_at = max(full_at, now)
        if full_at - self._slack > now + NEAR:
            return False
        self._full_at = full_at + self._interval
        return True

    def give_back(self) -> None:
        """Take a permit back that was not used."""
        self._full_at -= self._interval


@dataclass(slots=True, eq=False)
class Resets:
    """Keep requests back until the time that a server named, or for the longest wait.

    After a wait that was cut one request goes out, the probe, and the others wait for
    what it learns: for the longest wait once more, then another probe goes out.

    Args:
        max_wait: The longest wait in seconds.
    """

    max_wait: float
    _reset_at: float = -math.inf

    _probe_at: float = -math.inf
    """Not infinite until the answer to a probe says more."""

    _is_probed: bool = False

    _round: int = 1
    """The number that all probes have until one of them is answered."""

    def turn(self, now: float, ahead: int) -> float:
        """Return when a request may go out unasked; those *ahead* do not matter."""
        return max(now, self._reset_at, self._probe_at)

    def known_turn(self, now: float) -> float:
        """Return the time before which no request goes out for sure."""
        # The probe may be answered at any moment.
        return now if self._is_probed else self.turn(now, 0)

    def take(self, now: float) -> int | None:
        """Let a request go out; return the round that it is the probe of, if it is."""
        if self._probe_at == -math.inf:
            # The server does the counting.
            return None
        self._probe_at = now + self.max_wait
        self._is_probed = True
        return self._round

    def try_take(self, now: float) -> bool:
        """Let a request go out, if no probe has to go before it."""
        return self._reset_at <= now + NEAR and self._probe_at == -math.inf

    def give_back(self) -> None:
        """Take a permit back that was not used."""

    def lose(self, probed: int, now: float) -> bool:
        """Let another probe go out; return False if one has been answered before."""
        if probed != self._round:
            return False
        self._probe_at, self._is_probed = now, False
        return True

    def open(self, probed: int) -> bool:
        """Let all go out; return False if a probe has been answered before."""
        if probed != self._round:
            return False
        self._round += 1
        self._reset_at = self._probe_at = -math.inf
        self._is_probed = False
        return True

    def close(self, now: float, seconds: float) -> None:
        """Let no request go out for some seconds; earlier calls hold too."""
        if seconds > self.max_wait:
            self._probe_at = max(self._probe_at, now + self.max_wait)
        else:
            self._reset_at = max(self._reset_at, now + seconds)


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
        return len(self._queue)

    def __repr__(self) -> str:
        return self._description

    def _begin(self, rule: Bucket | Resets, description: str) -> None:
        self._rule = rule
        self._description = description
        self._queue: WaitQueue[RatePermit] = WaitQueue()
        self._timer: asyncio.TimerHandle | None = None

    def _try_take(self, now: float) -> RatePermit | None:
        """Return a permit for a request, if its turn is now."""
        return self if not self._queue.waiting and self._rule.try_take(now) else None

    def _next_turn(self) -> float:
        """Return when a request that comes now would have its turn."""
        return self._rule.turn(loop_time(), len(self._queue))

    async def _admit(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest,
        latest: float,
        deadline: float,
    ) -> Admission:
        """Wait for the turn of a request, where it comes by *latest* and in time."""
        started = loop_time()
        turn = self._next_turn()
        is_late = turn > latest or turn >= deadline
        permit = None if is_late else await self._wait(min(latest, deadline))
        if permit is None:
            return Admission(is_given=False, seconds=self._next_turn() - loop_time())
        return Admission(is_given=True, seconds=loop_time() - started, permit=permit)

    async def _wait(self, until: float) -> RatePermit | None:
        """Wait for a turn; return None where it does not come in time after all."""
        if self._timer is None:
            self._set_timer()
        try:
            return await self._queue.wait(until, lambda each: each._give_back())
        finally:
            if not self._queue:
                self._stop_timer()

    def _learn(self, response: aiohttp.ClientResponse) -> None:
        """Learn from an answer."""

    def _lose(self) -> None:
        """Note that a request had no answer."""

    def _take(self) -> RatePermit:
        self._rule.take(loop_time())
        return self

    def _give_back(self) -> None:
        """Give a turn back, for the requests in line behind it."""
        self._rule.give_back()
        self._serve()

    def _serve(self) -> None:
        self._stop_timer()
        now = loop_time()
        while self._rule.turn(now, 0) <= now + NEAR and self._queue.serve(self._take):
            pass
        if self._queue:
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

    def _try_take(self, now: float) -> RatePermit | None:
        permit = super()._try_take(now)
        if permit is None and not self._queue and self._rule.turn(now, 0) <= now + NEAR:
            return self._take()
        return permit

    def _take(self) -> RatePermit:
        probed = self._rule.take(loop_time())
        return self if probed is None else Probe(self, probed)

    def _learn(self, response: aiohttp.ClientResponse) -> None:
        seconds = seconds_to_reset(response.status, response.headers)
        if seconds is not None:
            self._rule.close(loop_time(), seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """The permit of the one request that goes out after a wait that was cut."""

    _limit: _Learned
    _probed: int
    """The round of the limit that it is a probe of."""

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


RatePermit: TypeAlias = RateLimit | Probe
"""What a request goes out with: it is told how that ended."""
