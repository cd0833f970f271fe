"""The tokens that requests need."""

from __future__ import annotations

_MIN_FILL_RATE = 0.5
_MIN_CAPACITY = 1.0

_NEGLIGIBLE = 1e-9
"""Seconds that are not worth a wait: mostly they are what rounding has left over."""


class TokenBucket:
    """Holds the tokens that requests need, and fills as time goes by.

    It is empty at first, and begins to fill when it is first used.
    """

    __slots__ = ("_filled_at", "_level", "_max_level", "fill_rate")

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
