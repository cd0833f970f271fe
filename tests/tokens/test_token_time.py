"""When tokens are fetched, and how long that may take."""

from __future__ import annotations

import asyncio

import pytest
from chains import SAFELY, URL, now, retrying, session
from fetched_tokens import BASE, Tokens, outcomes, refreshing_session, sent

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    RefreshingClient,
    ResponseTimeoutError,
    RetryConfig,
    RetryStrategy,
    capture_logs,
    client_decorator,
    is_unprocessed,
    request_options,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport


class TestTime:
    """Each waits within its own deadline; the fetch has none of these."""

    async def test_deadline_of_one_does_not_end_the_fetch(self):
        """The others get the token."""
        tokens = Tokens(takes=2.0)
        async with refreshing_session(tokens) as opened:
            patient = asyncio.create_task(opened.get("/"))
            with (
                request_options(response_timeout=1.0),
                pytest.raises(ResponseTimeoutError) as caught,
            ):
                await opened.get("/")
            assert 200 == (await patient).status

        assert "the call had 1.000 s, and waited for a token" == str(caught.value)
        assert is_unprocessed(caught.value)
        assert 1 == tokens.asked

    async def test_deadline_of_the_first_is_not_that_of_the_fetch(self):
        """Though the fetch began for it."""
        tokens = Tokens(takes=2.0)
        async with refreshing_session(tokens) as opened:
            with request_options(response_timeout=1.0):
                first = asyncio.create_task(opened.get("/"))
            await asyncio.sleep(0.5)
            assert [200] == await outcomes(opened, 1)
            with pytest.raises(ResponseTimeoutError):
                await first

        assert 1 == tokens.asked

    async def test_attempt_timeout_cuts_the_wait(self):
        """The attempt failed, and the next one may have more luck."""
        tokens = Tokens(takes=2.0)
        row = retrying(RetryStrategy.never(), attempt_timeout=1.0)
        async with refreshing_session(tokens, row) as opened:
            with pytest.raises(AttemptTimeoutError) as caught:
                await opened.get("/")

        assert "attempt 1 had 1.000 s, and waited for a token" == str(caught.value)

    async def test_deadline_that_is_lifted_meanwhile_has_passed(self):
        """The wait began with it, as a request would have."""

        @client_decorator
        async def lift(delegate, ctx, request):
            asyncio.get_running_loop().call_later(0.5, ctx.clear_response_timeout)
            return await delegate.execute(ctx, request)

        async with refreshing_session(Tokens(takes=2.0), lift, timeout=1.0) as opened:
            with pytest.raises(TimeoutError) as caught:
                await opened.get("/")

        assert type(caught.value) is TimeoutError

    async def test_timeout_of_the_fetch_is_no_limit_of_the_call(self):
        """It is raised as it is."""
        async with refreshing_session(Tokens(TimeoutError("slow"))) as opened:
            with pytest.raises(TimeoutError, match="slow") as caught:
                await opened.get("/")

        assert type(caught.value) is TimeoutError

    async def test_cancelled_waiter_leaves_the_fetch_to_the_others(self):
        """Though it was the first."""
        tokens = Tokens()
        async with refreshing_session(tokens) as opened:
            first = asyncio.create_task(opened.get("/"))
            others = [asyncio.create_task(opened.get("/")) for _ in range(3)]
            await asyncio.sleep(0.5)
            first.cancel()
            got = [(await each).status for each in others]

        assert first.cancelled()
        assert [200] * 3 == got
        assert 1 == tokens.asked

    async def test_fetch_ends_with_the_last_who_waits(self):
        """One that hangs is given up, and the next call begins another."""
        tokens = Tokens(takes=1e6)
        async with refreshing_session(tokens) as opened:
            with request_options(response_timeout=1.0):
                assert [ResponseTimeoutError] * 2 == await outcomes(opened, 2)
            tokens.takes = 0.5
            assert [200] == await outcomes(opened, 1)
            assert 1 == len(asyncio.all_tasks())

        assert 2 == tokens.asked

    async def test_fetch_that_goes_on_when_cancelled_is_forgotten(self):
        """Its token is none that anybody waits for; its failure neither."""
        ends = [ValueError("late"), None, None]

        async def fetch():
            end = ends.pop(0)
            try:
                await asyncio.sleep(1.0)
            except asyncio.CancelledError:
                await asyncio.sleep(1.0)
                if end is not None:
                    raise end from None
                return "late"
            return "new"

        transport = ScriptedTransport([200])
        row = RefreshingClient.new_decorator(fetch)
        async with session(transport, row, base_url=BASE) as opened:
            for _ in range(2):
                with request_options(response_timeout=0.5):
                    assert [ResponseTimeoutError] == await outcomes(opened, 1)
            assert [200] == await outcomes(opened, 1)
            await asyncio.sleep(3.0)

        assert ["Bearer new"] == sent(transport)

    async def test_fetch_has_nothing_of_the_first_caller(self):
        """Neither its options nor its captures nor its place in an operation."""
        api = ScriptedTransport([200])
        auth = ScriptedTransport([503, 503, 200, {}])
        opened_for_tokens = session(auth, retrying(SAFELY))

        async def fetch():
            async with opened_for_tokens.post(URL, headers={"Idempotency-Key": "1"}):
                return "t"

        row = RefreshingClient.new_decorator(fetch)
        opened = session(api, row, base_url=BASE)

        @rpc(response_timeout=50.0)
        async def operation():
            with request_options(retry=RetryConfig.no_retry()), capture_logs() as logs:
                response = await opened.get("/")
            return response.status, logs

        async with opened_for_tokens, opened:
            status, logs = await operation()

        assert 200 == status
        assert ["/"] == [log.request_url.path for log in logs]
        assert 3 == len(auth.requests)


async def test_wait_is_shorter_than_the_backoff_of_a_retry():
    """The second request goes out as soon as the token is there."""
    tokens = Tokens(takes=0.25)
    async with refreshing_session(
        tokens, retrying(RetryStrategy.failsafe(Backoff.fixed(9.0)))
    ) as opened:
        await opened.get("/")
        tokens.expire()
        before = now()
        await opened.get("/")

    assert 0.25 == now() - before
