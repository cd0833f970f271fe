"""Calls that time out while they wait for a place in the session's own pool."""

import asyncio
import contextlib

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
    HedgingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryBudget,
    RetrySafety,
    RetryStrategy,
    client_decorator,
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


@contextlib.asynccontextmanager
async def held(session, url):
    """Hold a connection of a session's pool, whatever limits the session has."""
    plain = aiohttp.ClientSession(connector=session.connector, connector_owner=False)
    async with plain, plain.get(url):
        yield


@pytest.mark.parametrize("place", ["limit", "limit_per_host"])
@each_limit
async def test_full_pool_says_nothing_about_the_server(
    serve, place, limits, attempt_timeout, kind
):
    """No circuit breaker opens and no budget brakes, whichever limit passes."""
    url = await serve([OK, 60.0])
    chain = Chain(RetryStrategy.never(), attempt_timeout=attempt_timeout, attempts=1)
    connector = aiohttp.TCPConnector(**{place: 1})
    async with chain.build(connector=connector) as session, held(session, url):
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


TEXTS = {
    "connect": "no free connection in the pool in time, for {url}",
    "attempt": "attempt 1 had 0.050 s, and was in the pool's queue",
    "call": "the deadline passed in the pool's queue, attempts: 1",
}


@each_limit
async def test_error_says_that_time_ran_out_in_the_queue(
    serve, request, limits, attempt_timeout, kind
):
    """A server that was never asked is not called slow, in any text."""
    url = await serve([OK, 60.0])
    chain = Chain(RetryStrategy.never(), attempt_timeout=attempt_timeout, attempts=1)
    connector = aiohttp.TCPConnector(limit=1)
    async with chain.build(connector=connector) as session, held(session, url):
        with pytest.raises(TimeoutError) as caught:
            await session.post(url, timeout=ClientTimeout(**limits))
    log = RequestLog.of(caught.value)
    assert 1 == len(log.children)
    _, line = log.render().splitlines()

    text = TEXTS[request.node.callspec.id].format(url=url)
    assert text == str(caught.value)
    assert f"{kind.__name__}: {text}" == log.to_dict()["response_cause"]
    assert f"└─ 1  {kind.__name__}, in the pool's queue, not sent   " == line[:-7]


async def test_deadline_in_the_queue_of_a_call_that_nothing_retries(serve):
    """The error has the seconds of the call, and says where they went."""
    url = await serve([OK, 60.0])
    async with (
        connected(None, connector=aiohttp.TCPConnector(limit=1)) as session,
        session.get(url),
    ):
        with pytest.raises(ResponseTimeoutError) as caught:
            await session.get(url, timeout=ClientTimeout(total=0.05))

    assert "the call had 0.050 s, and was in the pool's queue" == str(caught.value)
    assert (
        f"ResponseTimeoutError: {caught.value}" in RequestLog.of(caught.value).render()
    )


async def test_limit_of_a_decorator_in_the_queue(serve):
    """A timeout of aiohttp's without any words gets some."""

    @client_decorator
    async def hurry(delegate, ctx, request):
        """Give each request its own limit."""
        return await delegate.execute(
            ctx, request.replace(timeout=ClientTimeout(total=0.05))
        )

    url = await serve([OK, 60.0])
    async with (
        connected(None, hurry, connector=aiohttp.TCPConnector(limit=1)) as session,
        held(session, url),
    ):
        with pytest.raises(TimeoutError) as caught:
            await session.get(url)

    assert "no free connection in the pool in time" == str(caught.value)
    assert (
        "TimeoutError, in the pool's queue, not sent"
        in RequestLog.of(caught.value).render()
    )


@pytest.mark.parametrize("decorators", [(), (HedgingClient.new_decorator(delay=5.0),)])
async def test_cancelled_call_passes_on_the_connection_that_it_was_woken_for(
    serve, decorators
):
    """The next in the queue of the pool gets it, which aiohttp alone forgets."""
    url = await serve([OK, 60.0], [OK, 60.0])
    connector = aiohttp.TCPConnector(limit=1)
    async with connected(None, *decorators, connector=connector) as session:
        response = await session.get(url)
        woken, next_one = (asyncio.create_task(session.get(url)) for _ in range(2))
        await asyncio.sleep(0.05)
        response.close()
        woken.cancel()
        async with asyncio.timeout(5.0):
            response = await next_one
        response.close()

    assert 200 == response.status
    assert woken.cancelled()
