"""Both lanes where parts of a chain, or those around it, do what few of them do."""

from __future__ import annotations

import asyncio
import gc
import weakref

import aiohttp
import pytest
from fault_server import Fault, FaultServer, answer, response
from lane_chains import FAILSAFE
from lanes import LANES, told_log

from aioretry_smithy import (
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    HttpRequest,
    LoggingClient,
    RequestLog,
    RetryingClient,
    SessionBuilder,
    capture_logs,
    client_decorator,
    decorate,
    new_response,
    undecorate,
    unwrap,
)

FINE = answer(200, b"fine")
BUSY = answer(503, b"busy")
STREAMED = Fault(send=(response(200, b"x" * 1000)[:500], 0.02, b"x" * 500))
UNSENT = "http://127.0.0.1:1/"


def decorators():
    return (
        CircuitBreakerClient.new_per_host_decorator(),
        RetryingClient.new_decorator(FAILSAFE, max_total_attempts=3),
    )


async def warmed(lane, url, *outside, inside=None):
    """Return a session whose next call takes the short lane, where there is one."""
    builder = SessionBuilder(url)
    for decorator in (*(decorators() if inside is None else inside), *outside):
        builder.decorator(decorator)
    with LANES[lane]():
        session = builder.build()
    # The first call to a server makes its circuit breaker.
    await (await session.get("/")).read()
    return session


class Unsure:
    """A logger that cannot say whether a level is on."""

    def isEnabledFor(self, level):  # noqa: N802
        raise LookupError(level)

    def log(self, level, message, **options):
        raise AssertionError(message)


@pytest.mark.parametrize("lane", LANES)
async def test_logger_that_raises_changes_nothing_for_a_call(lane):
    """It is asked before a call that may take the short lane, and may raise there."""
    logging = LoggingClient.new_decorator(Unsure())
    async with FaultServer(then=FINE) as server:
        async with await warmed(lane, server.url, logging) as session:
            response = await session.get("/")

    assert 200 == response.status


@pytest.mark.parametrize("lane", LANES)
async def test_call_outlives_its_chain(lane):
    """It is retried to its end, though the session is undecorated meanwhile."""
    faults = [FINE, Fault(send=(0.01, response(503, b"busy")))]
    async with FaultServer(faults, then=FINE) as server:
        with LANES[lane]():
            session = decorate(aiohttp.ClientSession(server.url), *decorators())
        async with session:
            await session.get("/")
            call = asyncio.ensure_future(session._request("GET", "/"))
            await asyncio.sleep(0)
            undecorate(session)
            gc.collect()
            answered = await call

    assert 200 == answered.status
    assert 2 == RequestLog.of(answered).total_attempts
