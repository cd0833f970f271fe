"""The rate limiter of the adaptive mode: it learns how fast the server answers."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from typing import TYPE_CHECKING

from .._clock import loop_time
from .._errors import bad_argument, is_finite
from .._values import Shared

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_MAX_GROWTH = 2.0

_LONGEST_SLEEP = 1.0
"""Seconds after which a waiter looks at the rate again, which may have risen."""

_LOOKS_PER_TURN = 4
"""The divisor of the remaining wait, for the length of one sleep."""

_LAG = 0.1
"""The largest lag between the event loops of two threads, in seconds."""

_NEGLIGIBLE = 1e-9
"""Seconds that are not worth a wait: mostly they are what rounding has left over."""

# The numbers of the CUBIC formula (RFC 9438) and of the buckets, as the AWS SDKs have
# them.
_BETA = 0.7
"""The part of the rate that is left after a throttling answer."""

_SCALE = 0.4
_SMOOTHING = 0.8
_BUCKETS_PER_SECOND = 2
_MIN_FILL_RATE = 0.5
_MIN_CAPACITY = 1.0


class ClientRateLimiter(Shared):
    """Keeps requests to the rate that the server lets through.

    It does nothing until the server has throttled once. From then on each attempt needs
    a token. Tokens come at the *fill rate*, which falls to 0.7 of the present rate with
    each throttling answer and rises with each other one, failures included, after the
    CUBIC formula: quickly up to the rate that was too much, slowly around it, and ever
    more quickly beyond. It is never more than twice the rate at which answers come, and
    never less than one attempt in two seconds.

    Calls, event loops and threads may share one; a copy is the rate limiter itself.
    Waiting calls are served roughly in the order in which they came. But a call that
    asks when there is a token gets it, even while another call waits for several.

    Args:
        clock: Seconds, as a finite number; by default the running event loop's time,
            without one :func:`time.monotonic`. It is first read when the rate limiter
            is first used. Where it goes back, as when a new event loop begins at 0, the
            rate is measured anew from there; tokens and rates stay as they are.

    Raises:
        ValueError: *clock* is not as described.

    Source: the ``adaptive`` mode of the AWS SDKs.

    >>> limiter = ClientRateLimiter(clock=lambda: 0.0)
    >>> limiter.try_acquire()
    0.0
    >>> limiter.update(throttled=True)
    >>> limiter.fill_rate, limiter.try_acquire()
    (0.5, 2.0)
    """

    def __init__(self, *, clock: Callable[[], float] | None = None) -> None:
        if clock is not None and not callable(clock):
            raise bad_argument("clock", clock, "a callable that returns seconds")
        self._clock = loop_time if clock is None else clock
        self._lock = threading.Lock()
        self._enabled = False
        self._bucket = TokenBucket()
        self._line: deque[float] = deque()
        self._queued = 0.0
        self._meter = RateMeter(0.0)
        self._seen = math.inf
        self._max_rate = 0.0
        self._throttled_at = 0.0

    @property
    def enabled(self) -> bool:
        """Whether the server has ever throttled."""
        return self._enabled

    @property
    def fill_rate(self) -> float:
        """The granted rate in attempts per second, once the limiter is enabled."""
        return self._bucket.fill_rate

    @property
    def measured_rate(self) -> float:
        """Answers per second, as of the last half second that is over."""
        return self._meter.rate

    @property
    def capacity(self) -> float:
        """The current number of tokens."""
        with self._lock:
            return self._bucket.level(self._clock())

    async def acquire(self, amount: float = 1.0) -> None:
        """Wait until there are tokens to send an attempt, and take them.

        A waiter that is cancelled takes none.

        Args:
            amount: Tokens to take, > 0. The limiter keeps the tokens of one second, at
                least 1. It saves up more only while no outcome is reported and no token
                is taken. So a large amount may wait for ever where small ones are taken
                all the time.

        Raises:
            ValueError: *amount* is not as described.
        """
        await self._acquire(amount)

    async def _acquire(
        self,
        amount: float = 1.0,
        remaining: Callable[[], float] = lambda: math.inf,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> bool:
        """Do :meth:`acquire`; say whether the tokens came within *remaining*.

        If not, nothing was taken, and it was given up as soon as *remaining* had too
        few seconds for the wait until it may be granted, or until the next look.
        """
        if not (wait := self.try_acquire(amount)):
            return True
        place = self._join_line(amount)
        try:
            while wait:
                # Sooner than its turn would come at this rate, which may rise, and
                # waiters ahead may leave.
                turn = (place - self._line[0]) / self.fill_rate / _LOOKS_PER_TURN
                pause = min(_LONGEST_SLEEP, wait + turn)
                if max(wait, pause) >= remaining():
                    return False
                await sleep(pause)
                wait = self.try_acquire(amount)
        finally:
            # Without the lock: a wait that is thrown away with its event loop ends
            # wherever the garbage is collected, maybe where the lock is held.
            self._line.remove(place)
        return True

    def _join_line(self, amount: float) -> float:
        """Queue for tokens; return how many were queued for before."""
        with self._lock:
            if not self._line:
                self._queued = 0.0
            place = self._queued
            self._queued += amount
            self._line.append(place)
        return place

    def try_acquire(self, amount: float = 1.0) -> float:
        """Take tokens to send an attempt if there are enough, without waiting.

        Args:
            amount: As for :meth:`acquire`.

        Returns:
            0.0 if the tokens were taken. Otherwise none was taken, and these are the
            seconds until there may be enough.

        Raises:
            ValueError: *amount* is not as described.
        """
        if not is_finite(amount) or amount <= 0:
            raise bad_argument("amount", amount, "finite and > 0")
        with self._lock:
            now = self._now()
            return self._bucket.try_take(amount, now) if self._enabled else 0.0

    def expected_wait(self, *, after: float = 0.0) -> float:
        """Return the expected wait of a single attempt, in seconds.

        Args:
            after: Seconds from now until the attempt asks, finite and >= 0.

        Raises:
            ValueError: *after* is not as described.

        >>> limiter = ClientRateLimiter(clock=lambda: 0.0)
        >>> limiter.update(throttled=True)
        >>> limiter.expected_wait(), limiter.expected_wait(after=0.5)
        (2.0, 1.5)
        """
        if not is_finite(after) or after < 0:
            raise bad_argument("after", after, "seconds, finite and >= 0")
        with self._lock:
            if not self._enabled:
                return 0.0
            missing = 1.0 - self._bucket.level(self._clock() + after, 1.0)
            return max(0.0, missing) / self._bucket.fill_rate

    def update(self, *, throttled: bool) -> None:
        """Learn from the outcome of an attempt; call it once for each.

        Args:
            throttled: Whether the server complained of too many requests. Any other
                outcome, also a failure, is a sign that it did not.
        """
        with self._lock:
            now = self._now()
            self._meter.record(now)
            measured = self._meter.rate
            if throttled:
                sent = min(measured, self.fill_rate) if self._enabled else measured
                self._enabled, self._max_rate, self._throttled_at = True, sent, now
                rate = rate_after_throttling(sent)
            else:
                rate = rate_after_success(now - self._throttled_at, self._max_rate)
            self._bucket.change_rate(min(rate, _MAX_GROWTH * measured), now)

    def __repr__(self) -> str:
        state = f"fill_rate={self.fill_rate:.3g}" if self._enabled else "not enabled"
        return f"<{type(self).__name__}: {state}>"

    def _now(self) -> float:
        """Read the clock; begin to measure at first, and anew where it goes back."""
        now = self._clock()
        if not is_finite(now):
            raise bad_argument("clock", now, "returns a finite number")
        if self._seen - _LAG <= now < self._seen:
            return self._seen
        if now < self._seen:
            self._meter.begin(now)
            self._throttled_at = now
        self._seen = now
        return now


class RateMeter:
    """Measures how many requests there are per second.

    Requests are counted in half seconds of the clock. Each time one is over, the count
    goes into the rate: ``0.8 * count / seconds + 0.2 * rate``.
    """

    rate: float
    """Requests per second, as of the last half second that is over."""

    def __init__(self, now: float) -> None:
        self.rate = 0.0
        self.begin(now)

    def begin(self, now: float) -> None:
        """Count from *now* on; the rate stays until there is a new one."""
        self._count = 0
        self._since = float(math.floor(now))

    def record(self, now: float) -> None:
        """Count a request that was answered *now*."""
        self._count += 1
        bucket = math.floor(now * _BUCKETS_PER_SECOND) / _BUCKETS_PER_SECOND
        if bucket > self._since:
            newest = self._count / (bucket - self._since)
            self.rate = _SMOOTHING * newest + (1 - _SMOOTHING) * self.rate
            self._count = 0
            self._since = bucket


def zero_point(max_rate: float) -> float:
    """Return the seconds from a throttling answer to the rate at which it came.

    ``K = cbrt(max_rate * (1 - 0.7) / 0.4)``

    >>> round(zero_point(10.0), 6)
    1.957434
    """
    return math.cbrt(max_rate * (1 - _BETA) / _SCALE)


def rate_after_throttling(rate: float) -> float:
    """Return the rate to go on with where *rate* was too much: ``0.7 * rate``.

    >>> rate_after_throttling(10.0)
    7.0
    """
    return rate * _BETA


def rate_after_success(elapsed: float, max_rate: float) -> float:
    """Return the rate that may be tried so many seconds after a throttling answer.

    ``0.4 * (elapsed - K) ** 3 + max_rate``: it rises quickly at first, slowly around
    the rate that was too much, and ever more quickly beyond it.

    >>> round(rate_after_success(0.0, 10.0), 6), round(rate_after_success(4.0, 10.0), 6)
    (7.0, 13.408697)
    """
    return _SCALE * (elapsed - zero_point(max_rate)) ** 3 + max_rate


class TokenBucket:
    """Holds the tokens that requests need, and fills as time goes by.

    It is empty at first, and begins to fill when it is first used.
    """

    fill_rate: float
    """Tokens per second."""

    def __init__(self) -> None:
        self.fill_rate = _MIN_FILL_RATE
        self._max_level = _MIN_CAPACITY
        self._level = 0.0
        self._filled_at: float | None = None

    def level(self, now: float, amount: float = 0.0) -> float:
        """Return the tokens there are *now* for a call that wants *amount*."""
        if self._filled_at is None:
            return 0.0
        income = (now - self._filled_at) * self.fill_rate
        most = max(self._max_level, amount)
        # Nothing is taken away by a clock that goes back, nor by a call that wants
        # less than another one has saved up for.
        return max(self._level, min(most, self._level + income))

    def try_take(self, amount: float, now: float) -> float:
        """Take *amount*, or nothing; return the seconds until there is enough."""
        self._fill(now, amount)
        wait = (amount - self._level) / self.fill_rate
        # A wait that does not even move the clock would be waited for again and again.
        if wait >= _NEGLIGIBLE and now + wait > now:
            return wait
        self._level = max(0.0, self._level - amount)
        return 0.0

    def change_rate(self, rate: float, now: float) -> None:
        """Fill at *rate* from *now* on, and hold as many tokens as come in a second."""
        self._fill(now)
        self.fill_rate = max(rate, _MIN_FILL_RATE)
        self._max_level = max(rate, _MIN_CAPACITY)
        self._level = min(self._level, self._max_level)

    def _fill(self, now: float, amount: float = 0.0) -> None:
        self._level = self.level(now, amount)
        self._filled_at = now
