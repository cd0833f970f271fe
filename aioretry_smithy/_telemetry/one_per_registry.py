"""Make one set of metrics for each registry, or for each provider."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_made: WeakKeyDictionary[Any, dict[object, Any]] = WeakKeyDictionary()
_lock = Lock()


def one_per_registry(owner: object, kind: object, make: Callable[[], T]) -> T:
    """Return the one object of a kind for an owner; make it if there is none."""
    with _lock:
        found = _made.setdefault(owner, {})
        if kind not in found:
            found[kind] = make()
        thing: T = found[kind]
        return thing
