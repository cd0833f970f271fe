"""Retry as a loop by hand does, to compare chains with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .._retry.backoff import Backoff
from .process import Counts

if TYPE_CHECKING:
    from .server import SimulatedServer

PATIENCE = 1.0
"""Seconds that each attempt waits for an answer."""

LONGEST = 60.0
"""More seconds than any call takes, with all its attempts and delays."""


class PlainLoop(Counts):
    """Sends a request up to so many times, after exponential delays with full jitter.

    The counts are those of a retrying client without a budget in a session, at a
    fraction of the cost, because a retry storm is hundreds of thousands of attempts.
    Its calls share nothing, so that one stands for any number of processes.

    Args:
        max_total_attempts: The attempts of a call, the first one included.
        server: The server that the requests go to.
    """

    def __init__(self, max_total_attempts: int, server: SimulatedServer) -> None:
        super().__init__()
        self._max_total_attempts = max_total_attempts
        self._server = server
        self._backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
        self._loop = asyncio.get_running_loop()

    def begin(self, calls: asyncio.TaskGroup) -> None:
        """Begin a call."""
        second = int(self._loop.time())
        self.calls[second] += 1
        self._attempt(second, 1)

    def _attempt(self, second: int, number: int) -> None:
        now = self._loop.time()
        self.attempts[int(now)] += 1
        status, ready_at = self._server.serve(now)
        if ready_at - now > PATIENCE:
            self._loop.call_at(now + PATIENCE, self._fail, second, number)
        elif status < 400:
            self.answered[second] += 1
        else:
            self._loop.call_at(ready_at, self._fail, second, number)

    def _fail(self, second: int, number: int) -> None:
        if number < self._max_total_attempts:
            delay = self._backoff.next_delay(number) or 0.0
            self._loop.call_later(delay, self._attempt, second, number + 1)
