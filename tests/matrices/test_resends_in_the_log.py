"""The log of a call has each request on the wire; the number of an attempt stays."""

from __future__ import annotations

import asyncio

import aiohttp
from chains import connected
from fault_server import answer
from parity import SOON, retrying, stale_pool, status_of

from aioretry_smithy import RequestLog, RetryStrategy, client_decorator
from aioretry_smithy.smithy import StandardRetryStrategy, sdk_headers

BROKEN = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
STALE = "stale_connection"


def counts(server, header="armeria-retry-count"):
    """Return a header of all requests, in order."""
    return [request.header(header).decode() for request in server.to("/x")]


def sources(log):
    """Return why there was another request after each."""
    return [child.delay_source for child in log.children]


def failsafe(*inside, **settings):
    """Make what makes sessions, with plain retries around other decorators."""
    chain = (*inside, retrying(RetryStrategy.failsafe(SOON), **settings))
    return lambda url: connected(url, *chain)


async def test_requests_that_a_decorator_sends_side_by_side_have_a_log_each():
    """None that is under way is taken for one that broke."""

    @client_decorator
    async def race(delegate, ctx, request):
        racers = [asyncio.create_task(delegate.execute(ctx, request)) for _ in range(2)]
        first, *_ = await asyncio.gather(*racers)
        return first

    async with stale_pool(failsafe(race), 4) as (_, session):
        async with session.get("/x") as got:
            log = RequestLog.of(got)
        sent_again = [child for child in log.children if child.delay_source == STALE]

    assert 200 == log.response_status
    assert sent_again
    assert all(isinstance(child.response_cause, BROKEN) for child in sent_again)
    assert all(child.is_complete for child in log.children)


async def test_attempt_keeps_its_number_when_it_is_sent_again():
    """The header counts attempts, and so do decorators and strategies."""
    seen, answered = [], []

    @client_decorator
    async def note(delegate, ctx, request):
        seen.append(ctx.attempt)
        try:
            return await delegate.execute(ctx, request)
        finally:
            answered.append(ctx.log.response_status)

    make = failsafe(note, max_total_attempts=2)
    async with stale_pool(make) as (server, session):
        seen.clear()
        answered.clear()
        server.scripts["/x"] = [answer(503)]
        async with session.get("/x") as got:
            log = RequestLog.of(got)

    assert ["", "", "1"] == counts(server)
    assert [STALE, "backoff", None] == sources(log)
    assert 3 == log.total_attempts
    assert ([1, 2], [503, 200]) == (seen, answered)


async def test_own_header_of_the_caller_stays():
    """A first attempt is sent again with the value that it had."""
    async with stale_pool(failsafe()) as (server, session):
        headers = {"armeria-retry-count": "7"}
        status = await status_of(session.get("/x", headers=headers))

    assert 200 == status
    assert ["7", "7"] == counts(server)


async def test_header_of_the_sdks_counts_attempts_too():
    """A request that is sent again is the same attempt of the same call."""
    strategy = StandardRetryStrategy(max_attempts=2)
    chain = (sdk_headers, retrying(strategy))
    async with stale_pool(lambda url: connected(url, *chain)) as (server, session):
        server.scripts["/x"] = [answer(503)]
        status = await status_of(session.get("/x"))

    attempts = [told.partition(";")[0] for told in counts(server, "amz-sdk-request")]
    assert 200 == status
    assert ["attempt=1", "attempt=1", "attempt=2"] == attempts
    assert 1 == len({*counts(server, "amz-sdk-invocation-id")})
