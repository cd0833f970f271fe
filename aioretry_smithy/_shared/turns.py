"""Let the calls of a process take turns at a rate that all processes share."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

from .._clock import loop_time
from .._limits.rate_limit import Admission
from .._limits.wait_queue import WaitQueue
from .link import PATIENCE, PAUSE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .link import Link


class Turns:
    """The turns that calls of one event loop take under one key, in order of arrival.

    The first of them asks the storage and sleeps until there is more; the others wait
    in line behind it. If it gives up while it asks, the next one takes the question
    over.

    Args:
        take: Takes a turn from the storage; returns 0.0, or the seconds until there may
            be one.
        look: Asks the storage something that changes nothing.
        link: Says whether the storage is away.
        allow: Whether calls go through while it is.
    """

    __slots__ = (
        "_allow",
        "_asked",
        "_closed_until",
        "_is_asked",
        "_link",
        "_look",
        "_queue",
        "_take",
    )

    def __init__(
        self,
        take: Callable[[], Awaitable[float]],
        look: Callable[[], Awaitable[None]],
        link: Link,
        *,
        allow: bool,
    ) -> None:
        self._take, self._look = take, look
        self._link, self._allow = link, allow
        self._queue: WaitQueue[bool] = WaitQueue()
        self._is_asked = False
        self._asked: asyncio.Task[float | None] | None = None
        self._closed_until = -math.inf

    def __len__(self) -> int:
        return len(self._queue) + self._is_asked

    async def turn(self, latest: float, deadline: float) -> Admission:
        """Wait for a turn that comes by *latest*, and before the deadline."""
        started = loop_time()
        is_given = await self._is_given(started, latest, deadline)
        now = loop_time()
        if is_given:
            # The time of a question is no wait for a turn.
            has_waited = self._closed_until > started
            return Admission(
                is_given=True, seconds=now - started if has_waited else 0.0
            )
        seconds = PAUSE if self._link.is_away else max(0.0, self._closed_until - now)
        return Admission(is_given=False, seconds=seconds)

    async def _is_given(self, started: float, latest: float, deadline: float) -> bool:
        if self._link.is_away:
            return self._unasked()
        if self._is_asked:
            if self._is_late(latest, deadline):
                return False
            # Until those before it have asked; that is no wait for a turn either.
            until = min(max(latest, started + PATIENCE), deadline)
            if not await self._queue.wait(until, self._pass_on):
                return False
        self._is_asked = True
        try:
            return await self._ask(latest, deadline)
        finally:
            self._pass_on()

    async def _ask(self, latest: float, deadline: float) -> bool:
        while not self._is_late(latest, deadline):
            await asyncio.sleep(self._closed_until - loop_time())
            if self._link.is_away:
                return self._unasked()
            if self._asked is None or self._asked.done():
                self._asked = self._link.ask(self._take)
            seconds = await self._link.answer(self._asked, deadline)
            if seconds is None:
                return self._link.is_away and self._allow and loop_time() < deadline
            self._asked = None
            if not seconds:
                return True
            self._closed_until = loop_time() + seconds
            self._queue.expire(self._closed_until)
        return False

    def _unasked(self) -> bool:
        self._link.look(self._look)
        return self._allow

    def _is_late(self, latest: float, deadline: float) -> bool:
        turn = self._closed_until
        return turn > latest or max(turn, loop_time()) >= deadline

    def _pass_on(self, given: bool = True) -> None:
        """Let the next in line ask."""
        self._is_asked = self._queue.serve(lambda: True)
