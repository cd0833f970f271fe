"""Take turns at a rate that a storage of the library ``limits`` keeps."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from limits.aio.storage import MemoryStorage, MovingWindowSupport
from limits.aio.strategies import (
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)

from .._clock import VirtualClock, loop_time
from .._limits.bucket import NEAR

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.storage import Storage

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

    __slots__ = ("_item", "_limiter", "_memory")

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

    async def look(self, key: str) -> None:
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
