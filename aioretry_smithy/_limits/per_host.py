"""Find the limit of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from .._lru import BoundedMap
from .._request.keys import host_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._request.request import HttpRequest

L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class OneForAll(Generic[L]):
    """One limit for all requests, and its key."""

    key: str
    limit: L

    def of(self, request: HttpRequest) -> L:
        """Return the limit."""
        return self.limit

    def quick(self) -> Callable[[str], L | None]:
        """Return a function that finds the limit without a request."""
        return lambda host: self.limit

    def in_use(self) -> dict[str, L]:
        """Return the limit by its key."""
        return {self.key: self.limit}

    def __repr__(self) -> str:
        return f"{self.limit!r}"


class PerHost(Generic[L]):
    """A limit for each host and port, made on demand.

    Args:
        factory: Makes the limit of a key.
        description: How the factory is shown.
    """

    __slots__ = ("_description", "_limits")

    def __init__(self, factory: Callable[[str], L], description: str) -> None:
        self._limits = BoundedMap(factory)
        self._description = description

    def of(self, request: HttpRequest) -> L | None:
        """Return the limit of a request; None for one without a host."""
        key = host_key(request)
        return None if key is None else self._limits.get(key)

    def quick(self) -> Callable[[str], L | None]:
        """Return a function that finds what is made already by its host key."""
        get, touch = self._limits.quick()

        def find(host: str) -> L | None:
            limit = get(host)
            if limit is not None:
                touch(host)
            return limit

        return find

    def in_use(self) -> dict[str, L]:
        """Return the limits that there are now, by their keys."""
        return self._limits.copy()

    def __repr__(self) -> str:
        return f"per='host', factory={self._description}"


Limits: TypeAlias = OneForAll[L] | PerHost[L]
