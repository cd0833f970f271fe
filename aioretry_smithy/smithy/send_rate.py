"""The rate at which requests may be sent: measured, cut when throttled, raised again.

A throttling answer cuts it, and the CUBIC formula (RFC 9438), with the numbers of the
AWS SDKs, raises it.
"""

from __future__ import annotations

import math

_BETA = 0.7
"""The part of the rate that is left after a throttling answer."""

_SCALE = 0.4
_SMOOTHING = 0.8
_BUCKETS_PER_SECOND = 2


class RateMeter:
    """Measures how many requests there are per second.

    Requests are counted in half seconds of the clock. Each time one is over, the count
    goes into the rate: ``0.8 * count / seconds + 0.2 * rate``.
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
