"""Both lanes where parts of a chain, or those around it, do what few of them do."""

from __future__ import annotations

import asyncio
import gc
import weakref

import aiohttp
import pytest
import story_at_odds
from fault_server import Fault, FaultServer, response
from lanes import LANES
from story_at_odds import (
    BUSY,
    CLOCKS,
    FINE,
    ODD,
    SECOND_PASSES,
    decorators,
    failing_clock,
    odd_answer,
    only_for,
    second_pass,
)
from story_text import differences

from aioretry_smithy import (
    LoggingClient,
    RequestLog,
    capture_logs,
    client_decorator,
    decorate,
    new_response,
    undecorate,
)


async def warmed(lane, url, *outside, inside=None):
    """Return a session whose next call takes the short lane, where there is one."""
    with LANES[lane]():
        return await story_at_odds.warmed(url, *outside, inside=inside)


async def in_each_lane(tell, *arguments):
    """Tell a story in each lane."""
    stories = []
    for lane in LANES:
        with LANES[lane]():
            stories.append(await tell(*arguments))
    return stories


class Unsure:
    """A logger that cannot say whether a level is on."""

    def isEnabledFor(self, level):  # noqa: N802
        raise LookupError(level)

    def log(self, level, message, **options):
        raise AssertionError(message)


@pytest.mark.parametrize("lane", LANES)
async def test_logger_that_raises_changes_nothing_for_a_call(lane):
    """It is asked before a call that may take the short lane, and may raise there."""
    logging = LoggingClient.new_decorator(Unsure())
    async with (
        FaultServer(then=FINE) as server,
        await warmed(lane, server.url, logging) as session,
    ):
        response = await session.get("/")

    assert 200 == response.status


@pytest.mark.parametrize("lane", LANES)
async def test_call_outlives_its_chain(lane):
    """It is retried to its end, though the session is undecorated meanwhile."""
    faults = [FINE, Fault(send=(0.01, response(503, b"busy")))]
    async with FaultServer(faults, then=FINE) as server:
        with LANES[lane]():
            session = decorate(aiohttp.ClientSession(server.url), *decorators())
        async with session:
            await session.get("/")
            call = asyncio.ensure_future(session._request("GET", "/"))
            await asyncio.sleep(0)
            undecorate(session)
            gc.collect()
            answered = await call

    assert 200 == answered.status
    assert 2 == RequestLog.of(answered).total_attempts


@pytest.mark.parametrize("inside", [1, 2])
@pytest.mark.parametrize("passes", SECOND_PASSES)
async def test_second_pass_has_an_attempt_of_its_own(passes, inside):
    """A decorator may send more requests; no log takes the outcome of another."""
    assert [] == differences(*await in_each_lane(second_pass, passes, inside))


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("lane", LANES)
async def test_answer_of_a_decorator_stays_that_of_the_call(lane, looks):
    """A request that it left running is an attempt of the call, and not its answer."""
    running = []

    @client_decorator
    async def answer_at_once(delegate, ctx, request):
        running.append(asyncio.ensure_future(delegate.execute(ctx, request)))
        await asyncio.sleep(0.001)
        return new_response(request, 203, body=b"stale")

    fresh = Fault(send=(0.02, response(200, b"fresh")))
    async with FaultServer([FINE, fresh]) as server:
        outside = only_for("/stale", answer_at_once)
        async with await warmed(lane, server.url, outside) as session:
            log = RequestLog.of(await session.get("/stale"))
            before = [child.response_status for child in log.children if looks]
            await (await running[0]).read()

    assert [None] * looks == before
    assert 203 == log.response_status
    assert [200] == [child.response_status for child in log.children]


class Body(dict):
    """JSON that can be referred to weakly."""


@client_decorator
async def watched(delegate, ctx, request):
    """Take the call as it is."""
    return await delegate.execute(ctx, request)


@pytest.mark.parametrize("outside", [[], [watched]])
@pytest.mark.parametrize("faults", [[], [BUSY]])
@pytest.mark.parametrize("lane", LANES)
async def test_body_does_not_live_on_in_response_or_log(lane, faults, outside):
    """Bodies are large, and responses and logs are kept."""
    async with (
        FaultServer([FINE, *faults], then=FINE) as server,
        await warmed(lane, server.url, *outside) as session,
    ):
        body = Body(a=1)
        gone = weakref.ref(body)
        with capture_logs() as logs:
            captured = await session.put("/", json=body)
        response = await session.put("/", json=body)
        del body
        gc.collect()

    assert None is gone()
    assert 200 == captured.status
    assert [8, 8] == [logs[0].request_length, RequestLog.of(response).request_length]


@pytest.mark.parametrize("odd", ODD)
async def test_odd_answers_of_mocks_end_the_call_alike(odd):
    """The log of the call ends, and the error leads to it."""
    assert [] == differences(*await in_each_lane(odd_answer, odd))


async def test_log_of_an_attempt_is_complete_at_once():
    """A wait for it does not last until the end of a decorator's work."""

    @client_decorator
    async def wait_for_the_log(delegate, ctx, request):
        sending = asyncio.ensure_future(delegate.execute(ctx, request))
        await asyncio.sleep(0.001)
        (attempt,) = ctx.log.children
        waiting = asyncio.ensure_future(attempt.when_complete())
        await sending
        async with asyncio.timeout(1.0):
            await waiting
        return await sending

    slow = Fault(send=(0.02, response(200, b"fine")))
    shown = []
    for lane in LANES:
        async with FaultServer([FINE, slow]) as server:
            outside = only_for("/waits", wait_for_the_log)
            async with await warmed(lane, server.url, outside) as session:
                shown.append((await session.get("/waits")).status)

    assert [200, 200] == shown


@pytest.mark.parametrize("name", CLOCKS)
async def test_clock_that_raises_leaves_the_attempt_its_answer(name):
    """The call failed, and its one attempt did not."""
    assert [] == differences(*await in_each_lane(failing_clock, name))
