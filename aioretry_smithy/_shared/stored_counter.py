"""Ask a storage of the library ``limits`` for turns that cost more or less."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, TypeAlias

from limits.aio.storage import SlidingWindowCounterSupport
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from .._clock import NEAR, loop_time
from .._errors import bad_argument
from .stored_rate import SOON
from .virtual_memory import VirtualMemory

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.storage import Storage

    Counters: TypeAlias = dict[str, "Counter"]


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
        self._limiter = SlidingWindowCounterRateLimiter(storage)
        self._memory = storage if _memory.keeps(storage) else None

    async def take(self, key: str, cost: int = 1) -> float:
        """Take a turn of that *cost*, which is not above the limit.

        Returns:
            0.0, or the seconds until there may be one, if nobody else takes any.
        """
        memory = self._memory
        counters = None if memory is None else _memory.of(memory)
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
        """Ask the storage something that changes nothing."""
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
    """What was spent in it."""

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


_memory: VirtualMemory[Counters] = VirtualMemory(
    "acquire_sliding_window_entry", _no_counters
)
"""The counters, by key."""
