"""Serve requests one after another, slowly for a while, or not at all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from .settings import SimulationSettings

REFUSED: Final = 0
"""In place of a status: the server takes no connections."""

CUT: Final = -1
"""A pseudo status: the server exits while processing the request."""


class SimulatedServer:
    """A server with one queue, without a limit.

    Like most servers, it also carries out requests whose client has given up.

    Args:
        settings: Its capacity, its outage, its restart and its errors.
        chance: Returns numbers in [0, 1), for the errors.
        number: Which of the replicas it is, from 0: the first ones are dead in the
            outage, the next ones fail, and one more is slow. The first one restarts.
    """

    def __init__(
        self, settings: SimulationSettings, chance: Callable[[], float], number: int = 0
    ) -> None:
        start, length, share = settings.outage or (0.0, 0.0, 1.0)
        self._slow_from, self._slow_until = start, start + length
        self._usual = settings.capacity / settings.replicas
        self._in_outage: int | None = None
        if settings.has_trouble:
            bad = settings.dead + settings.failing
            share = 1 / settings.slow if number == bad else 1.0
            if number < bad:
                self._in_outage = REFUSED if number < settings.dead else 503
        self._slow = self._usual * share
        restarts = settings.restart if number == 0 else None
        away_from, away_for = restarts or (math.inf, 0.0)
        self._away_from, self._back_at = away_from, away_from + away_for
        self._error_rate = settings.error_rate
        self._chance = chance
        self._free_at = 0.0

    def serve(self, now: float) -> tuple[int, float]:
        """Return what the answer to a request will be, and when it will be ready.

        That is a status, :data:`REFUSED` or :data:`CUT`.
        """
        if self._away_from <= now < self._back_at:
            return REFUSED, now
        status = self._in_outage
        if status is not None and self._slow_from <= now < self._slow_until:
            return status, now
        if now >= self._back_at:
            # It begins with an empty queue.
            self._free_at, self._away_from, self._back_at = now, math.inf, math.inf
        self._free_at = self._end_of_one(max(now, self._free_at))
        if self._free_at > self._away_from:
            return CUT, self._away_from
        status = 503 if self._chance() < self._error_rate else 200
        return status, self._free_at

    def _end_of_one(self, begin: float) -> float:
        """Return when one request is served that begins to be served at a time."""
        end = self._slow_until
        if not self._slow_from <= begin < end:
            return begin + 1.0 / self._usual
        done = (end - begin) * self._slow  # of that request, when the outage ends
        return begin + 1.0 / self._slow if done >= 1 else end + (1 - done) / self._usual
