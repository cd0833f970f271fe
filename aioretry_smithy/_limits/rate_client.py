"""Let requests go out at a rate."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from .._context.client import DecoratingClient, HttpClient
from .._errors import bad_argument
from .._request.keys import host_key
from .._request.per_key import OneForAll, PerKey
from .rate_limit import RateLimit
from .turn_hooks import TurnHooks
from .waiting import check_timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._context.client import Decorator

    RateLimits: TypeAlias = OneForAll[RateLimit] | PerKey[RateLimit]


class RateLimitingClient(DecoratingClient[HttpClient]):
    """Lets each request wait for its turn at a rate, first come, first served.

    Inside a retrying client, as usual, each attempt waits for a turn of its own. The
    wait is the ``delay`` of the attempt before, or of the call, with ``"rate_limit"``
    as its ``delay_source``; the attempt and its timeout begin after it. A request whose
    turn comes too late raises a :class:`RateLimitError` at once.

    >>> decorator = RateLimitingClient.new_decorator(RateLimit(50))
    """

    _serves = "sessions"

    def __init__(
        self, delegate: HttpClient, limits: RateLimits, timeout: float | None
    ) -> None:
        super().__init__(delegate)
        self._limits = limits
        self._timeout = timeout
        self._hooks = TurnHooks(limits, timeout)

    @classmethod
    def new_decorator(
        cls, limit: RateLimit, *, timeout: float | None = None
    ) -> Decorator:
        """Return a decorator with one rate for all requests.

        Args:
            limit: The rate.
            timeout: Longest wait of a request in seconds, finite and >= 0; its deadline
                may end it sooner. None: only the deadline ends it.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.
        """
        if not isinstance(limit, RateLimit):
            raise bad_argument("limit", limit, "a RateLimit")
        return cls._decorator(OneForAll("all", limit), timeout)

    @classmethod
    def new_per_host_decorator(
        cls, factory: Callable[[str], RateLimit], *, timeout: float | None = None
    ) -> Decorator:
        """Return a decorator with a rate for each host and port.

        All sessions built with the decorator share the rates. The 1024 most recently
        used are kept. A URL without a host goes through unasked.

        Args:
            factory: Makes the limit of a key, such as ``example.com:443``.
            timeout: As for :meth:`new_decorator`.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> decorator = RateLimitingClient.new_per_host_decorator(
        ...     lambda key: RateLimit(100, per=60.0)
        ... )
        """
        if not callable(factory):
            raise bad_argument("factory", factory, "a callable that takes the key")
        limits = PerKey("host", host_key, factory, factory, RateLimit)
        return cls._decorator(limits, timeout)

    @classmethod
    def _decorator(cls, limits: RateLimits, timeout: float | None) -> Decorator:
        check_timeout(timeout)
        return lambda delegate: cls(delegate, limits, timeout)

    @property
    def limits(self) -> Mapping[str, RateLimit]:
        """The limits in use by their keys, as of now, for health pages.

        The key of the one given to :meth:`new_decorator` is ``all``.
        """
        return MappingProxyType(self._limits.in_use())

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        return f"{type(self).__name__}({self._limits!r}, timeout={self._timeout!r})"
