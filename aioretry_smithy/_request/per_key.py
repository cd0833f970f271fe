"""Find the breaker or limit of a request: one for all, or one for each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from .._lru import BoundedMap
from .._text import name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .request import HttpRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OneForAll(Generic[T]):
    """One value for all requests, such as a circuit breaker, and its key."""

    key: str
    value: T

    def of(self, request: HttpRequest) -> T:
        """Return the value."""
        return self.value

    def in_use(self) -> dict[str, T]:
        """Return the value by its key."""
        return {self.key: self.value}

    def __repr__(self) -> str:
        return repr(self.value)


class PerKey(Generic[T]):
    """A value for each key, made on demand.

    Args:
        per: The key in words, such as ``host``.
        key: Makes the key of a request; None for a request that has none.
        make: Makes the value of a key.
        factory: The function of the user's that *make* is, or calls.
        kind: The class of all values, where *make* may return another.
    """

    __slots__ = ("_factory", "_key", "_per", "_values")

    def __init__(
        self,
        per: str,
        key: Callable[[HttpRequest], str | None],
        make: Callable[[str], T],
        factory: object,
        kind: type[T] | None = None,
    ) -> None:
        self._per, self._key, self._factory = per, key, factory
        self._values = BoundedMap(make, kind=kind)

    def of(self, request: HttpRequest) -> T | None:
        """Return the value of a request; None for one without a key."""
        key = self._key(request)
        return None if key is None else self._values.get(key)

    def in_use(self) -> dict[str, T]:
        """Return the values that there are now, by their keys."""
        return self._values.copy()

    def __repr__(self) -> str:
        return f"per={self._per!r}, factory={name_of(self._factory)}"
