"""The demo: requests that meet faults on purpose, and their outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
from aiohttp import web

from .. import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    Decorator,
    EndpointGroup,
    EndpointSelectionStrategy,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
)
from .._report.document import Heading, Table
from ..testing import FaultInjectingClient, InjectedFault
from .output import ExitCode, new_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable

_ATTEMPT_TIMEOUT = 0.5
_OPEN_WINDOW = 1.0
_RESET = aiohttp.ClientOSError(errno.ECONNRESET, "Connection reset by peer")
_UNAVAILABLE = InjectedFault.status(503)

_TROUBLES: tuple[tuple[str, str, str, InjectedFault, int], ...] = (
    ("503 twice", "the third attempt gets through", "/busy", _UNAVAILABLE, 2),
    (
        "silence",
        "cut off by the attempt timeout, asked again",
        "/silent",
        InjectedFault.hang(),
        1,
    ),
    (
        "reset",
        "the connection breaks, a new one is made",
        "/reset",
        InjectedFault.error(_RESET),
        1,
    ),
    (
        "429",
        "the server asks for a wait of a second and gets it",
        "/throttled",
        InjectedFault.status(429, headers={"Retry-After": "1"}),
        1,
    ),
)
_OUTAGE = (
    ("outage", "three failures open the circuit", 0.0),
    ("circuit open", "refused at once, nothing is sent", 0.0),
    ("still open", "the server is left in peace", 0.0),
    ("trial", "the outage is over, one request is let through", _OPEN_WINDOW),
    ("recovered", "all is as before", 0.0),
)


_COLUMNS = ("call", "attempts", "outcome", "seconds", "why it stopped")
_TEXTS = ("call", "outcome", "why it stopped")


class DemoCall(NamedTuple):
    """A call that the demo made."""

    title: str
    story: str
    log: RequestLog


async def demo(arguments: argparse.Namespace) -> ExitCode:
    """Make the calls and show the outcomes, line by line and in a table."""
    calls: list[DemoCall] = []
    output = None if arguments.json else new_output(sys.stdout)

    def show(call: DemoCall) -> None:
        calls.append(call)
        if output is not None:
            output.document([Heading(call.title, call.story), call.log])

    await play(show)
    if output is None:
        values = [
            {"title": call.title, "story": call.story, "log": call.log.to_dict()}
            for call in calls
        ]
        print(json.dumps({"calls": values}, indent=2))
    else:
        table = Table([_COLUMNS, *map(_row, calls)], _TEXTS)
        output.document([Heading("Summary"), table])
    return ExitCode.OK


async def play(show: Callable[[DemoCall], None]) -> None:
    """Make the calls, and hand each to *show* when it has ended."""
    async with serving() as url:
        await _retry(url, show)
        await _break_circuit(url, show)
        await _lose_replica(url, show)


def _injecting(fault: InjectedFault, many: int) -> Decorator:
    """Inject a fault into so many requests, and no more."""
    struck = iter([True] * many)
    return FaultInjectingClient.new_decorator(
        fault, enabled=lambda ctx, request: next(struck, False)
    )


async def _retry(url: str, show: Callable[[DemoCall], None]) -> None:
    retrying = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.exponential(0.1)),
        max_total_attempts=5,
        attempt_timeout=_ATTEMPT_TIMEOUT,
    )
    for title, story, path, fault, many in _TROUBLES:
        injecting = _injecting(fault, many)
        builder = SessionBuilder(url).decorator(injecting).decorator(retrying)
        async with builder.response_timeout(10.0).build() as session:
            show(DemoCall(title, story, await _get(session, path)))


async def _break_circuit(url: str, show: Callable[[DemoCall], None]) -> None:
    breaker = CircuitBreaker(
        "demo", minimum_request_threshold=3, circuit_open_window=_OPEN_WINDOW
    )
    breaking = CircuitBreakerClient.new_decorator(breaker)
    retrying = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.1)), max_total_attempts=3
    )
    builder = SessionBuilder(url)
    for decorator in _injecting(_UNAVAILABLE, 3), breaking, retrying:
        builder.decorator(decorator)
    async with builder.response_timeout(10.0).build() as session:
        for title, story, pause in _OUTAGE:
            await asyncio.sleep(pause)
            show(DemoCall(title, story, await _get(session, "/outage")))


async def _lose_replica(url: str, show: Callable[[DemoCall], None]) -> None:
    retrying = RetryingClient.new_decorator(RetryStrategy.failsafe())
    first_that_is_well = EndpointSelectionStrategy.in_order()
    async with serving() as other:
        async with serving() as dying:
            group = EndpointGroup.of(dying, other, url, selection=first_that_is_well)
            builder = SessionBuilder(group).decorator(retrying)
            session = builder.response_timeout(10.0).build()
            await _get(session, "/orders")
        async with session:
            log = await _get(session, "/orders")
            show(DemoCall("replica dies", "one of three is gone, nobody notices", log))


async def _get(session: aiohttp.ClientSession, path: str) -> RequestLog:
    with capture_logs() as logs, contextlib.suppress(aiohttp.ClientError, TimeoutError):
        async with session.get(path) as response:
            await response.read()
    return logs[0]


def _row(call: DemoCall) -> tuple[str, ...]:
    log = call.log
    if log.response_status is None:
        outcome = type(log.response_cause).__name__
    else:
        outcome = f"{log.response_status} {log.response_reason}"
    attempts, seconds = f"{log.total_attempts}", f"{log.duration:.3f}"
    return call.title, attempts, outcome, seconds, log.stop_reason or "success"


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """Answer every request at a URL on 127.0.0.1, for as long as the block lasts."""
    application = web.Application()
    application.router.add_get("/{path:.*}", _answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def _answer(request: web.Request) -> web.Response:
    return web.Response(text="Here you are.\n")
