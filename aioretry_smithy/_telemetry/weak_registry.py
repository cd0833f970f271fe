"""Keep the objects of gauges weakly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from .._breaker.breaker import CircuitBreaker
    from .._limits.concurrency_limit import ConcurrencyLimit
    from .._retry.budget import RetryBudget

T = TypeVar("T", bound="CircuitBreaker | ConcurrencyLimit | RetryBudget")


class WeakRegistry(Generic[T]):
    """Keeps the things that a gauge shows, weakly, and one of each name.

    Another thread may ask for them.
    """

    def __init__(self) -> None:
        self._things: WeakValueDictionary[str, T] = WeakValueDictionary()

    def add(self, thing: T) -> None:
        """Show *thing* from now on, and no other one of its name."""
        self._things[thing.name] = thing

    def all(self) -> list[T]:
        """Return the things that are alive."""
        # In one piece, unlike values(), which another thread may disturb.
        references = self._things.valuerefs()
        return [thing for found in references if (thing := found()) is not None]
