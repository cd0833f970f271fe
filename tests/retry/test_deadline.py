"""The deadline of a call, and the time limit of an attempt."""

from __future__ import annotations

import asyncio

import pytest
from chains import NOW, URL, Always, now, response_of, retrying, session, silence

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryStopReason,
    RetryStrategy,
    is_timeout,
)


class TestDeadline:
    """The worked examples of the Armeria page, and the edges around them."""

    async def test_call_without_delay_is_cut_at_the_deadline(self):
        """10 s for the call, 3 s an attempt, no delay: cut at 10 in the fourth."""
        decorator = retrying(
            RetryStrategy.on_server_error_status(NOW), attempt_timeout=3.0
        )
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([silence] * 5, decorator, timeout=10.0))

        log = RequestLog.of(caught.value)
        third = log.children[2].response_cause
        assert "the deadline passed, attempts: 4" == str(caught.value)
        assert 10.0 == now() == log.duration
        assert [3.0, 3.0, 3.0, 1.0] == [child.duration for child in log.children]
        assert repr(third) == repr(caught.value.__cause__)
        assert is_timeout(third)
        assert RetryStopReason.DEADLINE == log.stop_reason

    async def test_call_with_delay_stops_when_the_next_attempt_would_be_late(self):
        """With 3 s between attempts it stops at 9 with the outcome of attempt 2."""
        decorator = retrying(
            RetryStrategy.on_server_error_status(Backoff.fixed(3.0)),
            attempt_timeout=3.0,
        )
        with pytest.raises(TimeoutError) as caught:
            await response_of(session([silence] * 3, decorator, timeout=10.0))

        log = RequestLog.of(caught.value)
        assert 9.0 == now()
        assert repr(caught.value) == repr(log.children[1].response_cause)
        assert type(caught.value) is AttemptTimeoutError
        assert (2, "deadline") == (log.total_attempts, log.stop_reason)

    async def test_deadline_in_the_first_attempt_is_chained_to_its_own_failure(self):
        """There is no earlier exception to show."""
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([silence], retrying(Always()), timeout=2.0))

        log = RequestLog.of(caught.value)
        (attempt,) = log.children
        assert repr(caught.value.__cause__) == repr(attempt.response_cause)
        assert caught.value is log.response_cause

    async def test_deadline_after_responses_only_is_chained_to_the_cut_attempt(self):
        """A 503 is no exception; the cut attempt's own is the only one."""
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([503, silence], retrying(Always()), timeout=2.0))

        assert "the call had 2.000 s" == str(caught.value.__cause__)

    async def test_deadline_is_chained_to_an_earlier_failure_that_is_falsy(self):
        """An exception that is a collection of none, such as errors of fields."""

        class FieldsError(ConnectionError):
            def __len__(self):
                return 0

        answers = [FieldsError(), silence]
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session(answers, retrying(Always()), timeout=2.0))

        assert FieldsError is type(caught.value.__cause__)

    async def test_strategy_is_not_asked_about_the_deadline(self):
        """A call without time for another attempt is not shown to it."""
        asked = []

        class Asked(Always):
            def should_retry(self, ctx, cause):
                asked.append(cause)
                return NOW

        with pytest.raises(ResponseTimeoutError):
            await response_of(session([silence], retrying(Asked()), timeout=2.0))

        assert [] == asked

    async def test_failure_of_another_kind_is_no_deadline_however_late(self):
        """An attempt cut by the deadline has timed out; a reset is a reset."""

        async def late_reset(ctx, request):
            ctx.root.set_response_timeout(1.0)
            await asyncio.sleep(1.5)
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError) as caught:
            await response_of(session([late_reset], retrying(RetryStrategy.never())))

        assert RetryStopReason.NO_RETRY == RequestLog.of(caught.value).stop_reason

    @pytest.mark.parametrize(("delay", "attempts"), [(9.999, 2), (10.0, 1), (11.0, 1)])
    async def test_delay_as_long_as_the_rest_stops_at_once(self, delay, attempts):
        """An attempt with no time left helps nobody; the response is handed over."""
        decorator = retrying(delay)
        async with session(
            [(503, {}, b"down"), 200], decorator, timeout=10.0
        ) as client:
            response = await client.get(URL)
            body = await response.read()

        log = RequestLog.of(response)
        assert attempts == log.total_attempts
        if attempts == 1:
            assert (b"down", 0.0) == (body, now())
            assert RetryStopReason.DEADLINE == log.stop_reason

    async def test_deadline_that_passes_in_the_strategy_stops_with_the_outcome(self):
        """Its awaiting is cut, and no attempt starts after the deadline."""

        class Slow(RetryStrategy):
            async def should_retry(self, ctx, cause):
                await asyncio.sleep(5.0)
                return NOW

        response = await response_of(session([503], retrying(Slow()), timeout=2.0))

        assert (503, 2.01) == (response.status, now())
        assert RetryStopReason.DEADLINE == RequestLog.of(response).stop_reason

    async def test_deadline_that_passes_while_a_wait_ends_is_an_error(self):
        """The response has been given up by then; a late timer must not hide it."""

        class Late(DecoratingClient):
            async def execute(self, ctx, request):
                asyncio.get_running_loop().call_later(
                    0.5, ctx.root.set_response_timeout, 0.1
                )
                return await self.delegate.execute(ctx, request)

        decorator = retrying(Always(Backoff.fixed(1.0)))
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([503], Late, decorator, timeout=10.0))

        log = RequestLog.of(caught.value)
        assert (1, "deadline") == (log.total_attempts, log.stop_reason)
        assert caught.value.__cause__ is None

    async def test_timeout_of_an_attempt_alone_can_be_retried(self):
        """The attempt's own limit is not the call's."""
        decorator = retrying(0.0, attempt_timeout=3.0)
        response = await response_of(session([silence, 200], decorator))

        assert (200, 3.0) == (response.status, now())
