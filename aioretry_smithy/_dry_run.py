"""Say what a limit or a circuit breaker would have done that does not act."""

from __future__ import annotations

import logging
import math
from typing import Final

from ._clock import loop_time

_logger = logging.getLogger("aioretry_smithy")

_INTERVAL: Final = 60.0
"""Seconds between two warnings at least."""


class DryRun:
    """Logs what ``enforce=False`` lets through: each request, and how many of them.

    Each request is logged at DEBUG. The first one is a WARNING too; after that there is
    one a minute at most, with the number of requests since the last one. There is no
    timer: what nothing follows is not warned of until something does.

    Args:
        owner: What does not act, for the warning.
    """

    __slots__ = ("_owner", "_refused", "_waited", "_warned_at")

    def __init__(self, owner: str) -> None:
        self._owner = owner
        # Since the last warning.
        self._refused = self._waited = 0
        self._warned_at = -math.inf

    def refused(self, request: object, error: Exception) -> None:
        """Note a request that would not have been sent.

        Args:
            request: The request, whose repr shows no secrets.
            error: What it would have raised.
        """
        _logger.debug("would have refused %r: %s", request, error)
        self._refused += 1
        self._warn()

    def waited(self, request: object, seconds: float, limit: object) -> None:
        """Note a request that would have been sent later.

        Args:
            request: The request, whose repr shows no secrets.
            seconds: How long it would have waited, as far as that can be known.
            limit: What it would have waited for.
        """
        _logger.debug("would have waited %.3f s for %r: %r", seconds, limit, request)
        self._waited += 1
        self._warn()

    def _warn(self) -> None:
        """Say the numbers, unless a minute has not passed."""
        now = loop_time()
        passed = now - self._warned_at
        # Another event loop may have another clock, which is behind.
        if 0 <= passed < _INTERVAL:
            return
        since = f", in {passed:.0f} s" if 0 <= passed < math.inf else ""
        what = "%s is not enforced: would have refused: %d, would have waited: %d%s"
        _logger.warning(what, self._owner, self._refused, self._waited, since)
        self._refused = self._waited = 0
        self._warned_at = now
