"""Very many calls at once, through a full chain."""

import asyncio
import gc
import logging
import sys

import pytest

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    LoggingClient,
    RequestLog,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    new_response,
)

pytestmark = pytest.mark.long
FEW, MANY = 1000, 20_000


class SlowServer:
    """Answers after a second: 503 to the first attempt of a call, then 200."""

    def __init__(self):
        self.requests = 0

    def __call__(self, delegate):
        return self

    async def execute(self, ctx, request):
        self.requests += 1
        await asyncio.sleep(1.0)
        return new_response(request, 503 if ctx.attempt == 1 else 200)


def full_chain(server):
    logger = logging.getLogger("tests.many_calls")
    logger.setLevel(logging.CRITICAL)
    breaker = CircuitBreaker(failure_rate_threshold=1.0)
    budget = RetryBudget(capacity=MANY, brake_after=None)
    strategy = RetryStrategy.failsafe(Backoff.fixed(0.5))
    return (
        SessionBuilder()
        .decorator(server)
        .decorator(CircuitBreakerClient.new_decorator(breaker))
        .decorator(LoggingClient.new_decorator(logger))
        .decorator(RetryingClient.new_decorator(strategy, limiter=budget))
    )


async def blocks_held_by(calls):
    """Return how many blocks of memory a call holds while all of them wait."""
    server, loop = SlowServer(), asyncio.get_running_loop()
    began = loop.time()
    async with full_chain(server).build() as session:

        async def attempts_of_a_call():
            async with session.get("http://orders.example/") as response:
                return response.status, RequestLog.of(response).total_attempts

        before = sys.getallocatedblocks()
        tasks = [asyncio.ensure_future(attempts_of_a_call()) for _ in range(calls)]
        await asyncio.sleep(0.5)
        held = sys.getallocatedblocks() - before
        assert calls == server.requests
        results = await asyncio.gather(*tasks)

    assert {(200, 2)} == set(results)
    assert 2 * calls == server.requests
    assert 2.5 == loop.time() - began
    return held / calls


async def test_twenty_thousand_calls_at_once_end():
    """They end when one alone would, and each takes as much memory as in a thousand."""
    gc.disable()  # it would look at millions of objects, again and again
    try:
        few, many = await blocks_held_by(FEW), await blocks_held_by(MANY)
    finally:
        gc.enable()

    assert many <= 1.1 * few
