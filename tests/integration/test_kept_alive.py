"""A call that is over keeps nothing alive, and leaves nothing for the collector."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref

import aiohttp
import pytest
from chains import connected, retrying
from fault_server import End, Fault, FaultServer, answer, cut, response
from left_over import nothing_to_collect

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    LoggingClient,
    RetryStrategy,
    RetryStrategyWithContent,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
)
from aioretry_smithy.smithy import StandardRetryStrategy

NOW = Backoff.without_delay()


class Content(RetryStrategyWithContent):
    async def should_retry(self, ctx, cause, content):
        return NOW if cause is not None else None


STRATEGIES = {
    "plain": RetryStrategy.failsafe(NOW),
    "content": Content(),
    "smithy": StandardRetryStrategy(max_attempts=3),
}
ENDS = {
    "answer": [cut(end=End.RESET)],
    "exception": [cut(end=End.RESET)] * 3,
}
CUT_BODY = Fault(send=(response(200, b"x" * 1000)[:500],), end=End.CLOSE)


def build(url, strategy, *inside, **options):
    return connected(
        url,
        *inside,
        retrying(strategy, max_total_attempts=3),
        LoggingClient.new_decorator(),
        connector=aiohttp.TCPConnector(limit=1),
        **options,
    )


async def ask(session, path="/", **options):
    """Send a request, read the body, and keep nothing of either."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        async with session.get(path, **options) as got:
            await got.read()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("end", ENDS)
async def test_nothing_is_left_to_collect(strategy, end):
    """All is freed after any outcome, with any strategy."""
    async with (
        FaultServer([*ENDS[end], *ENDS[end]]) as server,
        build(server.url, STRATEGIES[strategy]) as session,
    ):
        await ask(session)
        with nothing_to_collect():
            await ask(session)


async def test_body_that_failed_leaves_nothing_to_collect():
    """An attempt whose body was cut is given up with all that it had."""
    async with (
        FaultServer([CUT_BODY, answer(), CUT_BODY]) as server,
        build(server.url, STRATEGIES["content"]) as session,
    ):
        await ask(session)
        with nothing_to_collect():
            await ask(session)


async def test_cancelled_call_leaves_nothing_to_collect():
    """Neither do the tasks in which it ran."""
    async with (
        FaultServer([Fault(send=(), end=End.STALL)] * 2) as server,
        build(server.url, STRATEGIES["plain"]) as session,
    ):
        for _ in range(2):
            with nothing_to_collect():
                task = asyncio.ensure_future(ask(session))
                await asyncio.sleep(0.05)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                del task


@pytest.mark.parametrize("has_fallback", [False, True])
async def test_refused_call_leaves_nothing_to_collect(has_fallback):
    """With a fallback, which may make a call of its own, and without."""
    breaker = CircuitBreaker("shop")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    async with FaultServer([]) as server, SessionBuilder(server.url).build() as other:

        async def fallback(ctx, request):
            await ask(other)
            return new_response(request, 203)

        decorator = CircuitBreakerClient.new_decorator(
            breaker, fallback=fallback if has_fallback else None
        )
        async with build(server.url, STRATEGIES["plain"], decorator) as session:
            await ask(session)
            with nothing_to_collect():
                await ask(session)


async def test_call_inside_an_attempt_leaves_nothing_to_collect():
    """Its exception may end the call around it, too."""
    async with (
        FaultServer([cut(end=End.RESET)] * 12) as server,
        SessionBuilder(server.url).build() as other,
    ):

        @client_decorator
        async def log_in(delegate, ctx, request):
            await other.get("/token")
            return await delegate.execute(ctx, request)

        async with build(server.url, STRATEGIES["plain"], log_in) as session:
            await ask(session)
            with nothing_to_collect():
                await ask(session)


@pytest.mark.parametrize("end", ENDS)
async def test_log_keeps_neither_body_nor_response_nor_connection(end):
    """Logs that are kept take little memory; the next call has the one connection."""

    class Text(str):
        """Text that can be referred to weakly."""

    kept = []

    async def put(session):
        body = Text("sent")
        kept.append(weakref.ref(body))
        got = await session.put("/", data=body)
        kept.append(weakref.ref(got))
        await got.read()

    async with (
        FaultServer(ENDS[end]) as server,
        build(server.url, STRATEGIES["plain"]) as session,
    ):
        gc.collect()
        gc.disable()
        try:
            with capture_logs() as logs, contextlib.suppress(aiohttp.ClientError):
                await put(session)
            # Of a failed upload aiohttp itself leaves a task and a cycle.
            await asyncio.sleep(0.01)
            if end == "exception":
                gc.collect()
            alive = [reference() for reference in kept]
            async with asyncio.timeout(5.0):
                await ask(session)
        finally:
            gc.enable()

    assert [None] * len(kept) == alive
    first, *_ = logs[0].children
    assert isinstance(first.response_cause, aiohttp.ClientError)
    assert first.response_cause.__traceback__ is None
