"""Find the circuit breaker for a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from .._lru import BoundedMap
from .._request.keys import QUICK_KEYS
from .breaker import CircuitBreaker

if TYPE_CHECKING:
    from .._request.request import HttpRequest

CircuitBreakerFactory: TypeAlias = Callable[[str], CircuitBreaker]
QuickLookup: TypeAlias = Callable[[str, str], CircuitBreaker | None]
_Key: TypeAlias = Callable[["HttpRequest"], str | None]


@dataclass(frozen=True, slots=True)
class OneForAll:
    """One circuit breaker for all requests."""

    circuit_breaker: CircuitBreaker

    def of(self, request: HttpRequest) -> CircuitBreaker:
        """Return the circuit breaker."""
        return self.circuit_breaker

    def quick(self) -> QuickLookup:
        """Return a function that finds the circuit breaker without a request."""
        return lambda host, method: self.circuit_breaker

    def in_use(self) -> dict[str, CircuitBreaker]:
        """Return the circuit breaker by its name."""
        return {self.circuit_breaker.name: self.circuit_breaker}

    def __repr__(self) -> str:
        return f"circuit_breaker={self.circuit_breaker!r}"


class PerKey:
    """A circuit breaker for each key, made on demand."""

    __slots__ = ("_circuit_breakers", "_factory", "_key", "_per")

    def __init__(
        self, per: str, key: _Key, factory: CircuitBreakerFactory | None
    ) -> None:
        self._per, self._key = per, key
        self._factory = CircuitBreaker if factory is None else factory
        self._circuit_breakers = BoundedMap(self._factory, kind=CircuitBreaker)

    def of(self, request: HttpRequest) -> CircuitBreaker | None:
        """Return the circuit breaker of a request, or None where there is none."""
        key = self._key(request)
        return None if key is None else self._circuit_breakers.get(key)

    def quick(self) -> QuickLookup | None:
        """Return a function that finds what is made already without a request."""
        if self._key not in QUICK_KEYS:
            return None
        key_of = QUICK_KEYS[self._key]
        get, touch = self._circuit_breakers.quick()

        def find(host: str, method: str) -> CircuitBreaker | None:
            key = key_of(host, method) if key_of and host else host
            circuit_breaker = get(key)
            if circuit_breaker is not None:
                touch(key)
            return circuit_breaker

        return find

    def in_use(self) -> dict[str, CircuitBreaker]:
        """Return the circuit breakers that there are now, by their keys."""
        return self._circuit_breakers.copy()

    def __repr__(self) -> str:
        return f"per={self._per!r}, factory={name_of(self._factory)}"


CircuitBreakers: TypeAlias = OneForAll | PerKey


def name_of(function: object) -> str:
    """Return what describes a function in one line."""
    return getattr(function, "__qualname__", None) or repr(function)
