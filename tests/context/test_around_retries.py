"""Decorators around a retrying client: what they see, and what they may do."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from calls import REQUEST, begin
from chains import SAFELY, URL, now, retrying, session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    RequestLog,
    RetryBudget,
    RetryStrategy,
    SessionBuilder,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport

SAFELY_RETRIED = retrying(SAFELY)


@pytest.mark.parametrize("answers", [[200], [503, 200]])
async def test_strategy_outside_of_retries_may_take_its_time(answers):
    """The call waits for it."""
    judged = []

    class Slow(CircuitBreakerStrategy):
        async def should_report_as_success(self, ctx, cause):
            await asyncio.sleep(1.0)
            judged.append(ctx.log.response_status)
            return True

    guarded = CircuitBreakerClient.new_decorator(CircuitBreaker(), Slow())
    async with session(answers, SAFELY_RETRIED, guarded) as client:
        await client.get(URL)

    assert [200] == judged
    assert 1.0 == now()


async def test_retries_around_retries_made_by_hand():
    """A builder refuses such a chain; by hand the outer ones see an answer."""
    transport = ScriptedTransport([503, 503, 503, 200])
    twice = retrying(SAFELY, max_total_attempts=2)
    response = await twice(twice(transport)).execute(begin(), REQUEST)

    assert (503, 2) == (response.status, len(transport.requests))


async def test_a_budget_of_one_s_own_hears_of_each_success():
    """Of a first attempt, too."""
    heard = []

    class Own(RetryBudget):
        def on_success(self, ctx):
            heard.append(ctx.log.response_status)
            super().on_success(ctx)

    budget = Own(capacity=10)
    retries = retrying(RetryStrategy.failsafe(), limiter=budget)
    async with session([204], retries) as client:
        await client.get(URL)

    assert [204] == heard


async def test_what_fails_around_a_call_is_no_failure_of_its_attempt():
    """The attempt keeps its answer in the log."""

    class Raising(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            raise KeyError

    guarded = CircuitBreakerClient.new_decorator(CircuitBreaker(), Raising())
    async with session([200], SAFELY_RETRIED, guarded) as client:
        with pytest.raises(KeyError) as caught:
            await client.get(URL)
    log = RequestLog.of(caught.value)

    assert KeyError is type(log.response_cause)
    assert [200] == [each.response_status for each in log.children]


async def test_what_fails_around_a_call_of_a_mock(monkeypatch):
    """Its attempt keeps its answer, too."""

    class Raising(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            raise KeyError

    async def answer(session, method, url, **options):
        return new_response(REQUEST, 204)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", answer)
    guarded = CircuitBreakerClient.new_decorator(CircuitBreaker(), Raising())
    builder = SessionBuilder().decorator(SAFELY_RETRIED).decorator(guarded)
    async with builder.build() as client:
        with pytest.raises(KeyError) as caught:
            await client.get(URL)
    log = RequestLog.of(caught.value)

    assert KeyError is type(log.response_cause)
    assert [204] == [each.response_status for each in log.children]
