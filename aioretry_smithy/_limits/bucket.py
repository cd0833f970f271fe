"""Reckon when the next request may go out at a rate."""

from __future__ import annotations

import math

NEAR = 1e-6
"""Seconds that times may differ by because they are sums of floats."""


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
        """Take leave back that was not used."""
        self._full_at -= self._interval
