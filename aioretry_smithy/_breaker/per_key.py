"""Find the circuit breaker for a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from .._request.per_key import OneForAll, PerKey
from .breaker import CircuitBreaker

if TYPE_CHECKING:
    from .._request.request import HttpRequest

CircuitBreakerFactory: TypeAlias = Callable[[str], CircuitBreaker]
CircuitBreakers: TypeAlias = OneForAll[CircuitBreaker] | PerKey[CircuitBreaker]


def circuit_breakers_per(
    per: str,
    key: Callable[[HttpRequest], str | None],
    factory: CircuitBreakerFactory | None,
) -> CircuitBreakers:
    """Return the circuit breakers that a factory makes, by default plain ones."""
    make = CircuitBreaker if factory is None else factory
    return PerKey(per, key, make, make, CircuitBreaker)
