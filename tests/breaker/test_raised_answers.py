"""What is raised for a status counts as an answer with that status does."""

from __future__ import annotations

from contextlib import suppress

import aiohttp
import pytest
from chains import URL, session
from pairs import each_pair
from raised import raised, raising

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRpcClient,
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    CircuitBreakerStrategy,
    CircuitState,
    rpc,
)

STRATEGIES = {
    "the default": None,
    "without throttling": CircuitBreakerStrategy.on_server_error_status(
        count_throttling=False
    ),
    "failures": CircuitBreakerRule.failure(statuses=[404]),
    "successes": CircuitBreakerRule.success(status_classes=[5]),
    "ignored": CircuitBreakerRule.ignore(statuses=[503]),
    "content": CircuitBreakerRuleWithContent.failure(
        statuses=[404], on_content=lambda content: False
    ),
}


async def counted(answer, strategy, *inside):
    """Return the successes and the failures that one answer counts for."""
    breaker = CircuitBreaker("shop")
    decorator = CircuitBreakerClient.new_decorator(breaker, strategy)
    async with session([answer], *inside, decorator) as client:
        with suppress(aiohttp.ClientResponseError):
            await client.get(URL)
    count = breaker.event_count
    return count.success, count.failure


@each_pair(
    status=[400, 401, 404, 408, 429, 500, 503, 999],
    headers=[{}, {"Retry-After": "1"}, {"Retry-After": "soon"}],
    name=[*STRATEGIES],
)
async def test_raised_status_counts_as_its_answer_does(status, headers, name):
    """Strategies and rules see the same."""
    answer, strategy = (status, headers, b""), STRATEGIES[name]

    assert await counted(answer, strategy) == await counted(answer, strategy, raising)


async def test_in_figures():
    """A 404 is a success, a 503 a failure, and one that throttles is not counted."""
    throttled = raised(429, {"Retry-After": "3"})

    assert (1, 0) == await counted(raised(404), None)
    assert (0, 1) == await counted(raised(503), None)
    assert (1, 0) == await counted(throttled, None)
    assert (0, 0) == await counted(throttled, STRATEGIES["without throttling"])


@pytest.mark.parametrize(("status", "expected"), [(404, (0, 0)), (503, (0, 1))])
async def test_answer_of_a_proxy_is_none_of_the_server(status, expected):
    """A tunnel that is refused closes no circuit; one that cannot be dug counts."""
    cause = raised(status, kind=aiohttp.ClientHttpProxyError)

    assert expected == await counted(cause, None)


async def test_class_above_that_of_raised_answers_means_failures():
    """A rule on all of them does not count a 404; one on its class does."""
    broad = CircuitBreakerRule.failure(exceptions=aiohttp.ClientError)
    exact = CircuitBreakerRule.failure(exceptions=aiohttp.ClientResponseError)

    assert (1, 0) == await counted(raised(404), broad)
    assert (0, 1) == await counted(raised(404), exact)


async def test_function_that_raises_404_opens_no_circuit():
    """Nothing was found six times, by a server that is well."""
    breaker = CircuitBreaker("shop", minimum_request_threshold=3)
    guard = CircuitBreakerRpcClient.new_decorator(breaker)
    async with session([404] * 6, raise_for_status=True) as client:

        @rpc(guard)
        async def fetch():
            await client.get(URL)

        for _ in range(6):
            with pytest.raises(aiohttp.ClientResponseError):
                await fetch()

    assert CircuitState.CLOSED == breaker.state
    assert (6, 0) == (breaker.event_count.success, breaker.event_count.failure)
