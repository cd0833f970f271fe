"""Time how long requests wait for connections, by a trace configuration of aiohttp's.

aiohttp tells a trace configuration where a request is, but not which of ours it is:
what the caller gives as ``trace_request_ctx`` is the caller's. So each request is put
into a context variable while it is sent, which aiohttp's call for it finds there.
"""

from __future__ import annotations

from asyncio import current_task, get_running_loop
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from aiohttp import BaseConnector, ClientSession, TraceConfig

from .._call.record import ConnectionTimes, Part, Record
from .aiohttp_transport import AiohttpTransport

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.arguments import Arguments
    from .._request.request import HttpRequest

_Given = TypeVar("_Given")

_sent: ContextVar[TimedRequest] = ContextVar("aioretry_smithy_timed")


class TimedTransport(AiohttpTransport):
    """Sends requests with aiohttp, and lets a trace configuration time each."""

    __slots__ = ()

    def start(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Awaitable[aiohttp.ClientResponse]:
        """Begin to send the request."""
        return _timed(super().start, ctx, request)


async def _timed(
    start: Callable[
        [ClientRequestContext, HttpRequest], Awaitable[aiohttp.ClientResponse]
    ],
    ctx: ClientRequestContext,
    request: HttpRequest,
) -> aiohttp.ClientResponse:
    """Send a request, with timings of its connection."""
    timed = TimedRequest(ctx.call.loop, ctx.record)
    token = _sent.set(timed)
    try:
        return await start(ctx, request)
    finally:
        timed.close()
        # A coroutine that is thrown away ends in another context, or in a copy.
        with suppress(ValueError):
            _sent.reset(token)


class TimedRequest(SimpleNamespace):
    """The trace context of a request under way, passed to aiohttp's signals.

    Args:
        loop: The event loop.
        record: That of the request, which gets the times.
    """

    __slots__ = ("_loop", "_record", "followers")

    followers: list[TimedRequest]
    """Requests that wait for a common DNS query."""

    def __init__(self, loop: asyncio.AbstractEventLoop, record: Record) -> None:
        self._loop = loop
        self._record: Record | None = record
        self.followers = []

    def open(self) -> None:
        """Begin to time the connection, once aiohttp has the request (no mock)."""
        record = self._record
        # A call without attempts has one record for all its requests.
        if record is not None and record.connection is None:
            record.connection = ConnectionTimes(self._loop.time())

    def wait_for(self, part: Part | None) -> None:
        """Start timing the next part of the connection; None ends the timing."""
        times = self._times
        if times is not None:
            times.wait_for(part, self._loop.time())

    def resolved(self) -> None:
        """Note the end of DNS resolution; the rest of the wait is connecting."""
        times = self._times
        if times is not None and times.part == "dns":
            times.wait_for("connect", self._loop.time())

    def reuse(self) -> None:
        """Note that the connection of the request is reused."""
        times = self._times
        if times is not None:
            times.reused = True

    def close(self) -> None:
        """End the wait; what a query of the resolver reports later counts no more."""
        times, self._record = self._times, None
        if times is not None and times.part is not None:
            times.wait_for(None, self._loop.time())

    @property
    def _times(self) -> ConnectionTimes | None:
        return None if self._record is None else self._record.connection


def with_timings(arguments: Arguments) -> Arguments:
    """Return the arguments of a session, with a trace configuration that times.

    It is the first, so that others may take their time; those of the caller stay.
    """
    given = arguments.get("trace_configs") or ()
    return {**arguments, "trace_configs": [_trace_config(), *given]}


class _Tracing(TraceConfig):
    """Finds the request of ours that aiohttp begins to send in a task."""

    def trace_config_ctx(self, trace_request_ctx: object = None) -> SimpleNamespace:
        """Return this task's TimedRequest; empty after ``undecorate()``."""
        timed = _sent.get(None)
        if timed is None:
            return SimpleNamespace()
        timed.open()
        return timed


def _trace_config() -> TraceConfig:
    """Make the trace configuration of a session, which freezes the configuration."""
    config = _Tracing()
    config.on_connection_queued_start.append(_heard(_wait("queued")))
    config.on_connection_queued_end.append(_heard(_wait(None)))
    config.on_connection_create_start.append(_heard(_wait("connect")))
    config.on_connection_create_end.append(_heard(_wait(None)))
    config.on_connection_reuseconn.append(_heard(_reuse))
    config.on_dns_cache_miss.append(_heard(_of_query(_Lookups.begin)))
    config.on_dns_resolvehost_start.append(_heard(_wait("dns")))
    config.on_dns_resolvehost_end.append(_heard(_of_query(_Lookups.end)))
    config.on_dns_cache_hit.append(_heard(_of_query(_Lookups.join)))
    return config


def _heard(
    note: Callable[[ClientSession, TimedRequest, _Given], None],
) -> Callable[..., Awaitable[None]]:
    """Make the receiver of a signal, which may be about no request of ours."""

    async def hear(
        session: ClientSession, timed: SimpleNamespace, given: _Given
    ) -> None:
        if isinstance(timed, TimedRequest):
            note(session, timed, given)

    return hear


def _wait(part: Part | None) -> Callable[[ClientSession, TimedRequest, object], None]:
    return lambda session, timed, given: timed.wait_for(part)


def _reuse(session: ClientSession, timed: TimedRequest, given: object) -> None:
    timed.reuse()


def _of_query(
    note: Callable[[_Lookups, TimedRequest, _Given], None],
) -> Callable[[ClientSession, TimedRequest, _Given], None]:
    return lambda session, timed, given: note(
        _Lookups.of(session.connector), timed, given
    )


class _Lookups:
    """The queries of a connector's resolver, each by the request that wanted it first.

    Where names are cached, aiohttp asks once for all that want the same, in a task that
    outlives the first. It tells the others of a hit in the cache, and then lets them
    wait; also those of other sessions that share the connector.
    """

    @classmethod
    def of(cls, connector: BaseConnector | None) -> _Lookups:
        """Return the DNS lookups of a connector; new lookups without a connector."""
        if connector is None:
            return cls()
        lookups = _of_connectors.get(connector)
        if lookups is None:
            lookups = _of_connectors[connector] = cls()
        return lookups

    def __init__(self) -> None:
        self._asking: dict[str, TimedRequest] = {}
        self._early: dict[str, list[TimedRequest]] = {}

    def begin(
        self, timed: TimedRequest, given: aiohttp.TraceDnsCacheMissParams
    ) -> None:
        """Note a DNS query of the task; further requests may join."""
        host = given.host
        self._asking[host] = timed
        timed.followers = self._early.pop(host, [])
        for each in timed.followers:
            each.wait_for("dns")
        task = current_task()
        if task is not None:
            # The query may fail, which is not reported.
            task.add_done_callback(partial(self._forget, host, timed))

    def join(self, timed: TimedRequest, given: aiohttp.TraceDnsCacheHitParams) -> None:
        """Note that a request waits for the DNS query of another request."""
        host = given.host
        first = self._asking.get(host)
        if first is not None:
            timed.wait_for("dns")
            first.followers.append(timed)
            return
        # Before Python 3.12 the task of the query may have yet to begin; if it is not
        # the next thing to happen, this was a hit indeed.
        self._early.setdefault(host, []).append(timed)
        get_running_loop().call_soon(self._early.pop, host, None)

    def end(
        self, timed: TimedRequest, given: aiohttp.TraceDnsResolveHostEndParams
    ) -> None:
        """Note the end of a DNS query, for all waiting requests."""
        self._forget(given.host, timed)
        for each in (timed, *timed.followers):
            each.resolved()

    def _forget(self, host: str, timed: TimedRequest, task: object = None) -> None:
        if self._asking.get(host) is timed:
            del self._asking[host]


_of_connectors: WeakKeyDictionary[BaseConnector, _Lookups] = WeakKeyDictionary()
