"""Calls where parts of a chain, or those around it, do what few of them do."""

import asyncio

import pytest
from fault_server import Fault, FaultServer, response
from story_at_odds import FINE, only_for, warmed

from aioretry_smithy import RequestLog, client_decorator, new_response


@pytest.mark.parametrize("looks", [False, True])
async def test_answer_of_a_decorator_stays_that_of_the_call(looks):
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
        async with await warmed(server.url, outside) as session:
            log = RequestLog.of(await session.get("/stale"))
            before = [child.response_status for child in log.children if looks]
            await (await running[0]).read()

    assert [None] * looks == before
    assert 203 == log.response_status
    assert [200] == [child.response_status for child in log.children]


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
    async with FaultServer([FINE, slow]) as server:
        outside = only_for("/waits", wait_for_the_log)
        async with await warmed(server.url, outside) as session:
            answered = await session.get("/waits")

    assert 200 == answered.status
