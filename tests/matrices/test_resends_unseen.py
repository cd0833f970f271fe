"""Nobody is asked or told when the transport sends again, unless it breaks for good."""

from __future__ import annotations

import asyncio

from chains import connected
from fault_server import Fault, answer, response
from parity import retrying, stale_pool, status_of

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    ContentPreviewingClient,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    RetryStrategy,
    client_decorator,
)


def session_with(*chain):
    """Make what makes sessions."""
    return lambda url: connected(url, *chain)


async def test_open_circuit_is_not_asked_for_what_is_sent_again():
    """A half-open one has let the trial through, which may take four requests."""
    breaker = CircuitBreaker(minimum_request_threshold=0, circuit_open_window=0.01)
    inside = CircuitBreakerClient.new_decorator(breaker)
    chain = session_with(inside, retrying(RetryStrategy.never()))
    async with stale_pool(chain, 0) as (server, session):
        assert 200 == await status_of(session.get("/x"))
        server.scripts["/x"] = [answer(503)] * 3
        for _ in range(3):
            await status_of(session.get("/x"))
        opened = breaker.state
        server.scripts.clear()
        await asyncio.sleep(0.02)
        server.leave_stale()
        status = await status_of(session.get("/x"))

    assert ("OPEN", "CLOSED") == (opened.name, breaker.state.name)
    assert 200 == status


async def test_rate_is_not_used_up():
    """What is sent again needs no other turn."""
    limit = RateLimit(1, per=1000.0, burst=2)
    inside = RateLimitingClient.new_decorator(limit, timeout=0.01)
    chain = session_with(inside, retrying(RetryStrategy.never()))
    async with stale_pool(chain) as (server, session):
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 2 == len(server.to("/x"))


async def test_decorator_that_sends_twice_has_each_of_them_sent_again():
    """Each time its own connection may be stale."""

    @client_decorator
    async def twice(delegate, ctx, request):
        first = await delegate.execute(ctx, request)
        await first.read()
        server.leave_stale()
        return await delegate.execute(ctx, request)

    chain = session_with(twice, retrying(RetryStrategy.never()))
    async with stale_pool(chain, 0) as (server, session):
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 3 == len(server.to("/x"))


async def test_content_is_previewed_of_the_answer():
    """The log has the body of the request that counts."""
    chain = session_with(
        ContentPreviewingClient.new_decorator(100), retrying(RetryStrategy.never())
    )
    answered = response(200, b"answered", "Content-Type: text/plain")
    async with stale_pool(chain) as (server, session):
        server.scripts["/x"] = [Fault(send=(answered,))]
        async with session.put("/x", data="sent") as got:
            await got.read()
        log = RequestLog.of(got)

    previews = [child.request_content_preview for child in log.children]
    assert 200 == got.status
    assert ["sent", "sent"] == previews
    assert "answered" == log.children[-1].response_content_preview
