"""The log of a call has each request on the wire; the number of an attempt stays."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress

import aiohttp
import pytest
from chains import connected
from fault_server import answer
from left_over import nothing_to_collect
from parity import CHAINS, NEVER, SOON, each, retrying, stale_pool, status_of
from pool_server import RESET

from aioretry_smithy import (
    LogFormatter,
    LoggingClient,
    RequestLog,
    RetryStrategy,
    capture_logs,
    client_decorator,
)
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


@each(CHAINS)
async def test_broken_request_has_a_log(make):
    """It says why there was another one; the answer belongs to that."""
    async with stale_pool(make) as (_, session), session.get("/x") as got:
        log = RequestLog.of(got)

    broken, answered = log.children
    assert [STALE, None] == sources(log)
    assert isinstance(broken.response_cause, BROKEN)
    assert (None, 200) == (broken.response_status, answered.response_status)
    assert answered.response_cause is None
    assert (2, None) == (log.total_attempts, log.stop_reason)
    assert (200, None) == (log.response_status, log.response_cause)
    assert log.is_complete


@each(CHAINS)
async def test_every_view_has_the_broken_request(make):
    """The tree has a line, and JSON an entry, for each on the wire."""
    async with stale_pool(make, 2) as (_, session), session.get("/x") as got:
        log = RequestLog.of(got)

    as_json = json.loads(json.dumps(log.to_dict()))
    assert 4 == len(log.render().splitlines())
    assert 3 == as_json["total_attempts"]
    told = [child["delay_source"] for child in as_json["children"]]
    assert [STALE, STALE, None] == told


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


@each(CHAINS)
async def test_call_has_one_log(make):
    """What is sent again belongs to the call that sent it first."""
    with capture_logs() as logs:
        async with stale_pool(make, 3) as (_, session):
            logs.clear()
            status = await status_of(session.get("/x"))

    assert 200 == status
    assert [4] == [log.total_attempts for log in logs]


@each(NEVER)
async def test_last_request_that_broke_is_the_outcome(make):
    """After three more there is no other, and the log ends with it."""
    async with stale_pool(make, 4) as (_, session):
        with pytest.raises(BROKEN) as e:
            await session.get("/x")

    log = RequestLog.of(e.value)
    assert [STALE, STALE, STALE, None] == sources(log)
    assert ("no_retry", 4) == (log.stop_reason, log.total_attempts)
    assert all(isinstance(child.response_cause, BROKEN) for child in log.children)


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


async def test_later_attempt_is_sent_again_with_its_own_header():
    """Not with that of the next one."""
    async with stale_pool(failsafe(max_total_attempts=2), 0) as (server, session):
        server.scripts["/x"] = [answer(503), RESET]
        async with session.get("/x") as got:
            log = RequestLog.of(got)

    assert 200 == got.status
    assert ["", "1", "1"] == counts(server)
    assert ["backoff", STALE, None] == sources(log)


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


@pytest.mark.parametrize("formatter", [LogFormatter.text(), LogFormatter.json()])
async def test_no_line_is_written_twice(formatter, caplog):
    """One pair for each attempt inside, and one for the call outside."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    lines = LoggingClient.new_decorator(formatter=formatter)
    chain = (lines, retrying(RetryStrategy.failsafe(SOON)), lines)
    async with stale_pool(lambda url: connected(url, *chain), 3) as (server, session):
        server.scripts["/x"] = [answer(503)]
        caplog.clear()
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 5 == len(server.to("/x"))
    assert 6 == len(caplog.records)

    statuses = [record.request_log.response_status for record in caplog.records[1::2]]
    assert [503, 200, 200] == statuses

    totals = {record.request_log.root.total_attempts for record in caplog.records}
    assert {5} == totals


@each(CHAINS)
@pytest.mark.parametrize("stale", [1, 4])
async def test_nothing_is_left_to_collect(stale, make):
    """No cycle runs through what was sent again, nor through what broke at last."""

    async def ask():
        with suppress(aiohttp.ClientError):
            async with session.get("/x") as got:
                await got.read()

    async with stale_pool(make) as (server, session):
        await ask()
        with nothing_to_collect():
            server.leave_stale()
            if stale > 1:
                server.scripts["/x"] = [RESET] * 3
            await ask()
