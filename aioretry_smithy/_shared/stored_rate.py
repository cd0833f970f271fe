"""Ask a storage of the library ``limits`` for turns at a rate."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING, TypeAlias

from limits.aio.storage import MovingWindowSupport
from limits.aio.strategies import (
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)

from .._clock import NEAR, loop_time
from .virtual_memory import VirtualMemory

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.storage import Storage

    Windows: TypeAlias = defaultdict[str, deque[float]]

SOON = 0.001
"""Seconds to wait at least: a storage does not know its windows exactly."""


def _no_windows() -> Windows:
    return defaultdict(deque)


_memory: VirtualMemory[Windows] = VirtualMemory("acquire_entry", _no_windows)
"""The times of turns, by key."""


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
        self._memory = storage if _memory.keeps(storage) else None
        self._limiter: RateLimiter
        if isinstance(storage, MovingWindowSupport):
            self._limiter = MovingWindowRateLimiter(storage)
        else:
            self._limiter = SlidingWindowCounterRateLimiter(storage)

    async def take(self, key: str, cost: int = 1) -> float:
        """Take a turn; return 0.0, or the seconds until there may be one."""
        memory = self._memory
        windows = None if memory is None else _memory.of(memory)
        if windows is not None:
            return _take(windows, self._item, key, loop_time())
        if await self._limiter.hit(self._item, key):
            return 0.0
        reset, remaining = await self._limiter.get_window_stats(self._item, key)
        # One was forgotten in between.
        if remaining > 0:
            return SOON
        return min(max(reset - time.time(), SOON), self._item.get_expiry())

    async def probe(self, key: str) -> None:
        """Ask the storage something that changes nothing."""
        await self._limiter.test(self._item, key)


def _take(windows: Windows, item: RateLimitItem, key: str, now: float) -> float:
    """Take a turn in a moving window; return 0.0, or the seconds until there is one."""
    taken, length = windows[item.key_for(key)], item.get_expiry()
    while taken and taken[0] + length <= now + NEAR:
        taken.popleft()
    if len(taken) >= item.amount:
        return taken[0] + length - now
    taken.append(now)
    return 0.0
