"""Let requests go out at a rate."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from .._call.short_lane import LaneStep
from .._clock import loop_time
from .._errors import bad_argument
from .._failures.safety import mark_queued
from .._request.keys import host_key
from .._request.per_key import OneForAll, PerKey
from .limited_calls import LimitedCalls, check_timeout, note_queue
from .rate_limit import Permit, RateLimit, give_back
from .rate_limit_error import RateLimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import aiohttp

    from .._call.client import Decorator, HttpClient
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

    RateLimits: TypeAlias = OneForAll[RateLimit] | PerKey[RateLimit]


class RateLimitingClient(LimitedCalls[Permit]):
    """Lets each request wait for its turn at a rate, first come, first served.

    Inside a retrying client, as usual, each attempt waits for a turn of its own. The
    wait is the ``delay`` of the attempt before, or of the call, with ``"rate_limit"``
    as its ``delay_source``; the attempt and its timeout begin after it. A request whose
    turn comes too late raises a :class:`RateLimitError` at once.

    >>> decorator = RateLimitingClient.new_decorator(RateLimit(50))
    """

    def __init__(
        self, delegate: HttpClient, limits: RateLimits, timeout: float | None
    ) -> None:
        super().__init__(delegate)
        self._limits = limits
        self._timeout = timeout

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

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Wait for the turn of *request*, pass it on, and learn from the answer."""
        permit = await self._permit(ctx, request)
        if permit is None:
            return await self.delegate.execute(ctx, request)
        try:
            response = await self.delegate.execute(ctx, request)
        except BaseException:
            permit._lose()
            raise
        permit._learn(response)
        return response

    @property
    def limits(self) -> Mapping[str, RateLimit]:
        """The limits in use by their keys, as of now, for health pages.

        The key of the one given to :meth:`new_decorator` is ``all``.
        """
        return MappingProxyType(self._limits.in_use())

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        return f"{type(self).__name__}({self._limits!r}, timeout={self._timeout!r})"

    def _lane_step(self) -> LaneStep:
        find: Any = self._limits.quick()  # None is for keys of paths

        def try_take(host: str, method: str, now: float) -> Permit | None:
            limit = find(host, method)
            return None if limit is None else limit._try_take(now)

        return LaneStep(try_take, _succeed, give_back)

    async def _take(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Permit | None:
        limit = self._limits.of(request)
        if limit is None:
            return None
        return limit._try_take(loop_time()) or await self._wait(limit, ctx, request)

    async def _wait(
        self, limit: RateLimit, ctx: ClientRequestContext, request: HttpRequest
    ) -> Permit:
        started = loop_time()
        # That of the attempt has not begun.
        deadline = started + ctx.root.remaining()
        latest = math.inf if self._timeout is None else started + self._timeout
        turn = await limit._turn(ctx, request, latest, deadline)
        if not turn.is_given:
            note_queue(ctx, started)
            # Not by way of a variable: the error has this frame.
            raise _refusal(limit, turn.seconds)
        if turn.seconds:
            ctx.log._begin_after_wait(turn.seconds)
        return turn.permit or limit


def _succeed(permit: Permit, now: float, response: aiohttp.ClientResponse) -> None:
    permit._learn(response)


def _refusal(limit: RateLimit, retry_in: float) -> RateLimitError:
    error = RateLimitError(limit, retry_in)
    mark_queued(error)
    return error
