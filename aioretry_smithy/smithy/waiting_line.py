"""Keep waiters in the order of their arrival."""

from __future__ import annotations

import math
from collections import deque

_PATIENCE = 2.0
"""Seconds of being late, or of a clock that jumps, after which a place is given up."""

_SPARE_PLACES = 64


class Place:
    """The place of somebody who waits for tokens, in a line or not yet."""

    __slots__ = ("ahead_at_first", "amount", "due", "in_line")

    amount: float
    """The tokens that its owner wants."""

    ahead_at_first: float
    """The tokens that others wanted who stood in line before, ever."""

    due: float
    """When its owner means to look again."""

    in_line: bool
    """Whether it is one of a line's places."""

    def __init__(self, amount: float) -> None:
        self.amount = amount
        self.ahead_at_first = 0.0
        self.due = -math.inf
        self.in_line = False

    def leave(self) -> None:
        """Stop waiting.

        It needs no lock. A wait that is thrown away with its event loop ends wherever
        the garbage is collected, maybe by somebody who holds the lock.
        """
        self.due = -math.inf


class WaitingLine:
    """Says how many tokens others want who came first, at the same cost for any number.

    It is an estimate: the places of those who have left count for as long as somebody
    waits before them. Whoever does not look again as promised, because the event loop
    is stuck or was abandoned, loses the place.
    """

    __slots__ = ("_most", "_places")

    def __init__(self) -> None:
        self._places: deque[Place] = deque()
        self._most = _SPARE_PLACES

    def __len__(self) -> int:
        return len(self._places)

    def tokens_ahead(self, place: Place, now: float) -> float:
        """Return what goes to others first; a place that is not in line joins it."""
        places = self._places
        while places and _is_given_up(places[0], now):
            places.popleft().in_line = False
        if not place.in_line:
            self._join(place, now)
        return place.ahead_at_first - places[0].ahead_at_first

    def _join(self, place: Place, now: float) -> None:
        places = self._places
        if len(places) >= self._most:
            self._close_ranks(now)
        last = places[-1] if places else None
        place.ahead_at_first = last.ahead_at_first + last.amount if last else 0.0
        place.in_line = True
        places.append(place)

    def _close_ranks(self, now: float) -> None:
        """Forget those who have left while the first in line is waiting for long."""
        for _ in range(len(self._places)):
            place = self._places.popleft()
            place.in_line = not _is_given_up(place, now)
            if place.in_line:
                self._places.append(place)
        self._most = 2 * len(self._places) + _SPARE_PLACES


def _is_given_up(place: Place, now: float) -> bool:
    return abs(place.due - now) > _PATIENCE
