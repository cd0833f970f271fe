"""Parts that cannot be had for now: they bring nothing, and others follow."""

import asyncio

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import retrying
from download_server import (
    FILE,
    HOLD,
    RESUMING,
    Answer,
    DownloadServer,
    download,
    failure,
)

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    ResumingClient,
    RetryStrategy,
    client_decorator,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("waits")]

BROKEN = Answer(stop=5_000)
WHOLE = Answer(end=True)


def failing(*failures):
    """Make a decorator that raises them, one a part; then all goes on."""
    left = [*failures]

    @client_decorator
    async def fail_later(delegate, ctx, request):
        if left and request.headers.get("Range"):
            raise left.pop(0)
        return await delegate.execute(ctx, request)

    return fail_later


async def test_progress_sets_the_count_back():
    """Failures between parts that bring something end nothing."""
    bad = Answer(status=503)
    answers = [BROKEN, bad, bad, Answer(stop=9_000), bad, bad, WHOLE]
    async with DownloadServer(*answers) as server:
        body, _ = await download(server.url, RESUMING)

    assert FILE == body


async def test_as_many_exceptions_in_a_row_end_it():
    """The last one goes out as it is; kinds are not told apart."""
    errors = [OSError(), TimeoutError(), aiohttp.ServerDisconnectedError()]
    async with DownloadServer(BROKEN, WHOLE) as server:
        got, error, log = await failure(server.url, failing(*errors), RESUMING)

    assert FILE[:5_000] == got
    assert "backoff_exhausted" == log.stop_reason
    assert "ServerDisconnectedError" == log.response_cause_type
    assert isinstance(error, aiohttp.ServerDisconnectedError)


@pytest.mark.parametrize("chain", [[RESUMING], [retrying(0.0), RESUMING]])
async def test_a_bad_answer_holds_nothing_while_the_next_part_is_asked_for(chain):
    """Neither the one connection of the pool, nor a place."""
    limit = ConcurrencyLimit.fixed(1)
    limiting = ConcurrencyLimitingClient.new_decorator(limit)
    stalling = Answer(status=503, stop=10, end=HOLD)
    async with DownloadServer(BROKEN, stalling, stalling, WHOLE) as server:
        async with asyncio.timeout(5.0):
            body, _ = await download(
                server.url,
                limiting,
                *chain,
                connector=aiohttp.TCPConnector(limit=1),
            )

    assert FILE == body
    assert 0 == limit.in_flight


class TestRetryAfter:
    """What a server asks for is waited for."""

    async def test_too_long_a_wait_ends_the_download(self):
        """Longer than the usual limit, or than the deadline leaves."""
        for seconds, total in (("3600", 60.0), ("20", 10.0)):
            busy = Answer(status=429, changes={"Retry-After": seconds})
            async with DownloadServer(BROKEN, busy) as server:
                _, error, log = await failure(
                    server.url, RESUMING, timeout=ClientTimeout(total=total)
                )

            assert str(error).endswith("the server answers with 429")
            assert "retry_after_too_long" == log.stop_reason

    async def test_settings_may_ignore_it(self, waits):
        """Those of the retrying client further in."""
        once = retrying(RetryStrategy.never(), use_retry_after=False)
        busy = Answer(status=503, changes={"Retry-After": "3600"})
        async with DownloadServer(BROKEN, busy, WHOLE) as server:
            body, _ = await download(server.url, once, RESUMING)

        assert FILE == body
        assert waits[0] < 1.0

    async def test_an_exception_may_ask_for_it_too(self, waits):
        """By Smithy's attribute."""
        error = aiohttp.ServerDisconnectedError()
        error.retry_after = 9.0
        async with DownloadServer(BROKEN, WHOLE) as server:
            await download(server.url, failing(error), RESUMING)

        assert 9.0 <= waits[0] < 9.5

    async def test_an_answer_that_was_raised_asks_for_it_too(self, waits):
        """By its headers."""

        async def raise_for_status(request, handler):
            response = await handler(request)
            response.raise_for_status()
            return response

        busy = Answer(status=503, changes={"Retry-After": "7"})
        async with DownloadServer(BROKEN, busy, WHOLE) as server:
            body, _ = await download(
                server.url, RESUMING, middlewares=[raise_for_status]
            )

        assert FILE == body
        assert 7.0 <= waits[0] < 7.5


async def test_a_wait_beyond_the_deadline_is_not_begun_after_an_answer(waits):
    """The answer's error goes out at once."""
    patient = ResumingClient.new_decorator(max_resumes_without_progress=100)
    async with DownloadServer(BROKEN, Answer(status=503)) as server:
        _, error, log = await failure(
            server.url, patient, timeout=ClientTimeout(total=5.0)
        )

    assert isinstance(error, aiohttp.ClientPayloadError)
    assert "deadline" == log.stop_reason
    # Twice as long would have been too long.
    assert 2.0 < max(waits) < 5.0
