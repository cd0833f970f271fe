"""Retries of a call: counting, the last outcome, cancellation, the log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import aiohttp
import chains
import pytest
from chains import (
    NOW,
    URL,
    Always,
    log_of_cancelled,
    notes_of,
    response_of,
    retrying,
    session,
    silence,
    twice,
)

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryStopReason,
    RetryStrategy,
    UnprocessedRequestError,
    client_decorator,
)
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


async def test_decorator_outside_finds_the_last_failure_in_the_log():
    """By the time it sees the exception, the log of the call knows it too."""
    seen = []

    @client_decorator
    async def outside(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        except aiohttp.ClientError as error:
            seen.append((error, ctx.log.response_cause))
            raise

    last = aiohttp.ServerDisconnectedError()
    decorator = retrying(Always(), max_total_attempts=2)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await response_of(session([503, last], decorator, outside))

    assert [(last, last)] == seen


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


async def test_ten_attempts_are_made_by_default():
    """The default limit counts the first attempt."""
    transport = ScriptedTransport([503] * 11)
    response = await response_of(session(transport, retrying(Always())))

    assert 10 == len(transport.requests) == RequestLog.of(response).total_attempts


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

    async def test_cancelled_error_is_not_a_failure_to_retry(self):
        """A decorator that raises it is the caller going away."""
        transport = ScriptedTransport([asyncio.CancelledError(), 200])
        with pytest.raises(asyncio.CancelledError):
            await response_of(session(transport, retrying(Always())))

        assert 1 == len(transport.requests)


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


async def test_refusal_of_a_decorator_inside_is_an_attempt():
    """A refusal by a decorator is retried like a refused connection."""
    refusals = iter([UnprocessedRequestError("busy"), None])

    @client_decorator
    async def doorman(delegate, ctx, request):
        refusal = next(refusals)
        if refusal is not None:
            raise refusal
        return await delegate.execute(ctx, request)

    async with session(
        [200], doorman, retrying(RetryStrategy.on_unprocessed(NOW))
    ) as client:
        response = await client.post(URL)

    assert 2 == RequestLog.of(response).total_attempts


async def test_log_of_a_call_while_it_runs():
    """A call between two attempts is not complete and shows no response yet."""
    seen: list[tuple[bool, int | None, int]] = []

    def look(ctx, request):
        log = ctx.root.log
        seen.append((log.is_complete, log.response_status, len(log.children)))
        return 200

    decorator = retrying(Always(), max_total_attempts=2)
    await response_of(session([503, look], decorator))

    assert [(False, None, 2)] == seen


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
