"""Hedges beside a circuit breaker, and against the clock, on real connections."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web
from chains import connected, now, retrying
from races import hedging

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RequestLog,
    ResponseTimeoutError,
    RetryStrategy,
    new_response,
)

pytestmark = pytest.mark.slow

SLOW = 0.05
"""Seconds to an answer, several times as long as the delay of the hedges."""

DELAY = 0.01
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
FALLBACK = 203


class Server:
    """Fails until it is up, and is late then."""

    def __init__(self):
        self.is_up = False

    async def respond(self, request):
        if not self.is_up:
            return web.Response(status=500)
        await asyncio.sleep(SLOW)
        return web.Response(text="orders")


def fallback(ctx, request):
    return new_response(request, FALLBACK, body=b"cached")


@pytest.mark.parametrize("retries", [(), (retrying(RetryStrategy.never()),)])
async def test_a_circuit_closes_after_an_outage(serving, retries):
    """Each call is hedged, and each hedge of the trial gets the fallback's answer."""
    behind = Server()
    server = await serving(behind.respond)
    breaker = CircuitBreaker(
        minimum_request_threshold=1, circuit_open_window=0.5, trial_request_interval=60
    )
    inside = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
    chain = inside, hedging(DELAY), *retries
    async with connected(server.make_url("/"), *chain) as client:

        async def get():
            async with client.get("/orders") as response:
                return response.status, await response.text()

        await get()
        opened, behind.is_up = breaker.state, True
        during = await get()
        await asyncio.sleep(0.6)
        after = await asyncio.gather(*(get() for _ in range(20)))

        assert (CircuitState.OPEN, (FALLBACK, "cached")) == (opened, during)
        assert CircuitState.CLOSED is breaker.state
        assert (200, "orders") in after
        assert {(200, "orders")} == {*await asyncio.gather(*(get() for _ in range(9)))}


async def test_a_trial_that_fails_is_retried(serve):
    """Its hedge was refused, which is not why the call failed."""
    url = await serve([SLOW, ConnectionResetError], [HEAD])
    breaker = CircuitBreaker(
        minimum_request_threshold=1, circuit_open_window=0.1, trial_request_interval=60
    )
    breaker.enter_state(CircuitState.OPEN)
    await asyncio.sleep(0.15)
    inside = CircuitBreakerClient.new_decorator(breaker)
    retries = retrying(RetryStrategy.failsafe(Backoff.fixed(0.2)))
    async with (
        connected(url, inside, hedging(DELAY), retries) as client,
        client.get("/") as response,
    ):
        log = RequestLog.of(response)

    assert 200 == response.status
    assert [True, False] == [each.sent for each in log.children[:2]]
    assert CircuitState.CLOSED is breaker.state


@pytest.mark.parametrize("retries", [(), (retrying(0.01),)])
async def test_a_race_that_the_deadline_cuts_says_so(serve, retries):
    """The first request was reset, and its hedge is never answered."""
    url = await serve([ConnectionResetError], [60.0])
    chain = hedging(SLOW), *retries
    async with connected(url, *chain, timeout=aiohttp.ClientTimeout(0.4)) as client:
        started = now()
        with pytest.raises(ResponseTimeoutError) as caught:
            await client.get("/")
        lasted = now() - started

    log = RequestLog.of(caught.value)
    first = log.children[0].response_cause
    assert isinstance(caught.value.__cause__, aiohttp.ClientOSError)
    assert str(first) == str(caught.value.__cause__)
    assert 0.38 <= log.duration <= lasted + 0.02


async def test_a_failed_race_lasts_to_its_end(serve):
    """The first failure counts, and the call took as long as the second."""
    url = await serve([ConnectionResetError], [SLOW * 4, ConnectionResetError])
    async with connected(url, hedging(SLOW)) as client:
        with pytest.raises(aiohttp.ClientOSError) as caught:
            await client.get("/")

    log = RequestLog.of(caught.value)
    assert log.children[0].duration < SLOW * 4 < log.duration + 0.002
