"""What is sent again has the time that is left, and ends when the call does."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest
from chains import connected
from fault_server import End, Fault
from parity import CHAINS, each, in_use, retrying, stale_pool, standard, status_of
from pool_server import BREAKS

from aioretry_smithy import (
    AttemptTimeoutError,
    RequestLog,
    ResponseTimeoutError,
    RetryStrategy,
    client_decorator,
)


@pytest.mark.parametrize(
    ("settings", "options", "error"),
    [
        ({}, {"timeout": aiohttp.ClientTimeout(total=0.2)}, ResponseTimeoutError),
        ({"attempt_timeout": 0.2}, {}, AttemptTimeoutError),
    ],
    ids=["deadline", "attempt"],
)
async def test_nothing_is_sent_again_when_the_time_is_up(settings, options, error):
    """The break is noticed when the call, or the attempt, has no time left."""
    chain = retrying(RetryStrategy.never(), **settings)
    stalled = Fault(end=End.STALL, send=())
    async with stale_pool(lambda url: connected(url, chain), how=stalled) as (
        server,
        session,
    ):
        call = asyncio.create_task(session.get("/x", **options))
        await server.arrived(1)
        server.drop(BREAKS["closed"])
        time.sleep(0.25)  # noqa: ASYNC251 - the loop is late
        with pytest.raises(error):
            await call

    assert 1 == len(server.to("/x"))


async def test_requests_of_one_attempt_share_its_time():
    """The error names the time of the attempt, not what was left of it."""
    chain = retrying(RetryStrategy.never(), attempt_timeout=0.4)
    late = Fault(send=(0.25,), end=End.RESET)
    async with stale_pool(lambda url: connected(url, chain), how=late) as (
        server,
        session,
    ):
        server.scripts["/x"] = [Fault(send=(), end=End.STALL)]
        with pytest.raises(AttemptTimeoutError, match="0.400 s") as e:
            await session.get("/x")

    duration = RequestLog.of(e.value).duration
    assert 2 == len(server.to("/x"))
    assert 0.38 <= duration < 0.64


async def test_requests_of_one_call_share_its_deadline():
    """What is sent again has what is left."""
    limits = {"response_timeout": 0.4, "attempt_timeout": None}
    late = Fault(send=(0.25,), end=End.RESET)
    async with stale_pool(standard, how=late, **limits) as (server, session):
        server.scripts["/x"] = [Fault(send=(), end=End.STALL)]
        with pytest.raises(ResponseTimeoutError) as e:
            await session.get("/x")

    duration = RequestLog.of(e.value).duration
    assert not isinstance(e.value, AttemptTimeoutError)
    assert 2 == len(server.to("/x"))
    assert 0.38 <= duration < 0.64


@pytest.mark.parametrize("limit", [0.4, aiohttp.ClientTimeout(total=0.4)])
async def test_requests_of_one_send_share_the_timeout_of_a_decorator(limit):
    """What the decorator sends has that time, not each request on the wire."""

    @client_decorator
    async def hurry(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(timeout=limit))

    late = Fault(send=(0.25,), end=End.RESET)
    never = retrying(RetryStrategy.never())
    async with stale_pool(
        lambda url: connected(url, hurry, never), count=4, how=late
    ) as (server, session):
        with pytest.raises(TimeoutError) as e:
            await session.get("/x")

    assert 2 == len(server.to("/x"))
    assert 0.38 <= RequestLog.of(e.value).duration < 0.64


async def test_nothing_is_sent_again_when_the_time_of_a_decorator_is_up():
    """It was used up before the connection broke, by the making of the body."""

    @client_decorator
    async def hurry(delegate, ctx, request):
        limit = aiohttp.ClientTimeout(total=0.2)
        return await delegate.execute(ctx, request.replace(timeout=limit))

    def body():
        time.sleep(0.25)
        return b"late"

    chain = hurry, retrying(RetryStrategy.never())
    async with stale_pool(lambda url: connected(url, *chain)) as (server, session):
        assert await status_of(session.put("/x", data=body)) is None

    assert [b"late"] == server.bodies


async def test_timeout_of_a_decorator_may_have_no_total():
    """There is nothing to share then."""

    @client_decorator
    async def listen(delegate, ctx, request):
        limit = aiohttp.ClientTimeout(sock_read=5.0)
        return await delegate.execute(ctx, request.replace(timeout=limit))

    chain = listen, retrying(RetryStrategy.never())
    async with stale_pool(lambda url: connected(url, *chain), 2) as (server, session):
        assert 200 == await status_of(session.get("/x"))

    assert 3 == len(server.to("/x"))


@each(CHAINS)
async def test_cancelled_call_leaves_nothing_behind(make):
    """Whatever it was just doing."""
    async with stale_pool(make, 2) as (server, session):
        for turns in range(30):
            call = asyncio.create_task(session.get("/x"))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            answered = await asyncio.gather(call, return_exceptions=True)
            if isinstance(answered[0], aiohttp.ClientResponse):
                answered[0].release()

            assert 0 == in_use(session)
            server.leave_stale()
        assert 200 == await status_of(session.get("/last"))
