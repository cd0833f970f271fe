"""What decorators outside of the retries leave in the log of a call."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from chains import after, chain, notes_of, retrying, session, twice

from aioretry_smithy import (
    Backoff,
    DecoratingClient,
    RequestLog,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    capture_logs,
    client_decorator,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport


def builder(*answers, **settings):
    return chain(answers, retrying(1.0, **settings), base_url="http://example.com")


async def test_refusal_keeps_the_response():
    """The log keeps the status that ``raise_for_status`` turned down."""
    async with builder((418, b"tea")).build() as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await session.get("/", raise_for_status=True)
    log = RequestLog.of(caught.value)

    assert (418, 3, caught.value) == (
        log.response_status,
        log.response_length,
        log.response_cause,
    )
    assert log.children[0].response_cause is None


async def test_decorator_outside_may_pass_twice():
    """Attempt numbers go on over the call, and the last pass is what counts."""
    calls = builder(503, 404, 503, 200).decorator(twice)
    async with calls.build() as session, session.get("/") as response:
        log = RequestLog.of(response)

    assert [1, 2, 3, 4] == [child.attempt for child in log.children]
    assert (200, None) == (log.response_status, log.stop_reason)


async def test_decorator_outside_may_answer_itself():
    """The root shows what the caller got, the child what the server said."""

    @client_decorator
    async def mend(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        response.release()
        return new_response(request, 203, body=b"from the cache")

    calls = builder(404).decorator(mend)
    async with calls.build() as session, session.get("/") as response:
        log = RequestLog.of(response)

    assert (203, 404) == (log.response_status, log.children[0].response_status)
    assert 14 == log.response_length
    assert RetryStopReason.NO_RETRY == log.stop_reason


@client_decorator
async def race(delegate, ctx, request):
    """Send twice at once, and leave the slower one behind, cancelled."""
    tasks = [
        asyncio.ensure_future(delegate.execute(ctx, request)),
        asyncio.ensure_future(delegate.execute(ctx, request)),
    ]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return done.pop().result()


class Refreshing(DecoratingClient):
    """Answers from a cache, and asks the server without waiting for it."""

    async def execute(self, ctx, request):
        self.task = asyncio.ensure_future(self.delegate.execute(ctx, request))
        await asyncio.sleep(0.5)
        return new_response(request, 203)


async def settled(*decorators):
    """Return what a log showed when its call was over, and the log a while later."""
    async with session(*decorators) as client:
        log = RequestLog.of(await client.get("http://h/"))
        shown = [(each.response_status, each.duration) for each in (log, *log.children)]
        await asyncio.sleep(60.0)
    return shown, log


@pytest.mark.parametrize("attempts", [0, 2])
async def test_cancelled_loser_of_a_race_changes_no_log(attempts):
    """Neither that of the call nor that of the attempt that the race was in."""
    answers = [503, 500, 200, 500] if attempts else [200, 500]
    times = (1.0, 9.0, 1.0, 9.0)
    scripted = [after(*each) for each in zip(times, answers, strict=False)]
    retrying = RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.fixed(1.0)))
    outside = [retrying] if attempts else []
    shown, log = await settled(ScriptedTransport(scripted), race, *outside)

    assert attempts == len(log.children)
    statuses = [(200, 3.0), (503, 1.0), (200, 1.0)] if attempts else [(200, 1.0)]
    assert statuses == shown
    assert shown == [
        (each.response_status, each.duration) for each in (log, *log.children)
    ]
    assert {None} == {each.response_cause for each in (log, *log.children)}


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("retries", [False, True])
async def test_pass_that_outlives_its_call_does_not_change_the_answer(
    retries, is_cancelled
):
    """Its attempts are shown as they ended; what the caller got stays."""
    clients = []

    def refreshing(delegate):
        clients.append(Refreshing(delegate))
        return clients[0]

    async def answer(ctx, request):
        await asyncio.sleep(1.0)
        if is_cancelled:
            clients[0].task.cancel()
            await asyncio.sleep(1.0)
        return 500

    never = RetryingClient.new_decorator(RetryStrategy.never())
    inside = [never] if retries else []
    _, log = await settled(ScriptedTransport([answer]), *inside, refreshing)

    assert (203, None, 0.5) == (log.response_status, log.response_cause, log.duration)
    assert log.stop_reason is None
    assert [1.0] * retries == [child.duration for child in log.children]
    status = None if is_cancelled else 500
    assert [status] * retries == [child.response_status for child in log.children]


async def test_notes_are_on_calls_of_more_than_one_attempt():
    """One note an attempt; a single attempt has nothing to add to its exception."""
    answers = [503, after(0.25, aiohttp.ServerDisconnectedError("gone"))]
    async with builder(*answers, max_total_attempts=2).build() as session:
        with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
            await session.get("/")
    assert [
        "attempt 1: 503 Service Unavailable, 0.000 s, then waited 1.000 s (backoff)",
        "attempt 2: ServerDisconnectedError: gone, 0.250 s",
    ] == notes_of(caught.value)

    async with builder(TimeoutError(), max_total_attempts=1).build() as session:
        with pytest.raises(TimeoutError) as caught:
            await session.get("/")

    assert not hasattr(caught.value, "__notes__")


async def test_notes_are_on_a_refused_response():
    """``raise_for_status`` raises for the caller what attempts led up to."""
    async with builder(503, 503, max_total_attempts=2).build() as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await session.get("/", raise_for_status=True)
    log = RequestLog.of(caught.value)

    assert 2 == len(caught.value.__notes__)
    assert (503, caught.value) == (log.response_status, log.response_cause)
    assert [None, None] == [child.response_cause for child in log.children]


async def test_error_without_a_message_of_its_own_reaches_the_caller():
    """A hand-made error of aiohttp that cannot be printed is raised all the same."""
    error = aiohttp.ClientConnectorError(None, OSError())
    async with builder(503, error, max_total_attempts=2).build() as session:
        with capture_logs() as logs, pytest.raises(aiohttp.ClientConnectorError):
            await session.get("/")

    assert error is logs[0].response_cause
