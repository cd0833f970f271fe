"""Raise a limit by one a round trip, and cut it when the server is overloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import bad_argument, is_finite
from .cuts import Cuts

if TYPE_CHECKING:
    from .bounds import Bounds


class Aimd:
    """Additive increase, multiplicative decrease: the rule of TCP's window.

    Args:
        bounds: Where the limit begins and ends.
        backoff_ratio: What is left of the limit after a drop, > 0 and < 1.
        slow_after: Seconds after which an answer counts as a drop; None for never.

    Raises:
        ValueError: An argument is not as described.
    """

    __slots__ = ("_backoff_ratio", "_bounds", "_cuts", "_slow_after", "limit")

    limit: float
    """The limit with its fraction."""

    def __init__(
        self, bounds: Bounds, backoff_ratio: float, slow_after: float | None
    ) -> None:
        if not is_finite(backoff_ratio) or not 0 < backoff_ratio < 1:
            raise bad_argument("backoff_ratio", backoff_ratio, "> 0 and < 1")
        if slow_after is not None and not (is_finite(slow_after) and slow_after > 0):
            raise bad_argument("slow_after", slow_after, "finite and > 0, or None")
        self._bounds = bounds
        self._backoff_ratio = backoff_ratio
        self._slow_after = slow_after
        self._cuts = Cuts()
        self.limit = float(bounds.initial)

    def add(
        self, now: float, round_trip: float, in_flight: int, *, dropped: bool
    ) -> None:
        """Learn from a call that ends *now*."""
        limit, slow_after = self.limit, self._slow_after
        if dropped or (slow_after is not None and round_trip > slow_after):
            if self._cuts.is_due(now, round_trip):
                self.limit = self._bounds.clamp(limit * self._backoff_ratio)
        elif in_flight * 2 >= limit:
            self.limit = self._bounds.clamp(limit + 1 / limit)

    def __repr__(self) -> str:
        ratio, slow_after = self._backoff_ratio, self._slow_after
        own = f"backoff_ratio={ratio!r}, slow_after={slow_after!r}"
        return f"aimd({self._bounds!r}, {own})"
