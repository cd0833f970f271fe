"""Keep a bounded number of counts by key, and all others together."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, Self, TypeVar

MOST_KEYS: Final = 2000
"""How many keys are kept while counting; more than are shown, for the order changes."""


class Mergeable(Protocol):
    """Counts something, and can take over what another one has counted."""

    def merge(self, other: Self, /) -> None:
        """Count what another one has counted."""

    @property
    def weight(self) -> float:
        """How much there is of it."""


class Sums:
    """Numbers that are added up, one for each slot of the class; the first weighs."""

    __slots__: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0.0)

    @property
    def weight(self) -> float:
        """How much there is of it."""
        weight: float = getattr(self, self.__slots__[0])
        return weight

    def merge(self, other: Self) -> None:
        """Count what another one has counted."""
        for name in self.__slots__:
            total = getattr(self, name)
            total += getattr(other, name)
            setattr(self, name, total)


KeyT = TypeVar("KeyT", bound=Hashable)
CountT = TypeVar("CountT", bound=Mergeable)


def _rank(key: Hashable, count: Mergeable) -> tuple[float, str]:
    """Order counts: the largest first, equal ones (but for rounding) by their keys."""
    return -round(count.weight, 6), str(key)


class Table(Generic[KeyT, CountT]):
    """Counts by key; where there are too many keys the rarest go to the others.

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
        """Whether keys had to go while it counted."""
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
