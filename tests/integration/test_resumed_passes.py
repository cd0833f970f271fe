"""A decorator around the resuming client that passes it twice, and takes one answer."""

from __future__ import annotations

import pytest
from chains import NOW, connected, retrying
from download_server import FILE, Answer, DownloadServer
from two_sends import first_answer, first_of_two, last_answer

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RequestLog,
    ResumingClient,
    RetryStrategy,
)

RESUMING = ResumingClient.new_decorator()
RETRYING = retrying(RetryStrategy.failsafe(NOW))


@pytest.mark.parametrize("twice", [first_of_two, first_answer, last_answer])
@pytest.mark.parametrize("inside", [[], [RETRYING]], ids=["alone", "around retries"])
async def test_giving_up_one_download_leaves_the_other_whole(twice, inside):
    """It goes on where it breaks, and the log is that of what the caller reads."""
    limit = ConcurrencyLimit.fixed(10)
    limiting = ConcurrencyLimitingClient.new_decorator(limit)
    async with (
        DownloadServer(lambda asked: Answer(stop=asked.start + 7_000)) as server,
        connected(None, *inside, RESUMING, twice, limiting) as session,
    ):
        async with session.get(server.url) as response:
            body = await response.read()
        log = RequestLog.of(response)

        assert FILE == body
        assert set() == session.connector._acquired
    assert 0 == limit.in_flight
    assert (200, None, len(FILE)) == (
        log.response_status,
        log.response_cause,
        log.response_length,
    )
    assert all(each.is_complete for each in (log, *log.children))
