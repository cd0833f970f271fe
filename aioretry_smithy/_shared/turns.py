"""Let the calls of one process take turns at a rate that many processes share."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING, Protocol

from .._clock import loop_time
from .._limits.rate_limit import Admission
from .._waiting.wait_queue import WaitQueue
from .storage_probe import PATIENCE, PAUSE

if TYPE_CHECKING:
    from .storage_probe import StorageProbe


class SharedRate(Protocol):
    """A rate that a storage keeps."""

    async def take(self, key: str, cost: int = 1) -> float:
        """Take a turn; return 0.0, or the seconds until there may be one."""

    async def probe(self, key: str) -> None:
        """Ask the storage something that changes nothing."""


class Turns:
    """The turns that calls of one event loop take under one key, in order of arrival.

    The first of them asks the storage and sleeps until there is more; the others wait
    in line behind it. If it gives up while it asks, the next one takes the question
    over.

    Args:
        rate: Is asked for turns.
        key: The key.
        storage: Says whether the storage is away.
        allow: Whether calls go through while it is.
    """

    def __init__(
        self, rate: SharedRate, key: str, storage: StorageProbe, *, allow: bool
    ) -> None:
        self._take = partial(rate.take, key)
        self._probe = partial(rate.probe, key)
        self._storage, self._allow = storage, allow
        self._queue: WaitQueue[bool] = WaitQueue()
        self._is_asked = False
        self._asked: asyncio.Task[float | None] | None = None
        self._asked_cost = 1
        # Until when the first one sleeps, or has slept.
        self._closed_until = -math.inf
        # What the storage refused last, and until when; a cheaper turn may come sooner.
        self._refused_cost, self._refused_until = 1, -math.inf

    def __len__(self) -> int:
        return len(self._queue) + self._is_asked

    async def turn(self, latest: float, deadline: float, cost: int = 1) -> Admission:
        """Wait for a turn that comes by *latest*, and before the deadline."""
        started = loop_time()
        is_given = await self._is_given(started, latest, deadline, cost)
        now = loop_time()
        if is_given:
            # The time of a question is no wait for a turn.
            has_waited = self._closed_until > started
            return Admission(
                is_given=True, seconds=now - started if has_waited else 0.0
            )
        is_down = self._storage.is_down
        seconds = PAUSE if is_down else max(0.0, self._opens(cost) - now)
        return Admission(is_given=False, seconds=seconds)

    async def _is_given(
        self, started: float, latest: float, deadline: float, cost: int
    ) -> bool:
        if self._storage.is_down:
            return self._unasked()
        if self._is_asked:
            if _is_late(self._opens(cost), latest, deadline):
                return False
            # Until those before it have asked; that is no wait for a turn either.
            until = min(max(latest, started + PATIENCE), deadline)
            if not await self._queue.wait(until, self._pass_on):
                return False
        self._is_asked = True
        try:
            return await self._ask(latest, deadline, cost)
        finally:
            self._pass_on()

    async def _ask(self, latest: float, deadline: float, cost: int) -> bool:
        while not _is_late(opens := self._opens(cost), latest, deadline):
            self._closed_until = opens
            # Those in line have no turn before the first one.
            self._queue.expire(opens)
            await asyncio.sleep(opens - loop_time())
            if self._storage.is_down:
                return self._unasked()
            if self._asked is None or self._asked.done():
                self._asked = self._storage.ask(partial(self._take, cost))
                self._asked_cost = cost
            seconds = await self._storage.answer(self._asked, deadline)
            if seconds is None:
                return self._storage.is_down and self._allow and loop_time() < deadline
            self._asked = None
            if seconds:
                self._refused_cost = self._asked_cost
                self._refused_until = loop_time() + seconds
            # The question of one that gave up may have been for less.
            elif self._asked_cost >= cost:
                return True
        return False

    def _opens(self, cost: int) -> float:
        """Return a time before which there is no turn for a call of that cost."""
        refused = self._refused_until if cost >= self._refused_cost else -math.inf
        return max(self._closed_until, refused)

    def _unasked(self) -> bool:
        self._storage.probe(self._probe)
        return self._allow

    def _pass_on(self, given: bool = True) -> None:
        """Let the next in line ask."""
        # The first one may have given up.
        self._closed_until = min(self._closed_until, loop_time())
        self._is_asked = self._queue.serve(lambda: True)


def _is_late(turn: float, latest: float, deadline: float) -> bool:
    return turn > latest or max(turn, loop_time()) >= deadline
