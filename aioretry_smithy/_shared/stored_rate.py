"""Take turns at a rate that a storage of the library ``limits`` keeps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from limits.aio.storage import MovingWindowSupport
from limits.aio.strategies import (
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)

from .._clock import loop_time
from .virtual_windows import is_memory, take, virtual_windows

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.storage import Storage

_SOON = 0.001
"""Seconds to wait at least: a storage does not know its windows exactly."""


class StoredRate:
    """A rate that a storage keeps for any number of keys.

    In virtual time memory goes by the clock of the event loop.

    Args:
        storage: Keeps it in a moving window, else in a sliding window counter.
        item: The rate.

    Raises:
        NotImplementedError: The storage has neither of them.
    """

    __slots__ = ("_item", "_limiter", "_memory")

    def __init__(self, storage: Storage, item: RateLimitItem) -> None:
        self._item = item
        self._memory = storage if is_memory(storage) else None
        self._limiter: RateLimiter
        if isinstance(storage, MovingWindowSupport):
            self._limiter = MovingWindowRateLimiter(storage)
        else:
            self._limiter = SlidingWindowCounterRateLimiter(storage)

    async def take(self, key: str) -> float:
        """Take a turn; return 0.0, or the seconds until there may be one."""
        memory = self._memory
        windows = None if memory is None else virtual_windows(memory)
        if windows is not None:
            return take(windows, self._item, key, loop_time())
        if await self._limiter.hit(self._item, key):
            return 0.0
        reset, remaining = await self._limiter.get_window_stats(self._item, key)
        # One was forgotten in between.
        if remaining > 0:
            return _SOON
        return min(max(reset - time.time(), _SOON), self._item.get_expiry())

    async def look(self, key: str) -> None:
        """Ask the storage something that changes nothing."""
        await self._limiter.test(self._item, key)
