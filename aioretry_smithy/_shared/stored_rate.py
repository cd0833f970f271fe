"""Take turns at a rate that a storage of the library ``limits`` keeps."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections import defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from limits.aio.storage import MemoryStorage, MovingWindowSupport
from limits.aio.strategies import (
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)

from .._clock import NEAR, VirtualClock, loop_time
from .._limits.rate_limit import Admission
from .._limits.wait_queue import WaitQueue
from .storage_probe import PATIENCE, PAUSE

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.storage import Storage

    from .storage_probe import StorageProbe

    Windows: TypeAlias = defaultdict[str, deque[float]]
    StoredWindows: TypeAlias = WeakKeyDictionary[Storage, Windows]

_SOON = 0.001
"""Seconds to wait at least: a storage does not know its windows exactly."""

_windows: WeakKeyDictionary[asyncio.AbstractEventLoop, StoredWindows]
_windows = WeakKeyDictionary()
"""The times of turns, by key. Each loop begins anew, as its clock does."""


class StoredRate:
    """A rate that a storage keeps for any number of keys.

    In virtual time memory goes by the clock of the event loop.

    Args:
        storage: Keeps it in a moving window, else in a sliding window counter.
        item: The rate.

    Raises:
        NotImplementedError: The storage has neither of them.
    """

    def __init__(self, storage: Storage, item: RateLimitItem) -> None:
        self._item = item
        self._memory = storage if _is_memory(storage) else None
        self._limiter: RateLimiter
        if isinstance(storage, MovingWindowSupport):
            self._limiter = MovingWindowRateLimiter(storage)
        else:
            self._limiter = SlidingWindowCounterRateLimiter(storage)

    async def take(self, key: str) -> float:
        """Take a turn; return 0.0, or the seconds until there may be one."""
        memory = self._memory
        windows = None if memory is None else _virtual_windows(memory)
        if windows is not None:
            return _take(windows, self._item, key, loop_time())
        if await self._limiter.hit(self._item, key):
            return 0.0
        reset, remaining = await self._limiter.get_window_stats(self._item, key)
        # One was forgotten in between.
        if remaining > 0:
            return _SOON
        return min(max(reset - time.time(), _SOON), self._item.get_expiry())

    async def probe(self, key: str) -> None:
        """Ask the storage something that changes nothing."""
        await self._limiter.test(self._item, key)


def _is_memory(storage: Storage) -> bool:
    """Say whether a storage gives turns as memory does, by this process's clock."""
    if not isinstance(storage, MemoryStorage):
        return False
    # The library wraps the methods of each class again.
    given, own = type(storage).acquire_entry, MemoryStorage.acquire_entry
    return inspect.unwrap(given) is inspect.unwrap(own)


def _virtual_windows(storage: Storage) -> Windows | None:
    """Return the turns that a storage has given in this loop; None in real time."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualClock):
        return None
    stored = _windows.setdefault(loop, WeakKeyDictionary())
    return stored.setdefault(storage, defaultdict(deque))


def _take(windows: Windows, item: RateLimitItem, key: str, now: float) -> float:
    """Take a turn in a moving window; return 0.0, or the seconds until there is one."""
    taken, length = windows[item.key_for(key)], item.get_expiry()
    while taken and taken[0] + length <= now + NEAR:
        taken.popleft()
    if len(taken) >= item.amount:
        return taken[0] + length - now
    taken.append(now)
    return 0.0


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
        self, rate: StoredRate, key: str, storage: StorageProbe, *, allow: bool
    ) -> None:
        self._take = partial(rate.take, key)
        self._probe = partial(rate.probe, key)
        self._storage, self._allow = storage, allow
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
        seconds = PAUSE if self._storage.is_down else max(0.0, self._closed_until - now)
        return Admission(is_given=False, seconds=seconds)

    async def _is_given(self, started: float, latest: float, deadline: float) -> bool:
        if self._storage.is_down:
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
            if self._storage.is_down:
                return self._unasked()
            if self._asked is None or self._asked.done():
                self._asked = self._storage.ask(self._take)
            seconds = await self._storage.answer(self._asked, deadline)
            if seconds is None:
                return self._storage.is_down and self._allow and loop_time() < deadline
            self._asked = None
            if not seconds:
                return True
            self._closed_until = loop_time() + seconds
            self._queue.expire(self._closed_until)
        return False

    def _unasked(self) -> bool:
        self._storage.probe(self._probe)
        return self._allow

    def _is_late(self, latest: float, deadline: float) -> bool:
        turn = self._closed_until
        return turn > latest or max(turn, loop_time()) >= deadline

    def _pass_on(self, given: bool = True) -> None:
        """Let the next in line ask."""
        self._is_asked = self._queue.serve(lambda: True)
