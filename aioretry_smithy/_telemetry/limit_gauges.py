"""Define the gauges of a concurrency limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._limits.concurrency_limit import ConcurrencyLimit


def _limit(limit: ConcurrencyLimit) -> int:
    # As it was when it was looked at last: gauges are read in another thread, where a
    # function of the user's is not to be called.
    return limit._seen or 0


def _in_flight(limit: ConcurrencyLimit) -> int:
    return limit.in_flight


def _pending(limit: ConcurrencyLimit) -> int:
    return limit.pending


LIMIT_GAUGES: Final[tuple[tuple[str, Callable[[ConcurrencyLimit], int], str], ...]] = (
    ("limit", _limit, "Requests that may be in flight at once."),
    ("in_flight", _in_flight, "Requests in flight."),
    ("pending", _pending, "Requests that wait for a place."),
)
"""The name of each gauge, its value, and its description."""
