"""The rate limiter of the adaptive mode: as fast as the server lets one."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import TYPE_CHECKING

from .._clock import loop_time
from .._errors import bad_argument, is_finite

if TYPE_CHECKING:
    from collections.abc import Callable

_BETA = 0.7
_SCALE = 0.4
_SMOOTHING = 0.8
_BUCKETS_PER_SECOND = 2
_MIN_FILL_RATE = 0.5
_MIN_CAPACITY = 1.0
_MAX_GROWTH = 2.0

LONGEST_SLEEP = 1.0
"""Seconds after which a waiter looks at the rate again, which may have risen."""

_NEGLIGIBLE = 1e-9
"""Seconds that are not worth a wait: mostly they are what rounding has left over."""


def zero_point(max_rate: float) -> float:
    """Return the seconds from a throttling answer to the rate at which it came.

    ``K = cbrt(max_rate * (1 - 0.7) / 0.4)``

    Args:
        max_rate: The rate at which the server throttled last, per second, >= 0.

    Source: CUBIC (RFC 9438), as the AWS SDKs have it.

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
    """Return the rate that may be tried some time after the last throttling answer.

    ``0.4 * (elapsed - K) ** 3 + max_rate``: it rises quickly at first, slowly around
    the rate that was too much, and ever more quickly beyond it.

    Args:
        elapsed: Seconds since the last throttling answer.
        max_rate: The rate at which it came, per second.

    >>> round(rate_after_success(0.0, 10.0), 6), round(rate_after_success(4.0, 10.0), 6)
    (7.0, 13.408697)
    """
    return _SCALE * (elapsed - zero_point(max_rate)) ** 3 + max_rate


class RateMeter:
    """Measures how many requests there are per second.

    Requests are counted in half seconds of the clock. Each time one is over, the count
    goes into the rate: ``0.8 * count / seconds + 0.2 * rate``.

    Args:
        now: When the measuring begins.
    """

    __slots__ = ("_count", "_since", "rate")

    rate: float
    """Requests per second, as of the last half second that is over."""

    def __init__(self, now: float) -> None:
        self.rate = 0.0
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


class TokenBucket:
    """Holds the tokens that requests need, and fills as time goes by.

    It is empty at first, and begins to fill when it is first used.
    """

    __slots__ = ("_filled_at", "_level", "_max_level", "fill_rate")

    fill_rate: float
    """Tokens per second, never below 0.5."""

    def __init__(self) -> None:
        self.fill_rate = _MIN_FILL_RATE
        self._max_level = _MIN_CAPACITY
        self._level = 0.0
        self._filled_at: float | None = None

    def level(self, now: float, amount: float = 0.0) -> float:
        """Return the tokens there are *now* for somebody who wants *amount*."""
        if self._filled_at is None:
            return 0.0
        income = (now - self._filled_at) * self.fill_rate
        most = max(self._max_level, amount)
        # Nothing is taken away by a clock that goes back, nor by somebody who wants
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


class ClientRateLimiter:
    """Keeps requests to the rate that the server lets through.

    It does nothing until the server has throttled once. From then on each attempt needs
    a token. Tokens come at the *fill rate*, which falls to 0.7 of the present rate with
    each throttling answer and rises with each other one, failures included, after the
    CUBIC formula: quickly up to the rate that was too much, slowly around it, and ever
    more quickly beyond. It is never more than twice the rate at which answers come, and
    never less than one attempt in two seconds.

    Calls, event loops and threads may share one. Nobody is served in order.

    Args:
        clock: Seconds that never go back; by default the running event loop's time,
            without one :func:`time.monotonic`. It is first read when the rate limiter
            is first used.

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
        self._meter: RateMeter | None = None
        self._max_rate = 0.0
        self._throttled_at = 0.0

    @property
    def enabled(self) -> bool:
        """Whether the server has ever throttled."""
        return self._enabled

    @property
    def fill_rate(self) -> float:
        """Attempts per second that are granted in the long run, once it is enabled."""
        return self._bucket.fill_rate

    @property
    def measured_rate(self) -> float:
        """Answers per second, as of the last half second that is over."""
        return 0.0 if self._meter is None else self._meter.rate

    @property
    def capacity(self) -> float:
        """The tokens that are there now."""
        with self._lock:
            return self._bucket.level(self._clock())

    async def acquire(self, amount: float = 1.0) -> None:
        """Wait until there is leave to send, and take it.

        What is not granted costs nothing, so a cancelled waiter takes nothing with it.

        Args:
            amount: Tokens to take, > 0. There is room for those of one second, at
                least 1. More can be saved up as well, as long as nobody reports or
                takes meanwhile.

        Raises:
            ValueError: *amount* is not as described.
        """
        while wait := self.try_acquire(amount):  # noqa: ASYNC110 (time is waited for)
            await asyncio.sleep(min(wait, LONGEST_SLEEP))

    def try_acquire(self, amount: float = 1.0) -> float:
        """Take leave to send if there is any, without waiting.

        Args:
            amount: As for :meth:`acquire`.

        Returns:
            0.0 where it is granted. Else nothing was taken, and these are the seconds
            until it may be worth while to ask again, as things stand.

        Raises:
            ValueError: *amount* is not as described.
        """
        if not is_finite(amount) or amount <= 0:
            raise bad_argument("amount", amount, "finite and > 0")
        with self._lock:
            _, now = self._begin()
            return self._bucket.try_take(amount, now) if self._enabled else 0.0

    def update(self, *, throttled: bool) -> None:
        """Learn from the outcome of an attempt; call it once for each.

        Args:
            throttled: Whether the server complained of too many requests. Any other
                outcome, also a failure, is a sign that it did not.
        """
        with self._lock:
            meter, now = self._begin()
            meter.record(now)
            if throttled:
                rate = self._slow_down(meter.rate, now)
            else:
                rate = rate_after_success(now - self._throttled_at, self._max_rate)
            self._bucket.change_rate(min(rate, _MAX_GROWTH * meter.rate), now)

    def __repr__(self) -> str:
        state = f"fill_rate={self.fill_rate:.3g}" if self._enabled else "not enabled"
        return f"<{type(self).__name__}: {state}>"

    def _begin(self) -> tuple[RateMeter, float]:
        now = self._clock()
        if self._meter is None:
            self._meter = RateMeter(now)
            self._throttled_at = now
        return self._meter, now

    def _slow_down(self, rate: float, now: float) -> float:
        if self._enabled:
            rate = min(rate, self._bucket.fill_rate)
        self._enabled = True
        self._max_rate = rate
        self._throttled_at = now
        return rate_after_throttling(rate)
