"""Bodies that fail while they are looked at or read."""

import aiohttp
import pytest
from fake_responses import HEAD, SOON, WhileBusy, assert_nothing_is_held, build, sized

from aioretry_smithy import RequestLog, RetryStopReason, RetryStrategy

pytestmark = pytest.mark.slow

FAILURES = {
    "stalls": ([HEAD + b"Content-Length: 9\r\n\r\nbusy", 3600.0], TimeoutError),
    "silent": ([HEAD + b"Content-Length: 9\r\n\r\n", 3600.0], TimeoutError),
    "truncated": (
        [HEAD + b"Content-Length: 9\r\n\r\nbusy", 0.01, None],
        aiohttp.ClientPayloadError,
    ),
    "truncated chunk": (
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nbusy", 0.01, None],
        aiohttp.ClientPayloadError,
    ),
    "bad gzip": (
        [HEAD + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n", b"not gzip."],
        aiohttp.ClientPayloadError,
    ),
}


@pytest.mark.parametrize("strategy", [WhileBusy, RetryStrategy.failsafe])
@pytest.mark.parametrize("failure", FAILURES)
async def test_failure_of_the_body_is_a_failed_attempt(serve, failure, strategy):
    """It is retried on a new connection, and the log keeps the status that came."""
    answer, kind = FAILURES[failure]
    url = await serve(answer, [sized(b"done")])
    buffer = strategy is not WhileBusy
    async with build(url, strategy(), limit=0.5, buffer=buffer) as session:
        response = await session.get("/")
        first, last = RequestLog.of(response).children

        assert b"done" == await response.read()
        assert isinstance(first.response_cause, kind)
        assert 200 == first.response_status == last.response_status
        assert first.is_complete
        assert last.response_cause is None
        assert_nothing_is_held(session)


@pytest.mark.parametrize("failure", FAILURES)
async def test_strategy_is_asked_about_a_failure_of_the_body(serve, failure):
    """It gets the error as its cause, the one that the log has, and no content."""
    answer, _ = FAILURES[failure]
    url = await serve(answer, [sized(b"done")])
    strategy = WhileBusy()
    async with build(url, strategy, limit=0.5) as session:
        response = await session.get("/")
        first, _ = RequestLog.of(response).children

    (_, cause, _), _ = strategy.seen
    assert [(200, cause, None), (200, None, b"done")] == strategy.seen
    assert repr(cause) == repr(first.response_cause)


async def test_last_failure_of_the_body_is_raised(serve):
    """The caller gets the error from the call, with its log, not later."""
    url = await serve(FAILURES["truncated"][0])
    async with build(
        url, RetryStrategy.failsafe(SOON), attempts=2, buffer=True
    ) as session:
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await session.get("/")
        log = RequestLog.of(caught.value)

        assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
        assert 2 == log.total_attempts
        assert caught.value is log.response_cause
        assert_nothing_is_held(session)


async def test_failure_after_what_was_looked_at_is_the_callers(serve):
    """A part that the strategy did not want to see fails as in aiohttp."""
    url = await serve([HEAD + b"Content-Length: 9\r\n\r\nfine", 0.05, None])
    async with build(url, WhileBusy(4)) as session:
        response = await session.get("/")
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await response.read()

    assert caught.value is RequestLog.of(response).response_cause


async def test_order_whose_answer_was_cut_is_not_repeated(serve):
    """The server has done the work: ``failsafe`` does not send a POST again for it."""
    url = await serve(FAILURES["truncated"][0], [sized(b"done")])
    async with build(url, RetryStrategy.failsafe(SOON), buffer=True) as session:
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await session.post("/")

    assert RetryStopReason.NO_RETRY == RequestLog.of(caught.value).stop_reason
