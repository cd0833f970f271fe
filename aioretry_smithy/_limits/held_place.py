"""Note what an attempt holds of a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._context.holdings import Holdings
    from .samples import Place


class HeldPlace:
    """A place that the calls inside its attempt need not ask for again.

    Args:
        place: The place.
        holdings: What the attempt holds.
        limit: Gave the place.
    """

    __slots__ = ("_holdings", "_limit", "_place")

    def __init__(self, place: Place, holdings: Holdings, limit: object) -> None:
        self._place = place
        self._holdings: Holdings | None = holdings
        self._limit = limit
        holdings.add(limit)

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it is released."""
        self._place.learn(dropped=dropped)

    def release(self) -> None:
        """Give it back, for the next request that waits; once."""
        holdings, self._holdings = self._holdings, None
        if holdings is not None:
            holdings.remove(self._limit)
            self._place.release()
