"""A download that nobody keeps frees all that it holds, without the collector."""

import asyncio
import gc
from contextlib import suppress

import aiohttp
import pytest
from chains import connected, pass_on
from download_server import (
    FILE,
    HOLD,
    RESUMING,
    RETRYING,
    Answer,
    DownloadServer,
    broken_at,
)
from until import until

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    EndpointGroup,
    RequestLog,
    capture_logs,
    client_decorator,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

CUT = FaultInjectingClient.new_decorator(InjectedFault.cut_body(after=9_000))
CHAINS = {
    "alone": [RESUMING],
    "around retries": [RETRYING, RESUMING],
    "inside a foreign decorator": [RESUMING, pass_on],
    "around a cut": [CUT, RESUMING],
    "inside a cut": [RESUMING, CUT],
}
FIRST_HOLDS = Answer(stop=10_000, end=HOLD)
ENDS = {
    "under way": (FIRST_HOLDS, 0),
    "begun": (FIRST_HOLDS, 5_000),
    "broken": (Answer(stop=10_000), 0),
    "broken and begun": (Answer(stop=10_000), 5_000),
    "all here": (Answer(end=True), 5_000),
    "in its second part": (Answer(stop=4_000), 5_000),
}


@pytest.fixture(autouse=True)
def _nothing_is_freed_by_the_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def limiting(limit):
    return ConcurrencyLimitingClient.new_decorator(limit)


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
async def test_a_dropped_response_frees_all_at_once(chain, end):
    """The connection, places inside and outside, the endpoint; its log ends."""
    first, read = ENDS[end]
    inside, outside = ConcurrencyLimit.fixed(5), ConcurrencyLimit.fixed(5)
    async with DownloadServer(first, FIRST_HOLDS) as server:
        group = EndpointGroup.of(server.origin)
        chain = [limiting(inside), *chain, limiting(outside)]
        async with connected(group, *chain) as session:
            with capture_logs() as logs:
                response = await session.get("/file")
                await response.content.readexactly(read)
            await asyncio.sleep(0.05)
            del response

            assert set() == session.connector._acquired
        (state,) = group.states.values()

    assert (0, 0, 0) == (inside.in_flight, outside.in_flight, state.in_flight)
    (log,) = logs
    assert [True] * (1 + len(log.children)) == [
        each.is_complete for each in (log, *log.children)
    ]


@pytest.mark.parametrize("chain", [[RESUMING], [RETRYING, RESUMING]])
async def test_the_stream_alone_can_be_read(chain):
    """Who keeps that keeps the download, across breaks; at its end nothing is held."""
    limit = ConcurrencyLimit.fixed(1)
    async with (
        DownloadServer(*broken_at(5_000, 9_000)) as server,
        connected(None, *chain, limiting(limit)) as session,
    ):
        with capture_logs() as logs:
            content = (await session.get(server.url)).content
        await asyncio.sleep(0.05)
        begin = await content.readexactly(7_000)
        held = limit.in_flight
        rest = await content.read()

        assert set() == session.connector._acquired

    assert FILE == begin + rest
    assert (1, 0) == (held, limit.in_flight)
    assert (True, 200, len(FILE)) == (
        logs[0].is_complete,
        logs[0].response_status,
        logs[0].response_length,
    )


async def test_a_stream_alone_that_comes_in_one_part_can_be_read():
    """What is here when its response is gone stays."""
    limit = ConcurrencyLimit.fixed(1)
    async with (
        DownloadServer(Answer(end=True, pause=0.05)) as server,
        connected(None, RESUMING, limiting(limit)) as session,
    ):
        content = (await session.get(server.url)).content
        await until(lambda: limit.in_flight == 0)

        assert FILE == await content.read()
        assert set() == session.connector._acquired


async def test_a_stream_alone_that_is_dropped_frees_all_at_once():
    """As its response does."""
    limit = ConcurrencyLimit.fixed(1)
    async with (
        DownloadServer(Answer(stop=4_000), FIRST_HOLDS) as server,
        connected(None, limiting(limit), RESUMING) as session,
    ):
        content = (await session.get(server.url)).content
        await content.readexactly(5_000)
        del content

        assert set() == session.connector._acquired
    assert 0 == limit.in_flight


@pytest.mark.parametrize("has_headers", [True, False])
async def test_a_reader_that_is_cancelled_and_dropped_frees_all(has_headers):
    """While it waits for a part, or for its headers."""
    limit = ConcurrencyLimit.fixed(1)
    second = FIRST_HOLDS if has_headers else Answer(wait=asyncio.Event())
    async with (
        DownloadServer(Answer(stop=4_000), second) as server,
        connected(None, limiting(limit), RESUMING) as session,
    ):

        async def read():
            return await (await session.get(server.url)).read()

        task = asyncio.create_task(read())
        await server.until(asked=2)
        await asyncio.sleep(0.05)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        del task

        assert set() == session.connector._acquired
    assert 0 == limit.in_flight


async def test_a_place_outside_lasts_while_a_cut_body_is_here():
    """All of it has arrived, but parts may follow the cut."""
    limit = ConcurrencyLimit.fixed(1)
    chain = CUT, RESUMING, limiting(limit)
    async with (
        DownloadServer(Answer(end=True, pause=0.05)) as server,
        connected(None, *chain) as session,
        session.get(server.url) as response,
    ):
        await asyncio.sleep(0.15)
        await response.content.readexactly(10)
        held = limit.in_flight
        body = await response.content.read()

    assert len(FILE) - 10 == len(body)
    assert (1, 0) == (held, limit.in_flight)


async def test_a_cut_that_another_stream_has_replaced_is_not_felt():
    """The log ends as the body has ended."""

    @client_decorator
    async def replace(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        response.content = aiohttp.EMPTY_PAYLOAD
        return response

    async with (
        DownloadServer(Answer(end=True, pause=0.05)) as server,
        connected(None, CUT, replace) as session,
    ):
        response = await session.get(server.url)
        log = RequestLog.of(response)
        await until(lambda: log.is_complete)

        assert (True, None) == (log.is_complete, log.response_cause)
        response.release()
