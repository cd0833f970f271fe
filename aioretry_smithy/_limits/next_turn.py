"""Compute when the next request may go out: at a rate, or as a server says."""

from __future__ import annotations

import math

from .._clock import NEAR


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


class Resets:
    """Keep requests back until the time that a server named, or for the longest wait.

    After a wait that was cut one request goes out, the probe, and the others wait for
    what it learns: for the longest wait once more, then another probe goes out.

    Args:
        max_wait: The longest wait in seconds.
    """

    __slots__ = ("_cut_until", "_is_probed", "_max_wait", "_reset_at", "_round")

    def __init__(self, max_wait: float) -> None:
        self._max_wait = max_wait
        self._reset_at = -math.inf
        # Not infinite until the answer to a probe says more.
        self._cut_until = -math.inf
        self._is_probed = False
        # The number that all probes have until one of them is answered.
        self._round = 1

    def turn(self, now: float, ahead: int) -> float:
        """Return when a request may go out unasked; those *ahead* do not matter."""
        return max(now, self._reset_at, self._cut_until)

    def known_turn(self, now: float) -> float:
        """Return the time before which no request goes out for sure."""
        # The probe may be answered at any moment.
        return now if self._is_probed else self.turn(now, 0)

    def take(self, now: float) -> int | None:
        """Let a request go out; return the round that it is the probe of, if it is."""
        if self._cut_until == -math.inf:
            # The server does the counting.
            return None
        self._cut_until = now + self._max_wait
        self._is_probed = True
        return self._round

    def try_take(self, now: float) -> bool:
        """Let a request go out, if no probe has to go before it."""
        return self._reset_at <= now + NEAR and self._cut_until == -math.inf

    def give_back(self) -> None:
        """Take leave back that was not used."""

    def lose(self, probed: int, now: float) -> bool:
        """Let another probe go out; return False if one has been answered before."""
        if probed != self._round:
            return False
        self._cut_until, self._is_probed = now, False
        return True

    def open(self, probed: int) -> bool:
        """Let all go out; return False if a probe has been answered before."""
        if probed != self._round:
            return False
        self._round += 1
        self._reset_at = self._cut_until = -math.inf
        self._is_probed = False
        return True

    def close(self, now: float, seconds: float) -> None:
        """Let no request go out for some seconds; earlier calls hold too."""
        if seconds > self._max_wait:
            self._cut_until = max(self._cut_until, now + self._max_wait)
        else:
            self._reset_at = max(self._reset_at, now + seconds)
