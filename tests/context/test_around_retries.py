"""Decorators around a retrying client: what they see, and what they may do."""

from __future__ import annotations

import pytest
from calls import REQUEST, begin
from chains import SAFELY, URL, retrying, session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    RequestLog,
)
from aioretry_smithy.testing import ScriptedTransport

SAFELY_RETRIED = retrying(SAFELY)


async def test_retries_around_retries_made_by_hand():
    """A builder refuses such a chain; by hand the outer ones see an answer."""
    transport = ScriptedTransport([503, 503, 503, 200])
    twice = retrying(SAFELY, max_total_attempts=2)
    response = await twice(twice(transport)).execute(begin(), REQUEST)

    assert (503, 2) == (response.status, len(transport.requests))


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
