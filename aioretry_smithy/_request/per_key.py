"""Find the breaker or limit of a request: one for all, or one for each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from .._lru import BoundedMap
from .._text import name_of
from .keys import host_key, origin_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .request import HttpRequest

T = TypeVar("T")

# No text begins with one of no texts.
_NONE_YET: Final[tuple[tuple[()], None]] = (), None


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

    __slots__ = ("_factory", "_key", "_newest", "_per", "_values")

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
        self._newest: tuple[str | tuple[()], T | None] = _NONE_YET

    def of(self, request: HttpRequest) -> T | None:
        """Return the value of a request; None for one without a key."""
        target = request.target
        beginning, value = self._newest
        # Most programs call one host at a time.
        if type(target) is str and target.startswith(beginning):
            return value
        key = self._key(request)
        if key is None:
            return None
        value = self._values.get(key)
        if self._key is host_key and (origin := origin_of(request)) is not None:
            self._newest = f"{origin}/", value
        return value

    def in_use(self) -> dict[str, T]:
        """Return the values that there are now, by their keys."""
        return self._values.copy()

    def __repr__(self) -> str:
        return f"per={self._per!r}, factory={name_of(self._factory)}"
