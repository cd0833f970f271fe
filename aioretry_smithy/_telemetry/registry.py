"""Keep metrics, one set for each registry, and the objects that gauges show."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._breaker.breaker import CircuitBreaker
    from .._endpoints.state import Group
    from .._limits.concurrency_limit import ConcurrencyLimit
    from .._retry.budget import RetryBudget

M = TypeVar("M")
T = TypeVar("T", bound="CircuitBreaker | ConcurrencyLimit | Group | RetryBudget")

_made: WeakKeyDictionary[object, dict[object, Any]] = WeakKeyDictionary()
_lock = Lock()


def one_per_registry(owner: object, kind: object, make: Callable[[], M]) -> M:
    """Return the one object of a kind for an owner; make it if there is none."""
    with _lock:
        found = _made.setdefault(owner, {})
        if kind not in found:
            found[kind] = make()
        thing: M = found[kind]
        return thing


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


LIMIT_GAUGES: Final[tuple[tuple[str, Callable[[ConcurrencyLimit], int], str], ...]] = (
    # As it was when it was looked at last: gauges are read in another thread, where a
    # function of the user's is not to be called.
    ("limit", lambda each: each._seen or 0, "Requests that may be in flight at once."),
    ("in_flight", lambda each: each.in_flight, "Requests in flight."),
    ("pending", lambda each: each.pending, "Requests that wait for a place."),
)
"""The name of each gauge of a concurrency limit, its value, and its description."""
