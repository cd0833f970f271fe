"""A full chain against a real server: sums, cancellation, nothing left behind."""

import asyncio
import logging
import random
from collections import Counter

from aiohttp import web
from chains import connected, retrying

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    LoggingClient,
    RequestLog,
    RetryStrategy,
)


def acquired(session):
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
    seen = Counter()

    async def flaky(request):
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

        async def call(number):
            async with session.get(f"/{number}") as response:
                return await response.text(), RequestLog.of(response)

        results = await asyncio.gather(*(call(number) for number in range(200)))
        in_use = acquired(session)

    logs = [log for _, log in results]
    resent = 0
    attempts = Counter()
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


async def test_small_rest_of_a_body_is_read_and_the_connection_used_again(serving):
    """Otherwise each retry would cost a new connection."""
    peers = []

    async def handler(request):
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
