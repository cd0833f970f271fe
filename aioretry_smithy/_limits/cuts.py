"""Cut a limit once a round trip, however many calls are dropped."""

from __future__ import annotations

import math

_NEAR = 1e-6
"""Seconds that times may differ by because they are sums of floats."""


class Cuts:
    """Remembers when a limit was cut last."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = -math.inf

    def is_due(self, now: float, round_trip: float) -> bool:
        """Note a drop; return whether the limit is to be cut for it.

        A call that began before the last cut says nothing of the limit after it.
        """
        if now - round_trip <= self._last + _NEAR:
            return False
        self._last = now
        return True
