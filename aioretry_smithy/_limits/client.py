"""Let only so many requests be in flight at once."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import aiohttp

from .. import _checks as check
from .._call.closing import unless_closed
from .._call.outcome import NOTHING, Result, connection_of, end_with
from .._call.recorder import record_failure
from .._call.servers import THROTTLING
from .._clock import loop_time
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._context.holdings import holdings_of, is_held
from .._context.recording import close_result
from .._errors import LimitedRequestError, bad_argument
from .._failures.failure import failure_of, peel
from .._failures.hints import is_cut_body
from .._policies.listeners import DryRun
from .._policies.queues import note_queue, unless_held, unsent
from .._request.keys import OneForAll, PerKey, host_key
from .concurrency_limit import ConcurrencyLimit, Permit, Place

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest

    ConcurrencyLimitFactory: TypeAlias = Callable[[str], int | ConcurrencyLimit]
    ConcurrencyLimits: TypeAlias = (
        OneForAll[ConcurrencyLimit] | PerKey[ConcurrencyLimit]
    )


_KEPT_OF_LIMIT: Final = {"limit": ("name", "limit", "in_flight", "pending")}


class ConcurrencyLimitError(LimitedRequestError):
    """Raised instead of sending a request: the concurrency limit stayed full too long.

    No circuit breaker and no retry limiter counts it. Any method may be sent again.

    It may be pickled; it then has a snapshot of the limit, with its ``name``,
    ``limit``, ``in_flight`` and ``pending``.

    Args:
        limit: The limit that left no place.
        waited: Seconds spent in the queue.
        pending: Requests in the queue when this one left it.
    """

    limit: ConcurrencyLimit
    """The limit that left no place."""

    waited: float
    """Seconds spent in the queue; 0.0 if the queue was full."""

    pending: int
    """Length of the queue when the request left it."""

    is_of_endpoint: bool = False
    """Whether the limit of a single endpoint refused; a different one may serve."""

    _snapshots = _KEPT_OF_LIMIT

    def __init__(self, limit: ConcurrencyLimit, waited: float, pending: int) -> None:
        super().__init__(limit, waited, pending)
        self.limit = limit
        self.waited = waited
        self.pending = pending

    def __str__(self) -> str:
        name, pending = self.limit.name, self.pending
        where = f"no place in {self.waited:.3f} s, pending: {pending}"
        return f"concurrency limit {name!r}: {where}"


_SERVER_ERROR = 500
_LOST = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError)
_NOT_THE_LOAD = (aiohttp.ClientConnectorDNSError, aiohttp.ClientSSLError)


def give_back_after_body(place: Place, response: Result) -> None:
    """Let the limit learn from an answer; give the place back when its body has ended.

    Raises:
        Exception: It is no answer.
    """
    _learn_from_status(place, response.status)
    connection = connection_of(response)
    # The body of a mock never ends.
    if connection is None or not issubclass(type(response), aiohttp.ClientResponse):
        place.release()
    else:
        end_with(connection, place.release)


def give_back(place: Place, cause: BaseException | None) -> None:
    """Give a place back; let the limit learn from the failure of its server, if any."""
    try:
        status = failure_of(cause).status_of_server
        if status is not None:
            _learn_from_status(place, status)
        elif cause is not None and was_dropped(cause):
            place.learn(dropped=True)
    finally:
        place.release()


def was_dropped(cause: BaseException) -> bool:
    """Say whether the server, or its network, dropped a request for its load.

    By a timeout, or a connection that was refused, cut or reset, also while the body
    came. Not by a wait in a queue of this side, an unknown name, a bad certificate or a
    mistake of the caller's.
    """
    failure, cause = failure_of(cause), peel(cause)
    is_lost = isinstance(cause, _LOST) and not isinstance(cause, _NOT_THE_LOAD)
    is_lost = is_lost or is_cut_body(cause)
    return failure.is_of_server and (is_lost or failure.kind.is_timeout)


def _learn_from_status(place: Place, status: int) -> None:
    """Adapt the limit to the status of an answer, raised or returned."""
    dropped = status in THROTTLING
    # Other errors of the server say nothing of its load.
    if dropped or status < _SERVER_ERROR:
        place.learn(dropped=dropped)


class Standby(Place):
    """The place in line of a request that is out in a dry run.

    It gets a permit, or none in time, or ends before; then it leaves the line. Without
    a permit it does not count, and teaches the limit nothing.

    Args:
        limit: The limit that is full.
        until: When the request would have been refused.
        tell: Logs whether the request would have been sent, once that is known.
    """

    __slots__ = ("_begun", "_number", "_permit", "_queue", "_tell", "_until")

    def __init__(
        self, limit: ConcurrencyLimit, until: float, tell: Callable[[bool], None]
    ) -> None:
        super().__init__(limit)
        self._begun, self._until = loop_time(), until
        self._tell: Callable[[bool], None] | None = tell
        # That of another event loop would be another one.
        self._queue = limit._places.queue
        self._number, self._permit = self._queue.join(until)
        self._permit.add_done_callback(self._hear)

    def learn(self, *, dropped: bool) -> None:
        permit = self._granted()
        if permit is not None:
            permit.learn(dropped=dropped)

    def _free(self, limit: ConcurrencyLimit) -> None:
        permit = self._granted()
        if permit is not None:
            permit.release()
        elif self._tell is not None:
            # The future has this object, which has it.
            self._permit.remove_done_callback(self._hear)
            self._queue.leave(self._number)
            self._say(loop_time() < self._until)

    def _granted(self) -> Permit | None:
        """Return the permit, if granted, perhaps in this turn of the loop."""
        return self._hear(self._permit) if self._permit.done() else None

    def _hear(self, granted: asyncio.Future[Permit | None]) -> Permit | None:
        permit = granted.result()
        if permit is not None:
            # Round trips count from when the request was sent.
            permit.begun = self._begun
        self._say(permit is not None)
        return permit

    def _say(self, is_in_time: bool) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(is_in_time)


class ConcurrencyLimitingClient(DecoratingClient[HttpClient]):
    """Limits the requests in flight; others wait in a queue.

    Inside a retrying client, as usual, each attempt takes a place of its own. It holds
    the place until the body has ended or the response is released; a websocket holds it
    until it is closed. Waiting requests are served in the order in which they came. One
    that gets no place in time, or none in the queue, raises a
    :class:`ConcurrencyLimitError`. After Armeria's class of that name.

    >>> decorator = ConcurrencyLimitingClient.new_decorator(20, max_pending=100)
    """

    _serves = "sessions"

    def __init__(
        self,
        delegate: HttpClient,
        limits: ConcurrencyLimits,
        max_pending: int | None,
        timeout: float | None,
        dry_run: DryRun | None,
    ) -> None:
        super().__init__(delegate)
        self._limits = limits
        self._max_pending = max_pending
        self._longest_wait = timeout
        self._dry_run = dry_run

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Take a place, send the request, and hold the place until its body has ended.

        Raises:
            ConcurrencyLimitError: There is no place in time.
            Exception: What the delegate raises.
        """
        place: Place | None = None
        try:
            limit = self._limits.of(request)
            if limit is not None and not is_held(ctx, limit):
                holdings = holdings_of(ctx)
                place = limit._try_enter(ctx.call.loop)
                if place is None:
                    place = await self._wait(ctx, request, limit)
                if place is not None:
                    place.hold(holdings)
        except BaseException as error:
            record_failure(ctx, error)
            raise
        try:
            response = await self.delegate.execute(ctx, request)
        except BaseException as cause:
            if place is not None:
                give_back(place, None if self._is_elsewhere(ctx) else cause)
            raise
        if place is not None:
            self._hold(ctx, place, response)
        return response

    async def _wait(
        self, ctx: ClientRequestContext, request: HttpRequest, limit: ConcurrencyLimit
    ) -> Place | None:
        """Wait for a place; a dry run returns at once, perhaps without one.

        It needs none once an attempt around holds one.

        Raises:
            ConcurrencyLimitError: There is none in time.
            RuntimeError: The session is closed.
        """
        started = loop_time()
        longest = math.inf if self._longest_wait is None else self._longest_wait
        until = started + min(longest, ctx.remaining())
        may_wait = self._max_pending is None or limit.pending < self._max_pending
        if self._dry_run is not None:
            tell = _teller(self._dry_run, ctx, request.without_body(), limit)
            if may_wait:
                return Standby(limit, until, tell)
            tell(False)
            return None
        if may_wait:
            place = await unless_closed(
                ctx.call,
                lambda: unless_held(limit._wait(until), ctx, (limit,), _release),
            )
            note_queue(ctx, started)
            if place is not None:
                ctx.record.first_sent = loop_time()
                return None if place is NOTHING else place
        limit._refuse(ctx)
        # A variable would keep the error alive, since the error keeps this frame.
        raise self._refusal(limit, loop_time() - started, request)

    def _refusal(
        self, limit: ConcurrencyLimit, waited: float, request: HttpRequest
    ) -> ConcurrencyLimitError:
        error = unsent(ConcurrencyLimitError(limit, waited, limit.pending))
        is_per_server = self._limits.is_per_server
        error.is_of_endpoint = is_per_server and request.route is not None
        return error

    def _hold(
        self, ctx: ClientRequestContext, place: Place, response: aiohttp.ClientResponse
    ) -> None:
        """Let the limit learn from an answer; hold the permit until the body ends."""
        try:
            if self._is_elsewhere(ctx):
                place.release()
            else:
                give_back_after_body(place, response)
        except BaseException as error:
            place.release()
            record_failure(ctx, error)
            close_result(ctx, response)
            raise

    def _is_elsewhere(self, ctx: ClientRequestContext) -> bool:
        """Say whether the outcome is that of a server with another limit."""
        return self._limits.is_per_server and ctx.record.endpoint_changed

    @classmethod
    def new_decorator(
        cls,
        limit: int | ConcurrencyLimit,
        *,
        max_pending: int | None = None,
        timeout: float | None = 10.0,
        enforce: bool = True,
    ) -> Decorator:
        """Return a decorator with one limit for all requests.

        Args:
            limit: An int >= 1, or a :class:`ConcurrencyLimit`, which may adapt itself.
            max_pending: Requests that may wait at once, an int >= 0; None for any
                number.
            timeout: Longest wait of a request in seconds, finite and >= 0; its deadline
                may end it sooner. None: only the deadline ends it.
            enforce: False: count, decide and log, but let no request wait, and refuse
                none.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> limit = ConcurrencyLimit.aimd()
        >>> decorator = ConcurrencyLimitingClient.new_decorator(limit, timeout=1.0)
        """
        made = _limit_of(limit, None)
        limits = OneForAll(made.name, made)
        dry_run = DryRun.unless(enforce, f"concurrency limit {made.name!r}")
        return cls._decorator(limits, max_pending, timeout, dry_run)

    @classmethod
    def new_per_host_decorator(
        cls,
        factory: ConcurrencyLimitFactory,
        *,
        max_pending: int | None = None,
        timeout: float | None = 10.0,
        enforce: bool = True,
    ) -> Decorator:
        """Return a decorator with a limit for each host and port.

        All sessions built with the decorator share the limits. The 1024 most recently
        used are kept. A URL without a host goes through unasked.

        Args:
            factory: Makes the limit of a key, such as ``example.com:443``: an int or a
                :class:`ConcurrencyLimit`.
            max_pending: As for :meth:`new_decorator`, of each limit.
            timeout: As for :meth:`new_decorator`.
            enforce: As for :meth:`new_decorator`.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> def limit(key):
        ...     return ConcurrencyLimit.aimd(name=key)
        >>> decorator = ConcurrencyLimitingClient.new_per_host_decorator(limit)
        """
        check.factory(factory)

        def make(key: str) -> ConcurrencyLimit:
            return _limit_of(factory(key), key)

        limits = PerKey("host", host_key, make, factory)
        dry_run = DryRun.unless(enforce, f"concurrency limit ({limits!r})")
        return cls._decorator(limits, max_pending, timeout, dry_run)

    @classmethod
    def _decorator(
        cls,
        limits: ConcurrencyLimits,
        max_pending: int | None,
        timeout: float | None,
        dry_run: DryRun | None,
    ) -> Decorator:
        check.integer("max_pending", max_pending, 0, or_none=True)
        check.not_negative("timeout", timeout, or_none=True)
        return lambda delegate: cls(delegate, limits, max_pending, timeout, dry_run)

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
        queue = f"max_pending={self._max_pending!r}, timeout={self._longest_wait!r}"
        dry = "" if self._dry_run is None else ", enforce=False"
        return f"{type(self).__name__}({self._limits!r}, {queue}{dry})"


def _teller(
    dry_run: DryRun,
    ctx: ClientRequestContext,
    request: HttpRequest,
    limit: ConcurrencyLimit,
) -> Callable[[bool], None]:
    """Return a function that logs what would have become of a request."""
    started = loop_time()

    def tell(is_in_time: bool) -> None:
        waited = loop_time() - started
        if is_in_time:
            dry_run.waited(request, waited, limit.name)
        else:
            limit._refuse(ctx)
            error = ConcurrencyLimitError(limit, waited, limit.pending)
            dry_run.refused(request, error)

    return tell


def _release(permit: Permit | None) -> None:
    if permit is not None:
        permit.release()


def _limit_of(limit: object, name: str | None) -> ConcurrencyLimit:
    if isinstance(limit, ConcurrencyLimit):
        return limit
    if type(limit) is int and limit >= 1:
        return ConcurrencyLimit.fixed(limit, name=name)
    raise bad_argument("limit", limit, "an int >= 1, or a ConcurrencyLimit")
