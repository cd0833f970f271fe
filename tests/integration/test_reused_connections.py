"""A reused connection is told from a fresh one, wherever it was used before."""

import asyncio
import contextlib
import socket

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver
from aiohttp.test_utils import TestClient
from chains import retrying
from parity import warm
from pool_server import CLOSE, RESET, PoolServer

from aioretry_smithy import (
    RequestLog,
    RetryingClient,
    RetryStrategy,
    capture_logs,
    decorate,
)

NEVER = retrying(RetryStrategy.never())


async def get(session, path="/orders"):
    """Return the status of a call, or the class of its failure."""
    try:
        async with session.get(path) as response:
            await response.read()
            return response.status
    except aiohttp.ClientError as error:
        return type(error)


@contextlib.asynccontextmanager
async def shared_connector(server):
    """Make a session that retries nothing and does not own its connector."""
    async with (
        aiohttp.TCPConnector() as connector,
        aiohttp.ClientSession(
            server.url, connector=connector, connector_owner=False
        ) as session,
    ):
        yield decorate(session, NEVER)


@pytest.fixture
async def server():
    async with PoolServer() as running:
        yield running


async def test_connection_that_is_being_made_is_a_fresh_one(server):
    """The session was decorated meanwhile."""
    resolving = asyncio.Event()

    class SlowResolver(AbstractResolver):
        async def resolve(self, host, port=0, family=socket.AF_INET):
            await resolving.wait()
            return [
                {
                    "hostname": host,
                    "host": "127.0.0.1",
                    "port": port,
                    "family": family,
                    "proto": 0,
                    "flags": 0,
                }
            ]

        async def close(self):
            """Do nothing."""

    connector = aiohttp.TCPConnector(resolver=SlowResolver())
    async with aiohttp.ClientSession(connector=connector) as session:
        call = asyncio.create_task(get(session, server.url.with_host("example.com")))
        await asyncio.sleep(0.01)
        decorate(session, NEVER)
        resolving.set()

        assert 200 == await call


async def test_closed_session_is_decorated_all_the_same(server):
    """It has no connection, and says that it is closed when it is used."""
    session = aiohttp.ClientSession(server.url)
    await session.close()
    decorate(session, NEVER)

    with pytest.raises(RuntimeError, match="Session is closed"):
        await session.get("/orders")


async def test_call_without_attempts_is_sent_again(server):
    """Its requests share the log of the call."""

    class PassedBy(RetryingClient):
        async def execute(self, ctx, request):
            return await self.delegate.execute(ctx, request)

    async with aiohttp.ClientSession(server.url) as session:
        decorate(session, PassedBy.new_decorator(RetryStrategy.never()))
        await get(session)
        server.leave_stale()
        async with session.get("/orders") as response:
            await response.read()
        log = RequestLog.of(response)

    assert (200, 1, ()) == (response.status, log.total_attempts, log.children)

    assert 3 == len(server.requests)


async def test_first_break_of_a_call_counts_as_reused_where_nobody_can_know(server):
    """Sessions without a chain use the connector, too."""
    server.scripts["/orders"] = [CLOSE, CLOSE]
    async with shared_connector(server) as session:
        with capture_logs() as logs:
            failure = await get(session)

    assert aiohttp.ServerDisconnectedError is failure

    assert ["stale_connection", None] == [
        attempt.delay_source for attempt in logs[0].children
    ]


async def test_shared_connection_that_this_session_used_is_known(server):
    """One after the other breaks, and the call goes through."""
    async with shared_connector(server) as session:
        await warm(server, session, 3)
        server.leave_stale()

        assert 200 == await get(session)


async def test_session_that_does_not_resend_goes_on_not_to(aiohttp_server):
    """As the test client of aiohttp, which switches the resend off."""
    async with PoolServer() as server:
        running = await aiohttp_server(aiohttp.web.Application())
        async with TestClient(running) as client:
            session = decorate(client.session, NEVER)
            assert 200 == await get(session, server.url / "orders")

            server.leave_stale()

            assert aiohttp.ClientOSError is await get(session, server.url / "orders")


async def test_proxy_that_breaks_off_has_not_got_the_request(server):
    """The tunnel is fresh, and the failure one of the chain's."""
    server.scripts["example.com:443"] = [CLOSE, CLOSE]
    async with aiohttp.ClientSession(proxy=server.url) as session:
        decorate(session, NEVER)
        failure = await get(session, "https://example.com/orders")

    assert issubclass(failure, aiohttp.ClientError)

    assert 1 == len(server.requests)


async def test_broken_call_of_a_middleware_counts_as_reused_once(server):
    """Nobody knows about the connections of another session."""
    # A bare session sends a request twice by itself.
    server.scripts["/token"] = [RESET, RESET]

    async with aiohttp.ClientSession(server.url) as other:

        async def sign(request, handler):
            async with other.get("/token") as response:
                await response.read()
            return await handler(request)

        async with aiohttp.ClientSession(server.url, middlewares=[sign]) as session:
            decorate(session, NEVER)

            assert 200 == await get(session)

            server.scripts["/token"] = [RESET, RESET, RESET, RESET]

            assert aiohttp.ClientOSError is await get(session)
