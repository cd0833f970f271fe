"""Readers of a resumed download, who close, cancel and wait."""

import asyncio
import gc
import weakref

import aiohttp
import pytest
from chains import connected
from download_server import (
    FILE,
    HOLD,
    RESUMING,
    RETRYING,
    Answer,
    DownloadServer,
    broken_at,
)

from aioretry_smithy import RequestLog, client_decorator


async def _until(condition):
    while True:
        if condition():
            return
        await asyncio.sleep(0.01)


async def test_the_caller_may_close_while_a_part_is_asked_for():
    """A reader in another task ends as with aiohttp, and nothing is left open."""
    answers = [Answer(stop=5_000), Answer(wait=asyncio.Event())]
    async with (
        DownloadServer(*answers) as server,
        connected(None, RETRYING, RESUMING) as session,
    ):
        response = await session.get(server.url)
        reading = asyncio.create_task(response.content.readexactly(6_000))
        await server.until(asked=2)
        response.close()
        with pytest.raises(aiohttp.ClientConnectionError, match="closed"):
            await reading
        log = RequestLog.of(response)

        assert not session.connector._acquired
    assert "CancelledError" == log.children[1].response_cause_type
    assert (True, None) == (log.is_complete, log.response_cause)


async def test_a_response_that_is_dropped_frees_its_connection():
    """A pool of one serves the next call then."""
    async with DownloadServer(*broken_at(5_000), Answer(end=True)) as server:
        connector = aiohttp.TCPConnector(limit=1)
        async with connected(None, RESUMING, connector=connector) as session:
            response = await session.get(server.url)
            await response.content.readexactly(5_001)
            del response
            gc.collect()
            async with asyncio.timeout(5.0), session.get(server.url) as response:
                assert FILE == await response.read()


async def test_a_closed_session_is_not_resumed():
    """Its error goes out."""
    async with DownloadServer(Answer(stop=5_000, end=HOLD)) as server:
        session = connected(None, RESUMING)
        response = await session.get(server.url)
        await response.content.readexactly(5_000)
        await session.close()
        with pytest.raises(RuntimeError, match="closed"):
            async with asyncio.timeout(5.0):
                await response.content.read()

    assert 1 == len(server.asked)


async def test_a_session_that_is_closed_before_a_part_fails_it():
    """As any call of it would."""
    async with DownloadServer(Answer(stop=5_000)) as server:
        session = connected(None, RESUMING)
        response = await session.get(server.url)
        await response.content.readexactly(5_000)
        await _until(lambda: response.connection.closed)
        await session.close()
        with pytest.raises(RuntimeError, match="Session is closed"):
            await response.content.read()
        with pytest.raises(RuntimeError, match="Session is closed"):
            await response.content.read()


@pytest.mark.parametrize("kind", [TimeoutError, None])
async def test_a_decorator_may_not_heed_that_the_caller_has_closed(kind):
    """The reader ends as with aiohttp all the same, and is not cancelled."""
    waiting = asyncio.Event()

    @client_decorator
    async def stubborn(delegate, ctx, request):
        if not request.headers.get("Range"):
            return await delegate.execute(ctx, request)
        waiting.set()
        try:
            await asyncio.sleep(5.0)
        except asyncio.CancelledError:
            if kind is not None:
                raise kind from None
        return await delegate.execute(ctx, request)

    async def read(response):
        with pytest.raises(aiohttp.ClientConnectionError, match="closed"):
            await response.content.readexactly(6_000)
        return asyncio.current_task().cancelling()

    answers = [Answer(stop=5_000), Answer(end=True)]
    async with (
        DownloadServer(*answers) as server,
        connected(None, stubborn, RESUMING) as session,
    ):
        response = await session.get(server.url)
        reading = asyncio.create_task(read(response))
        await waiting.wait()
        response.close()

        assert 0 == await reading
        assert not session.connector._acquired


async def test_a_reader_that_is_cancelled_beside_a_closing_caller_is_cancelled():
    """Its own cancellation is not taken for the end of the response."""
    answers = [Answer(stop=5_000), Answer(wait=asyncio.Event())]
    async with DownloadServer(*answers) as server, connected(None, RESUMING) as session:
        response = await session.get(server.url)
        reading = asyncio.create_task(response.content.readexactly(6_000))
        await server.until(asked=2)
        response.close()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_the_connection_of_the_response_is_that_of_the_part():
    """Who asks for it sees the one that is in use."""
    async with (
        DownloadServer(Answer(stop=5_000, end=HOLD)) as server,
        connected(None, RESUMING) as session,
    ):
        async with session.get(server.url) as response:
            connection = response.connection
            peer = connection.transport.get_extra_info("peername")

            assert not connection.closed
            assert "Connection<" in repr(connection)
            assert f"http://{peer[0]}:{peer[1]}" == server.origin
            assert connection.protocol is not None
        assert connection.closed


async def test_nothing_of_a_whole_download_waits_for_the_garbage_collector():
    """Once the caller drops the response, all of it is gone."""
    gc.collect()
    gc.disable()
    try:
        async with (
            DownloadServer(*broken_at(5_000)) as server,
            connected(None, RESUMING) as session,
        ):
            async with session.get(server.url) as response:
                await response.read()
            known = weakref.ref(response)
            del response

            assert known() is None
    finally:
        gc.enable()
