"""What the log of a call says of its tokens."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from chains import SAFELY, after, log_of, pass_on, refused, retrying, session
from fetched_tokens import BASE, Tokens, refreshing_session, sent

from aioretry_smithy import (
    HedgingClient,
    LoggingClient,
    RequestLog,
    RetryStrategy,
    capture_logs,
    client_decorator,
    is_unprocessed,
)
from aioretry_smithy.testing import ScriptedTransport

CHAINS = pytest.mark.parametrize("between", [(), (pass_on,)], ids=["own", "foreign"])


class TestLog:
    """Inside retries each request has a log; no retry is counted."""

    async def log(self, *outside, inside=(), **settings):
        tokens = Tokens(takes=0.5)
        async with refreshing_session(tokens, *outside, inside=inside) as opened:
            await opened.get("/")
            tokens.expire()
            async with opened.get("/", **settings) as response:
                return RequestLog.of(response)

    @CHAINS
    async def test_each_request_is_shown(self, between):
        """The first one with its 401 and the wait for the token."""
        log = await self.log(*between, retrying(SAFELY), inside=between)

        first, second = log.children
        assert (401, 0.5, "token") == (
            first.response_status,
            first.delay,
            first.delay_source,
        )
        assert (200, None) == (second.response_status, second.delay)
        assert (2, 200) == (log.total_attempts, log.response_status)
        assert "Bearer token-3" == second.request_headers["Authorization"]
        assert "token-" not in log.render() + str(log.to_dict())
        assert (
            "401 Unauthorized   0.000 s   then waited 0.500 s (token)" in log.render()
        )

    async def test_no_retry_is_used_up(self):
        """Two attempts may each have a 401 of their own."""
        tokens = Tokens(takes=0.5)
        seen = []

        @client_decorator
        async def numbers(delegate, ctx, request):
            seen.append(ctx.attempt)
            return await delegate.execute(ctx, request)

        answers = [200, 401, 503, 401, 200]
        added = retrying(SAFELY, max_total_attempts=2)
        async with refreshing_session(
            tokens, numbers, added, inside=(numbers,), answers=answers
        ) as opened:
            await opened.get("/")
            seen.clear()
            response = await opened.get("/")
            log = RequestLog.of(response)

        assert 200 == response.status
        assert [1, 1, 1, 2, 2, 2] == seen
        assert 4 == log.total_attempts
        counts = [
            each.request_headers.get("armeria-retry-count") for each in log.children
        ]
        assert [None, None, "1", "1"] == counts

    async def test_outside_retries_the_call_goes_through_them_twice(self):
        """All attempts are children of the one call."""
        tokens = Tokens(takes=0.5)
        answers = [200, 503, 401, 503, 200]
        transport = ScriptedTransport(answers)
        added = (retrying(SAFELY), tokens.decorator())
        async with session(transport, *added, base_url=BASE) as opened:
            await opened.get("/")
            response = await opened.get("/")
            log = RequestLog.of(response)

        assert [503, 401, 503, 200] == [each.response_status for each in log.children]
        assert 200 == log.response_status
        tokens = sent(transport)
        assert ["Bearer token-1"] * 3 + ["Bearer token-2"] * 2 == tokens

    async def test_without_retries_there_is_one_log(self):
        """It shows the last answer."""
        log = await self.log()

        assert () == log.children
        assert (1, 200) == (log.total_attempts, log.response_status)

    async def test_hedges_refresh_too(self):
        """Each request has its log, one of them is the hedge."""
        tokens = Tokens(takes=0.1)
        answers = [
            200,
            after(1.0, 401),
            after(1.0, 401),
            after(0.2, 200),
            after(9, 200),
        ]
        added = (HedgingClient.new_decorator(0.5), retrying(SAFELY))
        async with refreshing_session(tokens, *added, answers=answers) as opened:
            await opened.get("/")
            response = await opened.get("/")
            log = RequestLog.of(response)

        assert 200 == response.status
        assert [401, 200] == [
            each.response_status for each in log.children if not each.is_hedge
        ]

    async def test_second_failure_may_have_been_processed(self):
        """The server has answered the first request."""
        answers = [200, 401, refused()]
        added = retrying(RetryStrategy.never())
        async with refreshing_session(Tokens(), added, answers=answers) as opened:
            await opened.get("/")
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await opened.post("/")

        assert not is_unprocessed(caught.value)

    async def test_cancelled_while_it_waits_for_the_second_token(self):
        """The 401 is the last that is known."""
        tokens = Tokens()
        with capture_logs() as logs:
            async with refreshing_session(tokens, retrying(SAFELY)) as opened:
                await opened.get("/")
                tokens.expire()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await opened.get("/")

        (only,) = logs[1].children
        assert 401 == only.response_status
        assert "cancelled" == logs[1].stop_reason

    @pytest.mark.parametrize("is_known", [False, True], ids=["first", "second"])
    @pytest.mark.parametrize(
        "outside",
        [(), (pass_on,), (retrying(SAFELY),), (HedgingClient.new_decorator(60.0),)],
        ids=["alone", "foreign", "retries", "hedges"],
    )
    async def test_cancelled_while_it_waits_ends_its_log(self, outside, is_known):
        """Whoever waits for that hears of it, as at each other wait."""
        tokens = Tokens(takes=5.0)
        with capture_logs() as logs:
            async with refreshing_session(tokens, *outside) as opened:
                if is_known:
                    await opened.get("/")
                    tokens.expire()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await opened.get("/")
        log = logs[-1]
        async with asyncio.timeout(1.0):
            for each in (log, *log.children):
                assert each is await each.when_complete()

        assert all(each.is_complete for each in (log, *log.children))
        if not is_known:
            assert "CancelledError" == log.response_cause_type
            assert (0.5, False) == (log.duration, log.sent)

    async def test_cancelled_alone_while_it_waits_for_the_second_token(self):
        """Without attempts the call has the cancellation, as one that retries has."""
        tokens = Tokens()
        with capture_logs() as logs:
            async with refreshing_session(tokens) as opened:
                await opened.get("/")
                tokens.expire()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await opened.get("/")

        assert "CancelledError" == logs[1].response_cause_type
        assert (0.5, 0.5) == (logs[1].duration, logs[1].total_duration)

    async def test_custom_header_is_hidden(self):
        """It is a secret whatever it is called."""
        tokens = Tokens()
        added = (tokens.decorator(header="X-Shop", scheme=None), retrying(SAFELY))
        log = await log_of(session([200], *added, base_url=BASE), "/")

        assert "token-1" == log.children[0].request_headers["X-Shop"]
        assert "token-1" not in str(log.to_dict())

    async def test_lines_are_written_once(self, caplog):
        """A logging client around it sees one request."""
        caplog.set_level("DEBUG")
        log = await self.log(LoggingClient.new_decorator())

        assert 200 == log.response_status
        assert 4 == len(caplog.records)
