"""Let only so many requests be in flight at once."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from aiohttp import ClientResponse

from .._call.short_lane import LaneStep
from .._clock import loop_time
from .._errors import bad_argument
from .._failures.safety import mark_queued
from .._request.keys import host_key
from .._request.per_key import OneForAll, PerKey
from .concurrency_limit import ConcurrencyLimit
from .concurrency_limit_error import ConcurrencyLimitError
from .limited_calls import LimitedCalls, check_timeout, note_queue
from .overload import is_overloaded, was_dropped
from .places import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import aiohttp

    from .._call.client import Decorator, HttpClient
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

    ConcurrencyLimitFactory: TypeAlias = Callable[[str], int | ConcurrencyLimit]
    ConcurrencyLimits: TypeAlias = (
        OneForAll[ConcurrencyLimit] | PerKey[ConcurrencyLimit]
    )


class ConcurrencyLimitingClient(LimitedCalls[Place]):
    """Lets requests wait until there is a place for them in flight.

    Inside a retrying client, as usual, each attempt takes a place of its own. It holds
    the place until the body has ended or the response is released; a websocket holds it
    until it is closed. Waiting requests are served in the order in which they came. One
    that gets no place in time, or none in the queue, raises a
    :class:`ConcurrencyLimitError`. After Armeria's class of that name.

    >>> decorator = ConcurrencyLimitingClient.new_decorator(20, max_pending=100)
    """

    def __init__(
        self,
        delegate: HttpClient,
        limits: ConcurrencyLimits,
        max_pending: int | None,
        timeout: float | None,
    ) -> None:
        super().__init__(delegate)
        self._limits = limits
        self._max_pending = max_pending
        self._timeout = timeout

    @classmethod
    def new_decorator(
        cls,
        limit: int | ConcurrencyLimit,
        *,
        max_pending: int | None = None,
        timeout: float | None = 10.0,
    ) -> Decorator:
        """Return a decorator with one limit for all requests.

        Args:
            limit: An int >= 1, or a :class:`ConcurrencyLimit`, which may adapt itself.
            max_pending: Requests that may wait at once, an int >= 0; None for any
                number.
            timeout: Longest wait of a request in seconds, finite and >= 0; its deadline
                may end it sooner. None: only the deadline ends it.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> limit = ConcurrencyLimit.aimd()
        >>> decorator = ConcurrencyLimitingClient.new_decorator(limit, timeout=1.0)
        """
        made = _limit_of(limit, None)
        return cls._decorator(OneForAll(made.name, made), max_pending, timeout)

    @classmethod
    def new_per_host_decorator(
        cls,
        factory: ConcurrencyLimitFactory,
        *,
        max_pending: int | None = None,
        timeout: float | None = 10.0,
    ) -> Decorator:
        """Return a decorator with a limit for each host and port.

        All sessions built with the decorator share the limits. The 1024 most recently
        used are kept. A URL without a host goes through unasked.

        Args:
            factory: Makes the limit of a key, such as ``example.com:443``: an int or a
                :class:`ConcurrencyLimit`.
            max_pending: As for :meth:`new_decorator`, of each limit.
            timeout: As for :meth:`new_decorator`.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> def limit(key):
        ...     return ConcurrencyLimit.aimd(name=key)
        >>> decorator = ConcurrencyLimitingClient.new_per_host_decorator(limit)
        """
        if not callable(factory):
            raise bad_argument("factory", factory, "a callable that takes the key")

        def make(key: str) -> ConcurrencyLimit:
            return _limit_of(factory(key), key)

        limits = PerKey("host", host_key, make, factory)
        return cls._decorator(limits, max_pending, timeout)

    @classmethod
    def _decorator(
        cls,
        limits: ConcurrencyLimits,
        max_pending: int | None,
        timeout: float | None,
    ) -> Decorator:
        if max_pending is not None and (
            type(max_pending) is not int or max_pending < 0
        ):
            raise bad_argument("max_pending", max_pending, "an int >= 0, or None")
        check_timeout(timeout)
        return lambda delegate: cls(delegate, limits, max_pending, timeout)

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Wait for a place, pass *request* on, and hold the place while it is used."""
        place = await self._permit(ctx, request)
        if place is None:
            return await self.delegate.execute(ctx, request)
        try:
            response = await self.delegate.execute(ctx, request)
        except BaseException as cause:
            if was_dropped(cause):
                place.learn(dropped=True)
            place.leave()
            raise
        dropped = is_overloaded(response.status)
        if dropped is not None:
            place.learn(dropped=dropped)
        _leave_after_body(place, response)
        return response

    @property
    def limits(self) -> Mapping[str, ConcurrencyLimit]:
        """The limits in use by their keys, as of now, for health pages.

        The key of the one given to :meth:`new_decorator` is its name.

        >>> decorator = ConcurrencyLimitingClient.new_decorator(5)
        >>> limits = decorator(ScriptedTransport([])).limits
        >>> [limit.in_flight for limit in limits.values()]
        [0]
        """
        return MappingProxyType(self._limits.in_use())

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        queue = f"max_pending={self._max_pending!r}, timeout={self._timeout!r}"
        return f"{type(self).__name__}({self._limits!r}, {queue})"

    def _lane_step(self) -> LaneStep:
        find: Any = self._limits.quick()  # None is for keys of paths

        def try_enter(host: str, method: str, now: float) -> Place | None:
            limit = find(host, method)
            try:
                return None if limit is None else limit._try_enter(now)
            except Exception:
                # The ordinary lane asks again, and tells the caller.
                return None

        return LaneStep(try_enter, _succeed, Place.leave)

    async def _take(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Place | None:
        limit = self._limits.of(request)
        if limit is None:
            return None
        return limit._try_enter(loop_time()) or await self._wait(limit, ctx)

    async def _wait(self, limit: ConcurrencyLimit, ctx: ClientRequestContext) -> Place:
        started = loop_time()
        if self._max_pending is None or limit.pending < self._max_pending:
            longest = math.inf if self._timeout is None else self._timeout
            until = started + min(longest, ctx.remaining())
            place = await limit._wait(until)
            note_queue(ctx, started)
            if place is not None:
                return place
        limit._refuse(ctx)
        # Not by way of a variable: the error has this frame.
        raise _refusal(limit, loop_time() - started)


def _succeed(place: Place, now: float, response: aiohttp.ClientResponse) -> None:
    places = place.places
    if places is not None and places._learns:
        places._sample(now, place, dropped=False)
    if response.connection is None:
        place.leave()
    else:
        _leave_after_body(place, response)


def _leave_after_body(place: Place, response: aiohttp.ClientResponse) -> None:
    """Let a request leave its place when the body has ended."""
    # The body of a mock never ends.
    if response.connection is None or not issubclass(type(response), ClientResponse):
        place.leave()
    else:
        # aiohttp calls it then, and where a response is closed or collected before.
        response.connection.add_callback(place.leave)


def _refusal(limit: ConcurrencyLimit, waited: float) -> ConcurrencyLimitError:
    error = ConcurrencyLimitError(limit, waited, limit.pending)
    # So that a call whose deadline ends the wait counts for nobody either.
    mark_queued(error)
    return error


def _limit_of(limit: Any, name: str | None) -> ConcurrencyLimit:
    if isinstance(limit, ConcurrencyLimit):
        return limit
    if type(limit) is int and limit >= 1:
        return ConcurrencyLimit.fixed(limit, name=name)
    raise bad_argument("limit", limit, "an int >= 1, or a ConcurrencyLimit")
