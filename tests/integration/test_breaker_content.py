"""Circuit breakers that look into bodies from a real server."""

import asyncio

import aiohttp
import pytest
from chains import connected, pass_on, retrying
from fake_responses import HEAD, sized

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRuleWithContent,
    EventCount,
    RequestLog,
    RetryStrategy,
)

pytestmark = pytest.mark.slow

SAFELY = RetryStrategy.failsafe(Backoff.fixed(0.01))
RULE = CircuitBreakerRuleWithContent(
    on_content=lambda content: content is not None and content.startswith(b"busy"),
    max_content_length=64,
)


chains = pytest.mark.parametrize(
    ("inside", "outside"), [((), ()), ((pass_on,), ()), ((), (pass_on,))]
)


FAILURES = {
    "stalls": ([HEAD + b"Content-Length: 9\r\n\r\nbusy", 3600.0], TimeoutError),
    "truncated": (
        [HEAD + b"Content-Length: 9\r\n\r\nbu", 0.01, None],
        aiohttp.ClientPayloadError,
    ),
    "truncated chunk": (
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nbu", 0.01, None],
        aiohttp.ClientPayloadError,
    ),
    "bad gzip": (
        [HEAD + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n", b"not gzip."],
        aiohttp.ClientPayloadError,
    ),
}


@pytest.fixture
def breaker():
    return CircuitBreaker("orders", failure_rate_threshold=1)


@chains
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_body_that_fails_is_a_failed_attempt(
    serve, breaker, failure, inside, outside
):
    """It is counted and retried, and the log keeps the status that came."""
    answer, kind = FAILURES[failure]
    url = await serve(answer, [sized(b"done and more")])
    guarded = CircuitBreakerClient.new_decorator(breaker, RULE)
    limited = retrying(SAFELY, attempt_timeout=0.5)
    async with connected(url, *inside, guarded, *outside, limited) as session:
        response = await session.get("/")
        first, last = RequestLog.of(response).children

        assert b"done and more" == await response.read()
        assert isinstance(first.response_cause, kind)
        assert 200 == first.response_status == last.response_status
        assert EventCount(success=1, failure=1) == breaker.event_count
        assert not session.connector._acquired


async def test_a_pool_of_one_connection_is_given_back(serve, breaker):
    """Also where the call is cancelled while a rule waits for the body."""
    url = await serve(FAILURES["stalls"][0], [sized(b"done")])
    guarded = CircuitBreakerClient.new_decorator(breaker, RULE)
    pool = aiohttp.TCPConnector(limit=1)
    async with asyncio.timeout(20), connected(url, guarded, connector=pool) as session:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await session.get("/")
        async with session.get("/") as response:
            assert b"done" == await response.read()

    assert EventCount(success=1, failure=0) == breaker.event_count
