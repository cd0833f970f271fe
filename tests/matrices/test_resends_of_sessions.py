"""Sessions of all kinds lose no call to a connection that was used before."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from chains import connected, retrying
from fault_server import End, Fault
from parity import (
    BARE,
    CHAINS,
    NEVER,
    PATIENCE,
    each,
    in_use,
    never,
    stale_pool,
    status_of,
    warm,
)
from pool_server import PoolServer

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    HedgingClient,
    LoggingClient,
    RequestLog,
    RetryStrategy,
    decorate,
)

BROKEN = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
NOTHING = retrying(RetryStrategy.never())


# Whoever made the session


@asynccontextmanager
async def warm_session(**arguments):
    """Serve a bare session with a connection in its pool."""
    async with (
        asyncio.timeout(PATIENCE),
        PoolServer() as server,
        aiohttp.ClientSession(server.url, **arguments) as session,
    ):
        await warm(server, session, 1)
        server.requests.clear()
        yield server, session

        assert 0 == in_use(session)


async def test_pool_may_be_older_than_the_decorators():
    """What a bare session has used before is used."""
    async with warm_session() as (server, session):
        decorate(session, NOTHING)
        server.leave_stale()
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 2 == len(server.to("/x"))


async def test_connection_may_be_in_use_when_the_decorators_come():
    """It goes to the pool of a session that is ours by then."""
    async with warm_session() as (server, session):
        with server.holding():
            call = asyncio.create_task(status_of(session.get("/before")))
            await server.arrived(1)
            decorate(session, NOTHING)
        before = await call
        server.leave_stale()
        status = await status_of(session.get("/x"))

    assert (200, 200) == (before, status)
    assert 2 == len(server.to("/x"))


# Chains without retries


@pytest.mark.parametrize(
    "decorator",
    [
        LoggingClient.new_decorator(),
        CircuitBreakerClient.new_decorator(CircuitBreaker()),
    ],
    ids=["logging", "breaker"],
)
async def test_chain_without_retries_leaves_it_to_aiohttp(decorator):
    """Which sends again once, and tells no log."""
    make = lambda url: connected(url, decorator)  # noqa: E731
    async with stale_pool(make) as (server, session), session.get("/x") as got:
        log = RequestLog.of(got)

    assert 200 == got.status
    assert 2 == len(server.to("/x"))
    assert (1, ()) == (log.total_attempts, log.children)


async def test_hedge_and_first_request_are_each_sent_again():
    """Both have met a stale connection; the first answer wins, and none is kept."""
    chain = (HedgingClient.new_decorator(0.05), NOTHING)
    broken = asyncio.Event()
    how = Fault(send=(broken,), end=End.RESET)
    async with stale_pool(lambda url: connected(url, *chain), 2, how) as (
        server,
        session,
    ):
        call = asyncio.create_task(status_of(session.get("/x")))
        await server.arrived(2)
        broken.set()
        status = await call

    assert 200 == status
    assert 3 <= len(server.to("/x")) <= 4


# What breaks is no connection


async def test_exception_of_a_mock_counts_as_ever(aioresponses_mock):
    """Nothing was sent, so nothing is sent again."""
    aioresponses_mock.get("http://h/", exception=aiohttp.ServerDisconnectedError())
    aioresponses_mock.get("http://h/", status=200)
    async with connected("http://h", NOTHING) as session:
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await session.get("/")


async def test_exception_of_a_middleware_counts_as_ever():
    """It looks like a broken connection, and is none."""
    sent = []

    async def fail(request, handler):
        sent.append(request.url)
        raise aiohttp.ServerDisconnectedError

    async with stale_pool(never, 0, middlewares=(fail,)) as (_, session):
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await session.get("/x")

    assert 1 == len(sent)


@each(BARE | NEVER)
async def test_post_of_a_middleware_is_made_no_oftener_than_by_a_bare_session(make):
    """What is sent again is the request around, and the middleware with it."""

    async def with_token(request, handler):
        async with session.post("/token", data=b"key", middlewares=()) as response:
            await response.read()
        return await handler(request)

    async with stale_pool(make, 6) as (server, session):
        with pytest.raises(BROKEN):
            await session.get("/x", middlewares=(with_token,))

    assert 2 == len(server.to("/token"))


# Kinds of connections


@each(BARE | CHAINS)
async def test_connection_to_a_proxy_is_stale_as_any(make):
    """It is reused for all hosts behind the proxy."""
    async with PoolServer() as proxy, make(None) as session:
        first = await status_of(session.get("http://a.test/x", proxy=proxy.url))
        proxy.leave_stale()
        second = await status_of(session.get("http://a.test/x", proxy=proxy.url))

    assert (200, 200) == (first, second)
    assert 3 == len(proxy.to("http://a.test/x"))
