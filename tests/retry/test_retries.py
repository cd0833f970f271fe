"""Retries of a call: counting, the last outcome, cancellation, the log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from unittest.mock import MagicMock

import aiohttp
import chains
import pytest
from balanced import Fleet, call, group_of
from calls import REQUEST, begin, call_of
from chains import (
    URL,
    Always,
    after,
    log_of_cancelled,
    notes_of,
    now,
    response_of,
    retrying,
    session,
    silence,
    twice,
)
from fake_responses import FakeResponse, FakeStream
from limiters import Unhurried

from aioretry_smithy import (
    Backoff,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RequestLog,
    RetryStopReason,
    RetryStrategy,
    client_decorator,
    new_response,
)
from aioretry_smithy._retry.call_adapter import HTTP
from aioretry_smithy._retry.ending import keep_as_context
from aioretry_smithy.testing import ScriptedTransport


async def test_response_of_the_last_attempt_is_handed_over_as_it_is():
    """A 503 that ends a call is a 503, with its body to be read."""
    decorator = retrying(Always(), max_total_attempts=2)
    async with session([503, (503, {}, b"still down")], decorator) as client:
        response = await client.get(URL)
        body = await response.read()

    assert (503, b"still down") == (response.status, body)
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == RequestLog.of(response).stop_reason


async def test_exception_of_the_last_attempt_is_raised_as_it_is():
    """The caller gets the very exception object, with a note for each attempt."""
    last = aiohttp.ServerDisconnectedError("gone")
    decorator = retrying(Always(Backoff.fixed(0.25)), max_total_attempts=3)
    with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
        await response_of(session([503, TimeoutError(), last], decorator))

    assert last is caught.value
    assert last.__cause__ is None
    assert [
        "attempt 1: 503 Service Unavailable, 0.000 s, then waited 0.250 s (backoff)",
        "attempt 2: TimeoutError, 0.000 s, then waited 0.250 s (backoff)",
        "attempt 3: ServerDisconnectedError: gone, 0.000 s",
    ] == notes_of(last)


async def test_failure_at_the_first_attempt_has_no_notes():
    """A call that was never retried looks as it does without this library."""
    failure = aiohttp.ServerDisconnectedError()
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await response_of(session([failure], retrying(RetryStrategy.never())))

    assert not hasattr(failure, "__notes__")
    assert RetryStopReason.NO_RETRY == RequestLog.of(failure).stop_reason


@pytest.mark.parametrize(
    ("status", "reason"),
    [(200, None), (399, None), (400, "no_retry"), (503, "no_retry")],
)
async def test_stop_reason_is_none_after_a_success_only(status, reason):
    """A status of 400 and more is no success, whatever the strategy thinks."""
    response = await response_of(session([status], retrying(RetryStrategy.never())))

    assert reason == RequestLog.of(response).stop_reason


@pytest.mark.parametrize(
    ("interval", "is_connected", "ends"),
    [
        (0.01, True, ["release", "close"]),
        (0.2, True, ["close"]),
        (0.2, False, ["release"]),
    ],
    ids=["soon", "late", "without a connection"],
)
async def test_rest_of_an_answer_may_be_read_before_the_retry(
    interval, is_connected, ends
):
    """It is where that soon frees a connection for the next attempt."""
    busy = FakeResponse(FakeStream(1, interval=interval), status=503)
    if not is_connected:
        busy.connection = None

    @client_decorator
    async def answer(delegate, ctx, request):
        return busy if ctx.attempt == 1 else await delegate.execute(ctx, request)

    again = retrying(Always(Backoff.fixed(1.0)), max_total_attempts=2)
    response = await response_of(session([200], answer, again))

    assert (200, ends) == (response.status, busy.calls)


class TestCancellation:
    """It is never swallowed and leaves nothing open, wherever it strikes."""

    @pytest.mark.parametrize("after", [0.5, 1.5, 2.5])
    async def test_cancelled_call_ends_as_cancelled(self, after):
        """In an attempt, in the strategy's own waiting, and between attempts."""

        class Slow(RetryStrategy):
            backoff = Backoff.fixed(1.0)

            async def should_retry(self, ctx, cause):
                await asyncio.sleep(1.0)
                return self.backoff

        slow = chains.after(1.0, 503)
        log = await log_of_cancelled(session([slow], retrying(Slow())), after)

        assert RetryStopReason.CANCELLED == log.stop_reason
        assert log.is_complete
        assert all(child.is_complete for child in log.children)
        assert isinstance(log.response_cause, asyncio.CancelledError)

    async def test_cancellation_in_a_decorator_ends_the_log_of_the_attempt(self):
        """Also where no leaf was reached to record it."""

        @client_decorator
        async def stuck(delegate, ctx, request):
            await asyncio.sleep(10.0)

        client = session([], stuck, retrying(Always()))
        log = await log_of_cancelled(client, 1.0)

        assert [True] == [child.is_complete for child in log.children]


