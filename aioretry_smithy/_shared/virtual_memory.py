"""Keep in virtual time what a storage in memory would keep by the wall clock."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

from limits.aio.storage import MemoryStorage

from .._clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from limits.aio.storage import Storage

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
        """Say whether a storage keeps it as memory does, by this process's clock."""
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
