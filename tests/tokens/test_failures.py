"""Fetches of tokens that fail."""

from __future__ import annotations

import asyncio
import gc
import traceback
import weakref

import aiohttp
import pytest
from chains import SAFELY, retrying, session
from fetched_tokens import BASE, Tokens, outcomes, refreshing_session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    RefreshingClient,
    RequestLog,
    ResponseTimeoutError,
    RetrySafety,
    UnprocessedRequestError,
    capture_logs,
    is_unprocessed,
    request_options,
    retry_safety,
)


class TestFailures:
    """A fetch that fails fails all who wait, and no one after."""

    async def test_each_gets_an_exception_of_its_own(self):
        """Whose log is that of its call."""
        failure = aiohttp.ClientPayloadError("no token")
        tokens = Tokens(failure)
        async with refreshing_session(tokens) as opened:
            calls = [opened.get(f"/{n}") for n in range(3)]
            got = await asyncio.gather(*calls, return_exceptions=True)
            assert [200] == await outcomes(opened, 1)

        assert [aiohttp.ClientPayloadError] * 3 == [*map(type, got)]
        assert 3 == len({*map(id, got)})
        logs = [RequestLog.of(each) for each in got]
        assert ["/0", "/1", "/2"] == [log.request_url.path for log in logs]
        for each in got:
            functions = [
                frame.name for frame in traceback.extract_tb(each.__traceback__)
            ]
            assert 1 == functions.count("execute")
            assert "fetch" == functions[-1]

    async def test_nothing_is_left_for_the_collector(self):
        """Neither of a failure nor of a fetch that was given up."""

        class OwnError(Exception):
            pass

        alive = []

        async def fetch():
            await asyncio.sleep(1.0)
            failure = OwnError("no")
            alive.append(weakref.ref(failure))
            try:
                raise failure
            finally:
                del failure

        added = RefreshingClient.new_decorator(fetch), retrying(SAFELY)
        async with session([200] * 9, *added, base_url=BASE) as opened:
            gc.collect()
            assert [OwnError] * 3 == await outcomes(opened, 3)
            with request_options(response_timeout=0.5):
                assert [ResponseTimeoutError] * 2 == await outcomes(opened, 2)
            await asyncio.sleep(1.0)
            assert {None} == {each() for each in alive}
            assert 0 == gc.collect()

    async def test_nothing_was_sent(self):
        """So any method may be sent again."""
        tokens = Tokens(OSError("down"))
        async with refreshing_session(tokens, retrying(SAFELY)) as opened:
            response = await opened.post("/", json={})
            log = RequestLog.of(response)

        assert 200 == response.status
        assert [False, True] == [each.sent for each in log.children]

    async def test_failure_after_a_401_may_have_been_processed(self):
        """The server has seen the request; its 401 stays in the log."""
        tokens = Tokens(None, OSError("down"))
        with capture_logs() as logs:
            async with refreshing_session(tokens, retrying(SAFELY)) as opened:
                await opened.get("/")
                tokens.expire()
                tokens.failures[:] = [OSError("down")]
                with pytest.raises(OSError, match="down") as caught:
                    await opened.post("/")

        assert not is_unprocessed(caught.value)
        assert RetrySafety.MAYBE is retry_safety(caught.value)
        first, second = logs[1].children
        assert (401, "token", 1.0) == (
            first.response_status,
            first.delay_source,
            first.delay,
        )
        assert not second.sent
        assert isinstance(second.response_cause, OSError)

    async def test_failure_outside_retries_is_that_of_the_call(self):
        """Where there is one log, it shows the failure."""
        tokens = Tokens(None)
        with capture_logs() as logs:
            async with refreshing_session(tokens) as opened:
                await opened.get("/")
                tokens.expire()
                tokens.failures[:] = [OSError("down")]
                with pytest.raises(OSError, match="down"):
                    await opened.get("/")

        assert isinstance(logs[1].response_cause, OSError)

    async def test_breaker_around_it_does_not_count_it(self):
        """The server had no part in it."""
        tokens = Tokens(OSError("down"))
        breaker = CircuitBreaker("orders")
        added = CircuitBreakerClient.new_decorator(breaker)
        async with refreshing_session(tokens, added) as opened:
            assert [OSError] == await outcomes(opened, 1)

        assert 0 == breaker.event_count.total

    async def test_cancelled_fetch_cancels_no_call(self):
        """A call that was not cancelled must not look so."""

        async def fetch():
            raise asyncio.CancelledError

        added = RefreshingClient.new_decorator(fetch)
        async with session([], added, base_url=BASE) as opened:
            with pytest.raises(UnprocessedRequestError, match="was cancelled"):
                await opened.get("/")

    async def test_exception_that_cannot_be_copied_has_the_same_name(self):
        """The first one gets the very exception."""

        class OddError(Exception):
            def __new__(cls, *, only):
                return super().__new__(cls)

            def __init__(self, *, only):
                super().__init__(only)

        failure = OddError(only="odd")
        async with refreshing_session(Tokens(failure)) as opened:
            calls = [opened.get("/") for _ in range(2)]
            first, other = await asyncio.gather(*calls, return_exceptions=True)

        assert failure is first
        assert "OddError" == type(other).__name__
        assert "odd" == str(other)

    @pytest.mark.parametrize(
        ("given", "what"),
        [
            ("", "an empty text"),
            ("S3CRET\n", "a text"),
            ("S3CRET\r\nX-Admin: 1", "a text"),
            (None, "NoneType"),
            (b"S3CRET", "bytes"),
        ],
    )
    async def test_no_token_is_the_caller_s_mistake(self, given, what):
        """One attempt, nothing sent, and the message does not show a secret."""

        async def fetch():
            return given

        added = RefreshingClient.new_decorator(fetch), retrying(SAFELY)
        with capture_logs() as logs:
            async with session([], *added, base_url=BASE) as opened:
                with pytest.raises(TypeError) as caught:
                    await opened.get("/")

        assert f"fetch gave {what} (expected: a text that" in str(caught.value)
        assert "S3CRET" not in f"{caught.value}{logs[0].render()}"
        assert 1 == logs[0].total_attempts

    async def test_function_that_is_not_async_is_the_caller_s_mistake(self):
        """It says so; the token is not shown."""
        added = RefreshingClient.new_decorator(lambda: "S3CRET"), retrying(SAFELY)
        async with session([], *added, base_url=BASE) as opened:
            with pytest.raises(
                TypeError, match="expected: an async function"
            ) as caught:
                await opened.get("/")

        assert "S3CRET" not in str(caught.value)