class TestSeveralPasses:
    """A decorator outside sends the request through the retrying client twice."""

    async def test_limits_hold_for_each_pass_and_numbers_go_on(self):
        """Two attempts each, numbered 1 to 4; the header counts to 3."""
        transport = ScriptedTransport([503] * 4)
        response = await response_of(
            session(transport, retrying(Always(), max_total_attempts=2), twice)
        )

        log = RequestLog.of(response)
        assert [1, 2, 3, 4] == [child.attempt for child in log.children]
        assert [None, "1", "2", "3"] == [
            request.headers.get("armeria-retry-count") for request in transport.requests
        ]


class TestOtherPeoplesCode:
    """Strategies, decorators and exceptions of other people's may do odd things."""

    async def test_exception_that_refuses_notes_is_raised_all_the_same(self):
        """Its notes are lost, not the exception."""

        @dataclass(frozen=True)
        class Gone(Exception):  # noqa: N818
            status: int

        gone = Gone(410)
        decorator = retrying(Always(), max_total_attempts=2)
        with pytest.raises(Gone) as caught:
            await response_of(session([503, gone], decorator))

        assert gone is caught.value

    async def test_stream_that_a_decorator_puts_in_stops_at_the_second_attempt(self):
        """It has been read; the call ends with the answer that it had."""

        async def stream():
            yield b""

        body = stream()

        @client_decorator
        async def streaming(delegate, ctx, request):
            return await delegate.execute(ctx, request.replace(data=body))

        response = await response_of(session([503] * 10, streaming, retrying(Always())))

        log = RequestLog.of(response)
        assert 503 == response.status == log.response_status
        assert (2, "body_not_replayable") == (log.total_attempts, log.stop_reason)

    async def test_pass_that_lost_a_race_does_not_touch_the_log_of_the_winner(self):
        """A decorator that asks twice at once cancels the slower one."""

        @client_decorator
        async def hedging(delegate, ctx, request):
            slow = asyncio.create_task(delegate.execute(ctx, request))
            await asyncio.sleep(1.0)
            response = await delegate.execute(ctx, request)
            slow.cancel()
            await asyncio.wait([slow])
            return response

        decorator = retrying(0.0)
        response = await response_of(session([silence, 200], decorator, hedging))

        assert (200, None) == (response.status, RequestLog.of(response).stop_reason)

    async def test_attempts_below_a_derived_context_are_those_of_the_call(self):
        """With a user's retrying decorator around ours every attempt is in the log."""

        @client_decorator
        async def outer(delegate, ctx, request):
            return await delegate.execute(ctx.derive(request), request)

        decorator = retrying(Always(), max_total_attempts=3)
        response = await response_of(session([503] * 3, decorator, outer))

        log = RequestLog.of(response)
        assert 503 == log.response_status
        assert [None, 503, 503, 503] == [
            child.response_status for child in log.children
        ]
        assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason


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


