"""Ask a storage of the library ``limits`` for turns at a rate."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections import defaultdict, deque
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from limits.aio import strategies
from limits.aio.storage import (
    MemoryStorage,
    MovingWindowSupport,
    SlidingWindowCounterSupport,
    Storage,
)
from limits.errors import ConfigurationError
from limits.storage import storage_from_string

from .._clock import NEAR, VirtualClock, loop_time
from .._errors import bad_argument, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from limits import RateLimitItem

    Options: TypeAlias = dict[str, float | str | bool]
    Windows: TypeAlias = defaultdict[str, deque[float]]
    Counters: TypeAlias = dict[str, "Counter"]


_STORAGE: Final = (
    "an asynchronous storage, or the URI of one, such as async+redis://localhost"
)
_OPTION: Final = "an option of the storage"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*(?=://)", re.ASCII | re.IGNORECASE)
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")

_OF_CLIENTS: Final = frozenset({"host"})
"""Options of clients of storages that look like a misspelt argument of ours."""


def storage_of(storage: object, options: Options, own: Collection[str]) -> Storage:
    """Return a storage, or make the one that a URI names.

    Args:
        storage: The storage, or the URI.
        options: What the storage that the URI names is made with.
        own: The names of the arguments beside them, one of which may be misspelt.

    Raises:
        ValueError: It is neither; or there is an option that the storage does not know,
            as far as can be told before it is asked.
    """
    if isinstance(storage, Storage):
        if options:
            names = ", ".join(options)
            raise bad_argument("storage_options", names, "none with a storage")
        return storage
    if isinstance(storage, str) and storage.startswith("async+"):
        made = _made(storage, options, own)
        if made is not None:
            return made
    # Not by way of the error, which shows the whole URI, or a part of it.
    raise bad_argument("storage", _shown(storage), _STORAGE)


def _made(uri: str, options: Options, own: Collection[str]) -> Storage | None:
    """Make the storage that a URI names; return None for an unreadable URI."""
    unknown = None
    try:
        made = cast("Storage", storage_from_string(uri, **options))
        unknown = _unknown(made, options, own)
        if unknown is None:
            return made
    except TypeError as error:
        unknown = _unexpected(error, options)
        if unknown is None:
            raise
    except ValueError:
        return None
    except ConfigurationError as error:
        if uri.removeprefix("async+") not in str(error):
            raise
        return None
    # Without the value, which may be a secret.
    expected = f"{_OPTION}{nearest(unknown, own)}"
    raise bad_argument("storage_options", unknown, expected)


def _unknown(storage: Storage, options: Options, own: Collection[str]) -> str | None:
    """Return the name of an option that a storage ignores, or fails with later."""
    known = inspect.signature(type(storage)).parameters
    # Memory takes any, and does nothing with it.
    is_memory = isinstance(storage, MemoryStorage)
    for name in options:
        looks_like_ours = name not in _OF_CLIENTS and nearest(name, own) != ""
        if name not in known and (is_memory or looks_like_ours):
            return name
    return _unknown_to_client(storage, options)


def _unknown_to_client(storage: Storage, options: Options) -> str | None:
    """Return an option that prevents all connections, if known."""
    client = getattr(getattr(storage, "bridge", None), "storage", None)
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        return None
    try:
        # It does not connect.
        pool.connection_class(**pool.connection_kwargs)
    except Exception as error:
        return _unexpected(error, options)
    return None


def _unexpected(error: Exception, options: Options) -> str | None:
    found = _UNEXPECTED.search(str(error))
    return found[1] if found is not None and found[1] in options else None


def _shown(storage: object) -> object:
    """Return what is no secret of a URI, or of what was given in place of one."""
    scheme = _SCHEME.match(storage) if isinstance(storage, str) else None
    if scheme is not None:
        return scheme[0]
    return None if storage is None else type(storage)


T = TypeVar("T")


class VirtualMemory(Generic[T]):
    """Keeps the contents of storages in memory, for each loop in virtual time.

    Each loop begins anew, as its clock does.

    Args:
        method: The method of a storage that keeps it. A class with its own has no part.
        make: Makes what a storage keeps at first.
    """

    def __init__(self, method: str, make: Callable[[], T]) -> None:
        self._method = method
        self._make = make
        self._kept: WeakKeyDictionary[
            asyncio.AbstractEventLoop, WeakKeyDictionary[Storage, T]
        ] = WeakKeyDictionary()

    def keeps(self, storage: Storage) -> bool:
        """Say whether a storage keeps rates in memory, by this process's clock."""
        if not isinstance(storage, MemoryStorage):
            return False
        # The library wraps the methods of each class again.
        given, own = (
            inspect.unwrap(getattr(kind, self._method))
            for kind in (type(storage), MemoryStorage)
        )
        return given is own

    def of(self, storage: Storage) -> T | None:
        """Return what a storage keeps in this loop; None in real time."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualClock):
            return None
        stored = self._kept.setdefault(loop, WeakKeyDictionary())
        if storage not in stored:
            stored[storage] = self._make()
        return stored[storage]


SOON = 0.001
"""Seconds to wait at least: a storage does not know its windows exactly."""


def _no_windows() -> Windows:
    return defaultdict(deque)


_windows: VirtualMemory[Windows] = VirtualMemory("acquire_entry", _no_windows)
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
        self._memory = storage if _windows.keeps(storage) else None
        self._limiter: strategies.RateLimiter
        if isinstance(storage, MovingWindowSupport):
            self._limiter = strategies.MovingWindowRateLimiter(storage)
        else:
            self._limiter = strategies.SlidingWindowCounterRateLimiter(storage)

    async def take(self, key: str, cost: int = 1) -> float:
        """Take a turn; return 0.0, or the seconds until there may be one."""
        memory = self._memory
        windows = None if memory is None else _windows.of(memory)
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
        """Send a query to the storage that changes no state."""
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


class StoredCounter:
    """A rate that a storage keeps in two numbers for each key, whatever turns cost.

    That is the sliding window counter: what was spent in the window before weighs less
    and less. A moving window would have an entry for each unit.

    Args:
        storage: Keeps it.
        item: The rate.

    Raises:
        ValueError: The storage has no such counter.
    """

    def __init__(self, storage: Storage, item: RateLimitItem) -> None:
        if not isinstance(storage, SlidingWindowCounterSupport):
            expected = "one with a sliding window counter, where there is a cost"
            raise bad_argument("storage", type(storage), expected)
        self._item = item
        self._storage = storage
        self._limiter = strategies.SlidingWindowCounterRateLimiter(storage)
        self._memory = storage if _counters.keeps(storage) else None

    async def take(self, key: str, cost: int = 1) -> float:
        """Take a turn of that *cost*, which is not above the limit.

        Returns:
            0.0, or the seconds until there may be one, if nobody else takes any.
        """
        memory = self._memory
        counters = None if memory is None else _counters.of(memory)
        item = self._item
        if counters is not None:
            counter = counters.setdefault(item.key_for(key), Counter())
            return counter.take(item, cost, loop_time())
        if await self._limiter.hit(item, key, cost=cost):
            return 0.0
        length = item.get_expiry()
        (
            before,
            before_left,
            present,
            present_left,
        ) = await self._storage.get_sliding_window(item.key_for(key), length)
        # The storage keeps a window for one more.
        left = max(0.0, present_left - length)
        counts = before, before_left, present, left
        return seconds_until(item.amount - cost, length, *counts)

    async def probe(self, key: str) -> None:
        """Send a query to the storage that changes no state."""
        await self._limiter.test(self._item, key)


def seconds_until(
    most: int,
    length: int,
    before: int,
    before_left: float,
    present: int,
    present_left: float,
) -> float:
    """Return the seconds until a counter is at *most* so high, if nothing is added.

    Args:
        most: What may have been spent.
        length: The seconds of a window.
        before: What was spent in the window before the present one.
        before_left: The seconds for which that still counts, less and less.
        present: What was spent in the present window.
        present_left: The seconds until it is over.
    """
    if present <= most:
        spent, counts_for, later = before, before_left, 0.0
        most -= present
    else:
        spent, counts_for, later = present, float(length), present_left
    # The counter rounds down.
    enough = (most + 1) * length / spent if spent else counts_for
    return later + max(0.0, counts_for - enough) + SOON


@dataclass(slots=True)
class Counter:
    """A sliding window counter, for virtual time."""

    number: int = 0
    """The number of the present window."""

    present: int = 0
    """Tokens spent in the present window."""

    before: int = 0
    """What was spent in the window before."""

    def take(self, item: RateLimitItem, cost: int, now: float) -> float:
        """Take a turn; return 0.0, or the seconds until there may be one."""
        length = item.get_expiry()
        number = floor((now + NEAR) / length)
        if number != self.number:
            self.before = self.present if number == self.number + 1 else 0
            self.number, self.present = number, 0
        left = max(0.0, (number + 1) * length - now)
        if floor(self.before * left / length) + self.present + cost <= item.amount:
            self.present += cost
            return 0.0
        counts = self.before, left, self.present, left
        return seconds_until(item.amount - cost, length, *counts)


def _no_counters() -> Counters:
    return {}


_counters: VirtualMemory[Counters] = VirtualMemory(
    "acquire_sliding_window_entry", _no_counters
)
"""The counters, by key."""
