"""Warn of what a list of endpoints is found by, each time of something new."""

from __future__ import annotations

import logging
from typing import Final

_logger = logging.getLogger("aioretry_smithy")

_MOST: Final = 100


class WarnOnce:
    """Logs each warning once, as a list is asked for again and again.

    It logs no more than a hundred: what they tell of may be another each time.
    """

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, message: str) -> None:
        """Log *message* unless it was logged before."""
        if message not in self._told and len(self._told) < _MOST:
            self._told.add(message)
            _logger.warning("%s", message)
