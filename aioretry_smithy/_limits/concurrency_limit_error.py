"""Refuse a request that got no place in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import UnprocessedRequestError

if TYPE_CHECKING:
    from .concurrency_limit import ConcurrencyLimit


class ConcurrencyLimitError(UnprocessedRequestError):
    """Too many requests were in flight for too long; this one was not sent.

    No circuit breaker and no retry limiter counts it. Any method may be sent again.

    Args:
        limit: The limit that left no place.
        waited: Seconds spent in the queue.
        pending: Requests in the queue when this one left it.
    """

    limit: ConcurrencyLimit
    """The limit that left no place."""

    waited: float
    """Seconds spent in the queue; 0.0 where there was no place in it either."""

    pending: int
    """Requests in the queue when this one left it."""

    def __init__(self, limit: ConcurrencyLimit, waited: float, pending: int) -> None:
        super().__init__(limit, waited, pending)
        self.limit = limit
        self.waited = waited
        self.pending = pending

    def __str__(self) -> str:
        name, pending = self.limit.name, self.pending
        where = f"no place in {self.waited:.3f} s, pending: {pending}"
        return f"concurrency limit {name!r}: {where}"
