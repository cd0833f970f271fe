"""A decorator around the resuming client that passes it twice, and takes one answer."""

from __future__ import annotations

import asyncio

import pytest
from chains import NOW, connected, retrying
from download_server import FILE, Answer, DownloadServer

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RequestLog,
    ResumingClient,
    RetryStrategy,
    client_decorator,
)

RESUMING = ResumingClient.new_decorator()
RETRYING = retrying(RetryStrategy.failsafe(NOW))


@client_decorator
async def first_of_two(delegate, ctx, request):
    tasks = [asyncio.create_task(delegate.execute(ctx, request)) for _ in "ab"]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    quicker = next(each for each in tasks if each in done)
    tasks.remove(quicker)
    if not tasks[0].cancel():
        (await tasks[0]).close()
    await asyncio.wait(tasks)
    return quicker.result()


@client_decorator
async def first_answer(delegate, ctx, request):
    response = await delegate.execute(ctx, request)
    (await delegate.execute(ctx, request)).close()
    return response


@client_decorator
async def last_answer(delegate, ctx, request):
    response = await delegate.execute(ctx, request)
    try:
        return await delegate.execute(ctx, request)
    finally:
        response.close()


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