async def test_retry_count_header_is_absent_on_the_first_attempt_only():
    """The server is told how many attempts were made before."""
    transport = ScriptedTransport([503, 503, 200])
    await response_of(
        session(transport, retrying(Always(), max_total_attempts=3)),
        headers={"X-Shop": "7"},
    )

    assert [None, "1", "2"] == [
        request.headers.get("armeria-retry-count") for request in transport.requests
    ]
    assert ["7", "7", "7"] == [
        request.headers["X-Shop"] for request in transport.requests
    ]


async def test_retry_count_header_replaces_a_value_of_the_callers_own():
    """It is set, not appended; on the first attempt the caller's value stays."""
    transport = ScriptedTransport([503, 503])
    await response_of(
        session(transport, retrying(Always(), max_total_attempts=2)),
        headers={"Armeria-Retry-Count": "x"},
    )

    assert [["x"], ["1"]] == [
        request.headers.getall("armeria-retry-count") for request in transport.requests
    ]


@pytest.mark.parametrize(("name", "expected"), [("X-Attempt", "1"), (None, None)])
async def test_retry_count_header_can_be_renamed_and_switched_off(name, expected):
    """The name is a setting; None means no header."""
    transport = ScriptedTransport([503, 503])
    decorator = retrying(Always(), max_total_attempts=2, retry_count_header=name)
    await response_of(session(transport, decorator))

    assert expected == transport.requests[1].headers.get("X-Attempt")
    assert "armeria-retry-count" not in transport.requests[1].headers


async def test_first_attempt_sends_the_request_of_the_caller_untouched():
    """Mocks that compare arguments see what the caller passed."""
    transport = ScriptedTransport([200])
    decorator = retrying(RetryStrategy.failsafe(), attempt_timeout=3.0)
    await response_of(session(transport, decorator))

    assert {"allow_redirects": True} == transport.requests[0].options


async def test_timeout_of_a_strategy_that_looks_at_a_body_is_its_own():
    """No limit of the call has passed, so it is raised as it is."""
    call, failure = call_of(begin()), TimeoutError()

    async def look(response):
        raise failure

    with pytest.raises(TimeoutError) as caught:
        await HTTP.read(call, new_response(REQUEST), look)

    assert failure is caught.value


class TestDrain:
    """The rest of a body that is given up before a retry."""

    @pytest.mark.parametrize("delay", [0.0, 0.05, 0.25])
    async def test_drain_is_part_of_the_wait(self, delay):
        """A body that stalls does not make the next attempt late."""
        stalled: list[aiohttp.ClientResponse] = []

        def stall(ctx, request):
            response: Any = new_response(request, 503)
            response._connection = MagicMock()
            loop = asyncio.get_running_loop()
            protocol = aiohttp.client_proto.ResponseHandler(loop)
            protocol.connection_made(MagicMock())
            response.content = aiohttp.StreamReader(protocol, limit=1, loop=loop)
            stalled.append(response)
            return response

        decorator = retrying(delay)
        timeout = delay + 0.01
        response = await response_of(session([stall, 200], decorator, timeout=timeout))

        assert (200, delay) == (response.status, now())
        assert delay == RequestLog.of(response).children[0].delay
        assert stalled[0].closed


async def test_ten_attempts_are_made_by_default():
    """The default limit counts the first attempt."""
    transport = ScriptedTransport([503] * 11)
    response = await response_of(session(transport, retrying(Always())))

    assert 10 == len(transport.requests) == RequestLog.of(response).total_attempts


def test_context_that_there_is_stays():
    """It is not written over, nor made a circle."""
    cause, error = ValueError(), ZeroDivisionError()
    keep_as_context(error, cause)
    keep_as_context(error, KeyError())
    first = error.__context__
    keep_as_context(cause, error)

    assert (cause, None) == (first, cause.__context__)
