"""The short lane: which chains have one, and how it ends."""

from __future__ import annotations

import gc

import aiohttp
import pytest

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    HttpRequest,
    LoggingClient,
    RequestLog,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    new_response,
)

URL = "http://example.com/"


class Budget(RetryBudget):
    """One that might do more."""


@pytest.fixture
def answered(monkeypatch):
    """Let aiohttp answer every request at once."""

    async def _request(self, method, url, **options):
        return new_response(HttpRequest(method, url), body=b"fine")

    monkeypatch.setattr(aiohttp.ClientSession, "_request", _request)


def build(*decorators):
    builder = SessionBuilder()
    for decorator in decorators:
        builder.decorator(decorator)
    return builder.build()


@pytest.mark.parametrize(
    "decorator",
    [
        RetryingClient.new_decorator(RetryStrategy.failsafe(), limiter=Budget()),
        RetryingClient.new_decorator(
            RetryStrategy.failsafe(), limiter=Budget.per_host()
        ),
        RetryingClient.new_decorator(
            RetryStrategy.on_unprocessed() | RetryStrategy.on_server_error_status()
        ),
        LoggingClient.new_decorator(request_log_level=lambda log: 10),
    ],
)
async def test_client_that_may_do_more_sees_the_call(decorator, answered):
    """The call succeeds in either lane."""
    async with build(decorator) as session:
        response = await session.get(URL)

        assert b"fine" == await response.read()
        assert 1 == RequestLog.of(response).total_attempts


@pytest.mark.parametrize("retries", [False, True])
async def test_clock_that_raises_after_a_success_ends_the_call(retries, answered):
    """The response is closed, and the log has the error."""
    broken = []

    def clock():
        if broken:
            raise LookupError("no time")
        return 0.0

    breaker = CircuitBreaker(clock=clock)
    retrying = RetryingClient.new_decorator(RetryStrategy.failsafe())
    breaking = CircuitBreakerClient.new_decorator(breaker)
    async with build(breaking, *[retrying] * retries) as session:
        broken.append(True)
        with pytest.raises(LookupError, match="no time") as caught:
            await session.get(URL)

    assert "LookupError('no time')" == repr(RequestLog.of(caught.value).response_cause)


async def test_session_that_is_gone_is_closed(answered):
    """Who keeps its method alone does not keep the session."""
    session = build()
    request = session._request
    await session.close()
    del session
    gc.collect()

    with pytest.raises(RuntimeError, match="Session is closed"):
        await request("GET", URL)
