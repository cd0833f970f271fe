"""Keep the turns of a storage in memory by the clock of a virtual event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict, deque
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from limits.aio.storage import MemoryStorage

from .._clock import NEAR, VirtualClock

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.storage import Storage

    Windows: TypeAlias = defaultdict[str, deque[float]]
    StoredWindows: TypeAlias = WeakKeyDictionary[Storage, Windows]

_windows: WeakKeyDictionary[asyncio.AbstractEventLoop, StoredWindows]
_windows = WeakKeyDictionary()
"""The times of turns, by key. Each loop begins anew, as its clock does."""


def is_memory(storage: Storage) -> bool:
    """Say whether a storage gives turns as memory does, by this process's clock."""
    if not isinstance(storage, MemoryStorage):
        return False
    # The library wraps the methods of each class again.
    given, own = type(storage).acquire_entry, MemoryStorage.acquire_entry
    return inspect.unwrap(given) is inspect.unwrap(own)


def virtual_windows(storage: Storage) -> Windows | None:
    """Return the turns that a storage has given in this loop; None in real time."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualClock):
        return None
    stored = _windows.setdefault(loop, WeakKeyDictionary())
    return stored.setdefault(storage, defaultdict(deque))


def take(windows: Windows, item: RateLimitItem, key: str, now: float) -> float:
    """Take a turn in a moving window; return 0.0, or the seconds until there is one."""
    taken, length = windows[item.key_for(key)], item.get_expiry()
    while taken and taken[0] + length <= now + NEAR:
        taken.popleft()
    if len(taken) >= item.amount:
        return taken[0] + length - now
    taken.append(now)
    return 0.0
