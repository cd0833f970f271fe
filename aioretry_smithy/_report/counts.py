"""Count in bounded memory: histograms, sums, and tables of them by key."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, Self, TypeVar


def whole(value: float) -> float:
    """Return a count as an int, unless sampled lines made it a fraction."""
    near = round(value)
    return near if abs(value - near) < 1e-6 else round(value, 6)


def ratio(part: float, all_of_it: float) -> float:
    """Return a ratio; 0 if the total is 0."""
    return part / all_of_it if all_of_it else 0.0


_WIDTH: Final = 0.01
_SCALE: Final = 1 / math.log1p(_WIDTH)
_MIDDLE: Final = 1 + _WIDTH / 2
_NOTHING: Final = -5000
"""The bucket of 0, far below that of any time that is measured."""


def bucket_of(value: float) -> int:
    """Return the bucket of a number >= 0: each is 1 % wide.

    >>> bucket_of(1.0), bucket_of(1.005), bucket_of(1.015)
    (0, 0, 1)
    """
    return math.floor(math.log(value) * _SCALE) if value > 1e-9 else _NOTHING


def value_of(bucket: int) -> float:
    """Return the middle of a bucket.

    >>> round(value_of(bucket_of(0.25)), 2)
    0.25
    """
    return 0.0 if bucket == _NOTHING else (1 + _WIDTH) ** bucket * _MIDDLE


class Histogram:
    """Counts numbers >= 0 in buckets that are 1 % wide, each with a weight.

    >>> histogram = Histogram()
    >>> for seconds in (0.1, 0.2, 0.4):
    ...     histogram.add(bucket_of(seconds), seconds, 1.0)
    >>> round(histogram.quantile(0.5), 2), histogram.largest
    (0.2, 0.4)
    """

    __slots__ = ("buckets", "largest")

    buckets: dict[int, float]
    """The weights in each bucket that is not empty."""

    largest: float | None

    def __init__(self) -> None:
        self.buckets = {}
        self.largest = None

    def add(self, bucket: int, value: float, weight: float) -> None:
        """Count a number, whose bucket is known."""
        self.buckets[bucket] = self.buckets.get(bucket, 0.0) + weight
        if self.largest is None or value > self.largest:
            self.largest = value

    def __iadd__(self, other: Histogram) -> Self:
        """Add the counts of *other*."""
        for bucket, weight in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0.0) + weight
        if other.largest is not None:
            self.largest = max(other.largest, self.largest or 0.0)
        return self

    def bucket_at(self, quantile: float) -> int | None:
        """Return the bucket of a quantile; None if empty."""
        rank = quantile * sum(self.buckets.values()) * (1 - 1e-12)
        counted = 0.0
        found = None
        for found in sorted(self.buckets):
            counted += self.buckets[found]
            if counted >= rank:
                break
        return found

    def quantile(self, quantile: float) -> float | None:
        """Return a quantile of the numbers; None if empty.

        At most 1 % off; None where there is nothing.
        """
        bucket = self.bucket_at(quantile)
        if bucket is None or self.largest is None:
            return None
        return min(value_of(bucket), self.largest)


MOST_KEYS: Final = 2000
"""How many keys are kept while counting; more than are shown, for the order changes."""


class Mergeable(Protocol):
    """A counter that can be merged with a counter of the same type."""

    def merge(self, other: Self, /) -> None:
        """Add the counts of *other*."""

    @property
    def weight(self) -> float:
        """The weight by which entries are ranked."""


class Sums:
    """Numbers that are added up, one for each slot of the class; the first weighs."""

    __slots__: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0.0)

    @property
    def weight(self) -> float:
        """The weight by which entries are ranked."""
        weight: float = getattr(self, self.__slots__[0])
        return weight

    def merge(self, other: Self) -> None:
        """Add the counts of *other*."""
        for name in self.__slots__:
            total = getattr(self, name)
            total += getattr(other, name)
            setattr(self, name, total)


KeyT = TypeVar("KeyT", bound=Hashable)
CountT = TypeVar("CountT", bound=Mergeable)


def _rank(key: Hashable, count: Mergeable) -> tuple[float, str]:
    """Order counts: the largest first, equal ones (but for rounding) by their keys."""
    return -round(count.weight, 6), str(key)


class CountTable(Generic[KeyT, CountT]):
    """Counts by key; with too many keys, the rarest are merged into "others".

    Args:
        new: Makes a count of nothing.
        most: How many keys are kept.
    """

    def __init__(self, new: Callable[[], CountT], most: int = MOST_KEYS) -> None:
        self._new = new
        self._most = most
        self._counts: dict[KeyT, CountT] = {}
        self.others: CountT = new()
        self.merged = 0

    @property
    def was_full(self) -> bool:
        """Whether keys were dropped because of the limit."""
        return self.merged > 0

    def at(self, key: KeyT) -> CountT:
        """Return the count of a key."""
        count = self._counts.get(key)
        if count is None:
            if len(self._counts) >= self._most:
                self._merge_rarest(self._most // 2)
            count = self._counts[key] = self._new()
        return count

    def largest(self, most: int) -> list[tuple[KeyT, CountT]]:
        """Return the keys with the most, and put all others together."""
        if len(self._counts) > most:
            self._merge_rarest(most)
        return self._ranked()

    def _ranked(self) -> list[tuple[KeyT, CountT]]:
        return sorted(self._counts.items(), key=lambda pair: _rank(*pair))

    def _merge_rarest(self, kept: int) -> None:
        ranked = self._ranked()
        for key, count in ranked[kept:]:
            self.others.merge(count)
            self.merged += 1
            del self._counts[key]
