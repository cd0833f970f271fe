"""Mark the log of a request that was sent beside another one."""

from __future__ import annotations

import math
from typing import Any

from .calls_inside import CallsInside


class HedgeFacts:
    """A request of several that are sent for one answer."""

    __slots__ = ("after", "ended", "is_superseded")

    after: float | None
    """Seconds from the start of the first one; None of that one itself."""

    ended: float
    """When the last of them was over, on the log of the call; else long ago."""

    is_superseded: bool
    """Whether it was given up because another one had a good answer."""

    def __init__(self, after: float | None = None) -> None:
        self.after = after
        self.ended = -math.inf
        self.is_superseded = False


class MaybeHedge(CallsInside):
    """Base of the log of a call or an attempt: whether it is a hedge, and lost."""

    __slots__ = ("_race",)

    _race: HedgeFacts | None
    """None where there was just one request, as mostly."""

    @property
    def is_hedge(self) -> bool:
        """Whether it was sent beside another request, in case that brings nothing."""
        return self._hedged_after is not None

    @property
    def _hedged_after(self) -> float | None:
        return None if self._race is None else self._race.after

    @property
    def superseded(self) -> bool:
        """Whether it was given up because another request had a good answer."""
        return self._race is not None and self._race.is_superseded

    def _not_before_race(self, ended: float) -> float:
        """Return when this ended, which was not before the end of its requests."""
        return ended if self._race is None else max(ended, self._race.ended)

    def _hedge(self, first: Any) -> None:
        """Note that this is a hedge of the request with the log *first*."""
        self._race = HedgeFacts(self.started - first.started)

    def _supersede(self) -> None:
        """Note that another request had a good answer."""
        self._race = self._race or HedgeFacts()
        self._race.is_superseded = True
