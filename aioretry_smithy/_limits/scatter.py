"""Scatter in time those that have waited for the same moment."""

from __future__ import annotations

import math

from .._chance import chance
from .._clock import NEAR
from .._failures.hints import most_jitter


class Scatter:
    """The moments at which those go out, in their order, that wait for a reset.

    Each is by chance in a window behind it. All of them in the very moment of a reset
    would be the next burst, in step with those of other processes.
    """

    __slots__ = ("_begins_at", "_ends_at", "_next")

    def __init__(self) -> None:
        self._begins_at = self._ends_at = -math.inf
        # When the first of those that wait goes out; None while that is not drawn.
        self._next: float | None = None

    def begin(self, at: float, waited: float) -> None:
        """Begin a window at a reset for which they wait so many seconds in all."""
        if at >= self._begins_at:
            self._begins_at = at
            self._ends_at = max(self._ends_at, at + most_jitter(waited))
            self._next = None

    def next_turn(self, now: float, waiting: int, patience: float) -> float:
        """Return when the first of those that wait goes out, now that it may.

        Args:
            now: The time.
            waiting: How many wait.
            patience: The seconds after which the first of them would give up. Half of
                that is left to the request.
        """
        if not self._begins_at - NEAR <= now < self._ends_at:
            return now
        if self._next is None:
            window = min(self._ends_at - now, patience / 2)
            # The least of so many numbers by chance.
            self._next = now + window * (1 - (1 - chance()) ** (1 / waiting))
        return self._next

    def let_go(self) -> None:
        """Note that the first one has gone out."""
        self._next = None
