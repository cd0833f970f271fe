"""Decorators with a circuit breaker for each host, method or path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from .._errors import unqualified
from .._request.keys import (
    OneForAll,
    PerKey,
    host_and_method_key,
    host_and_path_key,
    host_key,
    method_key,
)
from .breaker import CircuitBreaker

if TYPE_CHECKING:
    import aiohttp

    from .._context.client import Decorator
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .strategy import AnyJudge


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


Fallback: TypeAlias = Callable[
    ["ClientRequestContext", "HttpRequest"],
    "aiohttp.ClientResponse | Awaitable[aiohttp.ClientResponse]",
]


class PerKeyDecorators(ABC):
    """The decorators of a client that finds its circuit breakers by keys."""

    @classmethod
    @unqualified
    def new_per_host_decorator(
        cls,
        factory: CircuitBreakerFactory | None = None,
        strategy: AnyJudge | None = None,
        *,
        fallback: Fallback | None = None,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Decorator:
        """Return a decorator with a circuit breaker for each host and port.

        All sessions built with the decorator share the circuit breakers. The 1024 most
        recently used are kept. A URL without a host goes through unasked.

        Args:
            factory: Makes the circuit breaker of a key, such as ``example.com:443``;
                by default ``CircuitBreaker(key)``.
            strategy: As for :meth:`CircuitBreakerClient.new_decorator`.
            fallback: As for :meth:`CircuitBreakerClient.new_decorator`.
            enforce: As for :meth:`CircuitBreakerClient.new_decorator`.
            wait_for_ready: As for :meth:`CircuitBreakerClient.new_decorator`.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> def breaker(key):
        ...     return CircuitBreaker(key, minimum_request_threshold=5)
        >>> decorator = CircuitBreakerClient.new_per_host_decorator(breaker)
        """
        return cls._decorator(
            circuit_breakers_per("host", host_key, factory),
            strategy,
            fallback,
            enforce=enforce,
            wait_for_ready=wait_for_ready,
        )

    @classmethod
    @unqualified
    def new_per_method_decorator(
        cls,
        factory: CircuitBreakerFactory | None = None,
        strategy: AnyJudge | None = None,
        *,
        fallback: Fallback | None = None,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Decorator:
        """Return a decorator with a circuit breaker for each method.

        Otherwise as :meth:`new_per_host_decorator`; a key is ``GET``.

        >>> decorator = CircuitBreakerClient.new_per_method_decorator()
        """
        per_key = circuit_breakers_per("method", method_key, factory)
        return cls._decorator(
            per_key,
            strategy,
            fallback,
            enforce=enforce,
            wait_for_ready=wait_for_ready,
        )

    @classmethod
    @unqualified
    def new_per_host_and_method_decorator(
        cls,
        factory: CircuitBreakerFactory | None = None,
        strategy: AnyJudge | None = None,
        *,
        fallback: Fallback | None = None,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Decorator:
        """Return a decorator with a circuit breaker for each host, port and method.

        Otherwise as :meth:`new_per_host_decorator`; a key is ``example.com:443#GET``.

        >>> decorator = CircuitBreakerClient.new_per_host_and_method_decorator()
        """
        per_key = circuit_breakers_per("host and method", host_and_method_key, factory)
        return cls._decorator(
            per_key,
            strategy,
            fallback,
            enforce=enforce,
            wait_for_ready=wait_for_ready,
        )

    @classmethod
    @unqualified
    def new_per_path_decorator(
        cls,
        factory: CircuitBreakerFactory | None = None,
        strategy: AnyJudge | None = None,
        *,
        fallback: Fallback | None = None,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Decorator:
        """Return a decorator with a circuit breaker for each host, port and path.

        Use it for a server where one path may fail while others work. Where paths
        have identifiers in them, such as ``/orders/17``, few requests share a circuit
        breaker, and it may never open: take :meth:`new_per_host_decorator` there.

        Otherwise as :meth:`new_per_host_decorator`; a key is
        ``example.com:443/orders``, without the query.

        >>> decorator = CircuitBreakerClient.new_per_path_decorator()
        """
        per_key = circuit_breakers_per("host and path", host_and_path_key, factory)
        return cls._decorator(
            per_key,
            strategy,
            fallback,
            enforce=enforce,
            wait_for_ready=wait_for_ready,
        )

    @classmethod
    @abstractmethod
    def _decorator(
        cls,
        circuit_breakers: CircuitBreakers,
        strategy: AnyJudge | None,
        fallback: Fallback | None,
        *,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Decorator:
        """Return a decorator that asks *circuit_breakers*."""
