"""Measure the requests per second."""

from __future__ import annotations

import math

_SMOOTHING = 0.8
_BUCKETS_PER_SECOND = 2


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
