"""Scopes: which calls share a quota or a rate limiter."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from .._errors import bad_argument
from .._lru import BoundedMap

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class PerScope(Generic[T]):
    """One object for each scope, made on demand, or a given one for all of them.

    Threads may ask at once. Of 1024 scopes those stay that were asked for last.
    """

    __slots__ = ("_lock", "_made", "given")

    given: T | None
    """The one for all, or None."""

    def __init__(self, factory: Callable[[], T], given: T | None = None) -> None:
        self.given = given
        self._made = BoundedMap(lambda scope: factory())
        self._lock = threading.Lock()

    def get(self, token_scope: str | None = None) -> T:
        """Return the object of a scope; None has no name, nor has an empty str."""
        check_token_scope(token_scope)
        if self.given is not None:
            return self.given
        with self._lock:
            return self._made.get(token_scope or "")


def check_token_scope(value: object) -> None:
    """Refuse an argument that names no scope."""
    if value is not None and not isinstance(value, str):
        raise bad_argument("token_scope", value, "a str, or None")
