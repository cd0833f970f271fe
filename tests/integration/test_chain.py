"""A full chain against a real server: sums, cancellation, nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections import Counter

import aiohttp
import pytest
from aiohttp import web
from chains import connected, retrying

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    LoggingClient,
    RequestLog,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
)


def acquired(session: aiohttp.ClientSession) -> int:
    """Count the connections that are in use."""
    return len(session.connector._acquired)


class Counting(CircuitBreaker):
    """Counts what is reported; connections that break together are one failure."""

    reported = 0

    def on_success(self, permit=None):
        self.reported += 1
        super().on_success(permit)

    def on_failure(self, permit=None):
        self.reported += 1
        super().on_failure(permit)


async def test_logs_of_many_calls_add_up_to_what_the_server_saw(serving, caplog):
    """200 calls at once: attempts, statuses and log lines all agree."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    chance = random.Random(7)
    seen: Counter[str] = Counter()

    async def flaky(request: web.Request) -> web.StreamResponse:
        seen[request.headers.get("armeria-retry-count", "0")] += 1
        match chance.randrange(5):
            case 0:
                return web.Response(status=503, body=b"x" * chance.randrange(100_000))
            case 1:
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case _:
                return web.Response(text=request.path)

    server = await serving(flaky)
    breaker = Counting(failure_rate_threshold=1.0)

    async with connected(
        server.make_url("/"),
        CircuitBreakerClient.new_decorator(breaker),
        LoggingClient.new_decorator(),
        retrying(
            RetryStrategy.failsafe(Backoff.random(0.0, 0.01)), attempt_timeout=10.0
        ),
    ) as session:

        async def call(number: int) -> tuple[str, RequestLog]:
            async with session.get(f"/{number}") as response:
                return await response.text(), RequestLog.of(response)

        results = await asyncio.gather(*(call(number) for number in range(200)))
        in_use = acquired(session)

    logs = [log for _, log in results]
    resent = 0
    attempts: Counter[str] = Counter()
    for log in logs:
        made = 0
        for child in log.children:
            attempts[str(made)] += 1
            # What the transport sends again carries the count of its attempt.
            is_stale = child.delay_source == "stale_connection"
            resent, made = resent + is_stale, made + (not is_stale)
    assert 0 < resent
    assert [f"/{number}" for number in range(200)] == [text for text, _ in results]
    assert seen == attempts
    assert breaker.reported == sum(seen.values()) - resent
    assert 2 * (sum(seen.values()) - resent) == len(caplog.records)
    assert all(log.is_complete for log in logs)
    assert 0 == in_use


@pytest.mark.slow
async def test_cancellation_at_any_await_leaves_nothing_behind(serving):
    """Cancelled after any number of turns of the loop, a call leaves no trace."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=200 if request.path == "/ok" else 503)
        response.content_length = 20_000
        await response.prepare(request)
        await response.write(b"x" * 10_000)
        await asyncio.sleep(0.002)
        await response.write(b"x" * 10_000)
        return response

    class Slow(RetryStrategy):
        backoff = Backoff.fixed(0.001)

        async def should_retry(self, ctx, cause) -> Backoff | None:
            await asyncio.sleep(0.001)
            return self.backoff if ctx.log.response_status == 503 else None

    server = await serving(handler)
    breaker = CircuitBreaker(minimum_request_threshold=0)
    cancelled = 0
    async with connected(
        server.make_url("/"),
        CircuitBreakerClient.new_decorator(breaker),
        retrying(Slow(), max_total_attempts=2),
    ) as session:
        for turns in range(200):
            breaker.enter_state(CircuitState.CLOSED)
            with capture_logs() as logs:
                call = asyncio.create_task(session.get("/down"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                call.cancel()
                outcome = await asyncio.gather(call, return_exceptions=True)
            if not isinstance(outcome[0], asyncio.CancelledError):
                # On a busy machine it is over by then: the 503 opened the circuit.
                assert isinstance(outcome[0], FailFastError)
                continue
            cancelled += 1
            await asyncio.sleep(0)
            answered = sum(
                child.response_status is not None
                for log in logs
                for child in log.children
            )

            assert 0 == acquired(session)
            assert all(log.is_complete for log in logs)
            assert all(child.is_complete for log in logs for child in log.children)
            assert answered >= breaker.event_count.total
            assert {None, "cancelled"} >= {log.stop_reason for log in logs}

    assert cancelled > 10


async def test_response_given_up_frees_its_connection_before_the_wait(serving):
    """A pool of one connection serves a call with large and with small error bodies."""
    in_use = []

    async def handler(request: web.Request) -> web.StreamResponse:
        count = request.headers.get("armeria-retry-count")
        if count is None:
            return web.Response(status=503, body=b"x" * 3_000_000)
        if count == "1":
            return web.Response(status=503, body=b"x" * 30_000)
        return web.Response(text="ok")

    class Watching(Backoff):
        def next_delay(self, num_attempts_so_far: int) -> float:
            loop = asyncio.get_running_loop()
            loop.call_later(0.01, lambda: in_use.append(acquired(session)))
            return 0.02

    server = await serving(handler)
    strategy = RetryStrategy.failsafe(Watching())
    async with (
        connected(
            server.make_url("/"),
            retrying(strategy),
            connector=aiohttp.TCPConnector(limit=1),
        ) as session,
        session.get("/") as response,
    ):
        text = await response.text()

    assert "ok" == text
    assert [0, 0] == in_use


async def test_small_rest_of_a_body_is_read_and_the_connection_used_again(serving):
    """Otherwise each retry would cost a new connection."""
    peers = []

    async def handler(request: web.Request) -> web.StreamResponse:
        peers.append(request.transport.get_extra_info("peername"))
        status = 200 if len(peers) == 3 else 503
        return web.Response(status=status, body=b"x" * 30_000)

    server = await serving(handler)
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    async with (
        connected(server.make_url("/"), retrying(strategy)) as session,
        session.get("/") as response,
    ):
        await response.read()

    assert 1 == len(set(peers))


@pytest.mark.slow
async def test_silent_server_is_cut_at_the_deadline_to_the_scaled_number(serving):
    """The two diagrams of the Armeria page with real sockets, times divided by 2.5."""

    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    server = await serving(silent)

    async def log_of_call(backoff: Backoff) -> RequestLog:
        builder = SessionBuilder(server.make_url("/")).decorator(
            retrying(RetryStrategy.on_server_error_status(backoff), attempt_timeout=1.2)
        )
        async with builder.response_timeout(4.0).build() as session:
            with pytest.raises(TimeoutError) as caught:
                await session.get("/")
        return RequestLog.of(caught.value)

    first, second = await asyncio.gather(
        log_of_call(Backoff.without_delay()), log_of_call(Backoff.fixed(1.2))
    )

    assert (4, "deadline") == (first.total_attempts, first.stop_reason)
    assert (2, "deadline") == (second.total_attempts, second.stop_reason)
    # The fourth attempt would have lasted until 4.8, the second wait until 4.8 too.
    assert 4.0 <= first.duration + 0.02 < 4.8
    assert 3.6 <= second.duration + 0.02 < 4.0


async def test_cancellation_in_a_decorator_gives_its_response_back(serving):
    """It was to ask for a token with the first answer in its hands."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=401, body=b"x" * 3_000_000)

    @client_decorator
    async def refresh(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await asyncio.sleep(60)
        return response

    server = await serving(handler)
    gc.disable()
    try:
        async with connected(server.make_url("/"), refresh) as session:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await session.get("/")

            assert 0 == acquired(session)
    finally:
        gc.enable()
