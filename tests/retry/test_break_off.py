"""What breaks into a call between its attempts."""

from __future__ import annotations

import asyncio

import pytest
from balanced import Fleet, call, group_of, state_of
from chains import Always, after, refused, retrying, retrying_session, session
from limiters import Unhurried

from aioretry_smithy import (
    Backoff,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RequestLog,
    RetryStrategy,
    capture_logs,
)
from aioretry_smithy._retry.given_up import keep_as_context


class Breaking(RetryStrategy):
    """Raises at its second question."""

    def __init__(self, error):
        self.error = error
        self.asked = 0

    def should_retry(self, ctx, cause):
        self.asked += 1
        if self.asked == 2:
            raise self.error
        return Backoff.fixed(1.0)


async def test_error_of_a_strategy_goes_to_the_caller():
    """With the failure of the attempt as its context, and why in the log."""
    failure, error = refused(), ZeroDivisionError()
    client = retrying_session([503, failure], Breaking(error))
    async with client:
        raised, log = await call(client, "http://a.example/")

    assert error is raised
    assert failure is error.__context__
    assert ("error", 2) == (log.stop_reason, log.total_attempts)


async def test_between_endpoints_nothing_is_left_under_way():
    """Of a group as of one server."""
    fleet, group = Fleet(a=503, b=503), group_of("abc")
    async with fleet.session(group, retrying(Breaking(ZeroDivisionError()))) as client:
        raised, log = await call(client)

    assert (ZeroDivisionError, "ab", "error") == (
        type(raised),
        fleet.text,
        log.stop_reason,
    )
    assert {0} == {each.in_flight for each in group.states.values()}


async def test_cancelled_between_attempts():
    """The reason is that, and no response is kept."""
    group = group_of("ab")
    with capture_logs() as logs:
        async with Fleet(a=503).session(
            group, retrying(Always(Backoff.fixed(5.0)))
        ) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.0):
                    await client.get("/orders")

    assert ("cancelled", 2.0) == (logs[0].stop_reason, logs[0].children[0].delay)
    assert 0 == state_of(group, "a").in_flight


@pytest.mark.parametrize(("waits", "heard"), [([], "release"), ([9.1], "end")])
async def test_call_that_is_thrown_away_does_not_wait_for_a_limiter(waits, heard):
    """In a wait or in a retry it is told, and clients further out give back theirs."""
    limiter, limit = Unhurried(), ConcurrencyLimit.fixed(1)
    answers = [503, after(9.0, 200)]
    limiting = ConcurrencyLimitingClient.new_decorator(limit)
    async with session(answers, retrying(9.0, limiter=limiter), limiting) as client:
        coroutine = client._request("GET", "http://a.example/")
        coroutine.send(None)
        for seconds in waits:
            await asyncio.sleep(seconds)
            coroutine.send(None)
        coroutine.close()

    assert ([heard], 0) == (limiter.heard, limit.in_flight)


def test_context_that_there_is_stays():
    """It is not written over, nor made a circle."""
    cause, error = ValueError(), ZeroDivisionError()
    keep_as_context(error, cause)
    keep_as_context(error, KeyError())
    first = error.__context__
    keep_as_context(cause, error)

    assert (cause, None) == (first, cause.__context__)


def test_exception_that_refuses_to_be_written_on():
    """It goes as it is."""

    class SealedError(Exception):
        def __setattr__(self, name, value):
            raise TypeError

    error = SealedError()
    keep_as_context(error, ValueError())

    assert error.__context__ is None


async def test_error_has_the_log():
    """As any failure of a call."""
    client = retrying_session([503, 503], Breaking(ZeroDivisionError()))
    async with client:
        with pytest.raises(ZeroDivisionError) as raised:
            await client.get("http://a.example/")

    assert 2 == RequestLog.of(raised.value).total_attempts
