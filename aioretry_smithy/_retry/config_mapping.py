"""Choose the settings of a retrying client for each call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import bad_argument
from .._lru import BoundedMap
from .._request.keys import host_and_method_key, host_key, method_key
from .._text import name_of
from .config import RetryConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


class RetryConfigMapping:
    """Finds the settings of a call by a key, such as its host.

    It makes the settings of a key once, and keeps those of the 1024 most recently used
    keys; so any number of hosts may be called. After Armeria's
    ``RetryConfigMapping``.

    >>> mapping = RetryConfigMapping.per_host(
    ...     lambda host: RetryConfig.no_retry()
    ...     if host == "slow.example.com:443"
    ...     else RetryConfig(RetryStrategy.failsafe(), max_total_attempts=3)
    ... )
    >>> decorator = RetryingClient.new_mapped_decorator(mapping)
    """

    __slots__ = ("_configs", "_factory", "_key_fn", "_name")

    def __init__(
        self,
        name: str,
        key_fn: Callable[[ClientRequestContext, HttpRequest], str | None],
        factory: Callable[[str], RetryConfig],
    ) -> None:
        if not callable(key_fn):
            raise bad_argument("key_fn", key_fn, "a function of context and request")
        self._name = name
        self._key_fn = key_fn
        self._factory = factory
        self._configs = BoundedMap(factory, kind=RetryConfig)

    @classmethod
    def of(
        cls,
        key_fn: Callable[[ClientRequestContext, HttpRequest], str],
        factory: Callable[[str], RetryConfig],
    ) -> RetryConfigMapping:
        """Make a mapping with a key of your own.

        Args:
            key_fn: Called with the context and the request of each call; returns its
                key.
            factory: Called with a key; returns the settings for it.

        Raises:
            ValueError: An argument is not a function.

        >>> mapping = RetryConfigMapping.of(
        ...     lambda ctx, request: request.url.path,
        ...     lambda path: RetryConfig(RetryStrategy.failsafe()),
        ... )
        """
        return cls("of", key_fn, factory)

    @classmethod
    def per_host(cls, factory: Callable[[str], RetryConfig]) -> RetryConfigMapping:
        """Make a mapping by server.

        Args:
            factory: Called with a key like ``example.com:443``, always with the port;
                returns the settings for it.
        """
        return cls("per_host", lambda ctx, request: host_key(request), factory)

    @classmethod
    def per_method(cls, factory: Callable[[str], RetryConfig]) -> RetryConfigMapping:
        """Make a mapping by method.

        Args:
            factory: Called with a key like ``GET``; returns the settings for it.

        >>> budgets = RetryBudget.per_host()
        >>> reads = RetryConfig.standard(max_total_attempts=4, limiter=budgets)
        >>> writes = RetryConfig.standard(max_total_attempts=2, limiter=budgets)
        >>> mapping = RetryConfigMapping.per_method(
        ...     lambda method: reads if method == "GET" else writes
        ... )
        """
        return cls("per_method", lambda ctx, request: method_key(request), factory)

    @classmethod
    def per_host_and_method(
        cls, factory: Callable[[str], RetryConfig]
    ) -> RetryConfigMapping:
        """Make a mapping by server and method.

        Args:
            factory: Called with a key like ``example.com:443#GET``; returns the
                settings for it.
        """
        return cls(
            "per_host_and_method",
            lambda ctx, request: host_and_method_key(request),
            factory,
        )

    def config_for(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> RetryConfig:
        """Return the settings for a call.

        Raises:
            ValueError: The key is not a str, or the factory returns no settings.
        """
        key: object = self._key_fn(ctx, request)
        if isinstance(key, str):
            return self._configs.get(key)
        if key is None and self._name != "of":
            # An invalid URL: one attempt, and aiohttp reports it.
            return _NO_RETRY
        raise bad_argument("key_fn", key, "returns a str")

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self._name}({name_of(self._factory)})"


_NO_RETRY = RetryConfig.no_retry()
