"""Calls that time out while they wait for a place in the session's own pool."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import connected, retrying

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RequestLog,
    ResponseTimeoutError,
    RetryBudget,
    RetrySafety,
    RetryStrategy,
    is_unprocessed,
    retry_safety,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"

each_limit = pytest.mark.parametrize(
    ("limits", "attempt_timeout", "kind"),
    [
        ({"connect": 0.05}, None, aiohttp.ConnectionTimeoutError),
        ({"total": 5.0}, 0.05, AttemptTimeoutError),
        ({"total": 0.05}, None, ResponseTimeoutError),
    ],
    ids=["connect", "attempt", "call"],
)


class GivesThePlaceBack(Backoff):
    """Frees a connection before the next attempt, and not sooner."""

    response = None

    def next_delay(self, num_attempts_so_far):
        self.response.close()
        return 0.01


class Chain:
    """Retries, with all that counts what says something about the server."""

    def __init__(self, strategy, *, attempt_timeout=None, attempts=2):
        self.breaker = CircuitBreaker("api", minimum_request_threshold=1)
        self.budget = RetryBudget(capacity=5.0, brake_after=1)
        self.decorators = [
            CircuitBreakerClient.new_decorator(self.breaker),
            retrying(
                strategy,
                max_total_attempts=attempts,
                attempt_timeout=attempt_timeout,
                limiter=self.budget,
            ),
        ]

    def build(self, **arguments):
        return connected(None, *self.decorators, **arguments)


@pytest.mark.parametrize("place", ["limit", "limit_per_host"])
@each_limit
async def test_full_pool_says_nothing_about_the_server(
    serve, place, limits, attempt_timeout, kind
):
    """No circuit breaker opens and no budget brakes, whichever limit passes."""
    url = await serve([OK, 60.0])
    chain = Chain(RetryStrategy.never(), attempt_timeout=attempt_timeout, attempts=1)
    connector = aiohttp.TCPConnector(**{place: 1})
    async with chain.build(connector=connector) as session, session.get(url):
        counted = chain.breaker.event_count
        with pytest.raises(TimeoutError) as caught:
            await session.post(url, timeout=ClientTimeout(**limits))

    assert kind is type(caught.value)
    assert counted == chain.breaker.event_count
    assert RetrySafety.YES is retry_safety(caught.value)
    assert is_unprocessed(caught.value)


async def test_post_that_found_no_place_is_sent_again(serve):
    """The server has seen nothing of it, and the budget does not brake."""
    url = await serve([OK, 60.0], [OK + b"0123456789"])
    backoff = GivesThePlaceBack()
    chain = Chain(RetryStrategy.on_unprocessed(backoff))
    connector = aiohttp.TCPConnector(limit=1)
    async with chain.build(connector=connector) as session:
        backoff.response = await session.get(url, timeout=ClientTimeout(total=60.0))
        response = await session.post(url, timeout=ClientTimeout(connect=0.5))
        log = RequestLog.of(response)
        await response.read()

    assert 200 == response.status
    assert log.children[0].response_cause is not None
    assert 0 == chain.breaker.event_count.failure


async def test_slow_connection_does_concern_the_server():
    """A server that does not take connections counts as a failure, as before."""

    class NoAnswer(aiohttp.abc.AbstractResolver):
        async def resolve(self, host, port=0, family=0):
            await asyncio.sleep(60.0)

        async def close(self):
            pass

    chain = Chain(RetryStrategy.never(), attempts=1)
    connector = aiohttp.TCPConnector(resolver=NoAnswer())
    async with chain.build(connector=connector) as session:
        with pytest.raises(aiohttp.ConnectionTimeoutError):
            await session.get(
                "http://api.invalid/", timeout=ClientTimeout(connect=0.05)
            )

    assert CircuitState.OPEN is chain.breaker.state
