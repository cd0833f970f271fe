"""Serve requests one after another, slowly for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .result import SimulationSettings


class SimulatedServer:
    """A server with one queue, without a limit.

    Like most servers, it also carries out requests whose client has given up.

    Args:
        settings: Its capacity, its outage and its errors.
        chance: Returns numbers in [0, 1), for the errors.
    """

    def __init__(
        self, settings: SimulationSettings, chance: Callable[[], float]
    ) -> None:
        start, length, share = settings.outage or (0.0, 0.0, 1.0)
        self._slow_from, self._slow_until = start, start + length
        self._usual = settings.capacity
        self._slow = settings.capacity * share
        self._error_rate = settings.error_rate
        self._chance = chance
        self._free_at = 0.0

    def serve(self, now: float) -> tuple[int, float]:
        """Return what the answer to a request will be, and when it will be ready."""
        self._free_at = self._end_of_one(max(now, self._free_at))
        status = 503 if self._chance() < self._error_rate else 200
        return status, self._free_at

    def _end_of_one(self, begin: float) -> float:
        """Return when one request is served that begins to be served at a time."""
        end = self._slow_until
        if not self._slow_from <= begin < end:
            return begin + 1.0 / self._usual
        done = (end - begin) * self._slow  # of that request, when the outage ends
        return begin + 1.0 / self._slow if done >= 1 else end + (1 - done) / self._usual
