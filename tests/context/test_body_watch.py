"""Bodies that are watched: what they fail with, and where that is written."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp.helpers import TimerContext
from calls import REQUEST, begin, begin_body, call_of, end_call
from fake_responses import FakeResponse, FakeStream, unending

from aioretry_smithy import RequestLog, ResponseTimeoutError
from aioretry_smithy._context.recording import watch_body


def watched(ctx, start=b""):
    """Let a response arrive, and watch its body; return that and aiohttp's timer."""
    response = unending(REQUEST, start=start)
    timer = TimerContext(asyncio.get_running_loop())
    response.content._timer = timer
    begin_body(ctx, response)
    call = call_of(ctx)
    watch_body(call, call, response)
    return response.content, timer


@pytest.mark.parametrize("start", [b"", b"ab"], ids=["none", "some"])
@pytest.mark.parametrize("seconds", [0.0, 2.0], ids=["before", "meanwhile"])
async def test_limit_that_a_body_runs_into_is_named(start, seconds):
    """Whether time is up before it is read or while it is waited for."""
    ctx = begin(timeout=1.0)
    content, timer = watched(ctx, start)
    asyncio.get_running_loop().call_at(1.0, timer.timeout)
    await asyncio.sleep(2.0 - seconds)
    with pytest.raises(ResponseTimeoutError) as caught:
        await content.read()

    assert "the call had 1.000 s, which passed while its body was read" == str(
        caught.value
    )
    assert caught.value is ctx.log.response_cause


async def test_limit_of_aiohttp_s_own_stays_what_it_is():
    """A decorator has set one that is shorter than that of the call."""
    ctx = begin(timeout=5.0)
    content, timer = watched(ctx)
    asyncio.get_running_loop().call_later(1.0, timer.timeout)
    with pytest.raises(TimeoutError) as caught:
        await content.read()

    assert TimeoutError is type(caught.value)
    assert (1.0, caught.value) == (ctx.log.total_duration, ctx.log.response_cause)


async def test_body_that_breaks_off_has_failed():
    """With what the one who reads it gets."""
    ctx = begin()
    content, _ = watched(ctx)
    error = aiohttp.ClientPayloadError()
    asyncio.get_running_loop().call_later(1.0, content.set_exception, error)
    with pytest.raises(aiohttp.ClientPayloadError):
        await content.read()

    assert (1.0, error) == (ctx.log.total_duration, ctx.log.response_cause)


async def test_length_of_a_body_that_breaks_off_is_known_at_once():
    """The log has it with the failure, before anybody has released the response."""
    ctx = begin()
    content, _ = watched(ctx, b"ab")
    error = aiohttp.ClientPayloadError()
    asyncio.get_running_loop().call_later(1.0, content.set_exception, error)
    lengths = []
    call_of(ctx).wait_with(lambda: lengths.append(ctx.log.response_length))
    with pytest.raises(aiohttp.ClientPayloadError):
        await content.read()

    assert [2] == lengths


@pytest.mark.parametrize("seconds", [0.0, 2.0], ids=["before", "meanwhile"])
async def test_length_of_a_body_that_runs_out_of_time_is_known_at_once(seconds):
    """Whatever the timer was asked for when it found out."""
    ctx = begin(timeout=1.0)
    content, timer = watched(ctx, b"ab")
    asyncio.get_running_loop().call_at(1.0, timer.timeout)
    await asyncio.sleep(2.0 - seconds)
    with pytest.raises(ResponseTimeoutError):
        await content.read()

    assert 2 == ctx.log.response_length


async def test_body_that_arrives_has_not_failed():
    """Each wait for more of it is over."""
    ctx = begin()
    content, _ = watched(ctx)
    asyncio.get_running_loop().call_later(1.0, content.feed_eof)

    assert b"" == await content.read()
    assert ctx.log.response_cause is None


async def test_failure_after_the_call_has_its_log():
    """Only the one who reads the body meets it."""
    ctx = begin()
    content, _ = watched(ctx)
    end_call(ctx)
    error = aiohttp.ClientPayloadError()
    asyncio.get_running_loop().call_later(1.0, content.set_exception, error)
    with pytest.raises(aiohttp.ClientPayloadError) as caught:
        await content.read()

    assert ctx.log is RequestLog.of(caught.value)
    assert error is ctx.log.response_cause


async def test_error_of_a_stream_leads_to_the_log():
    """Also one that passes through nothing of ours."""
    ctx = begin()
    content, _ = watched(ctx, b"ab")
    content.feed_eof()
    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await content.readexactly(5)

    assert ctx.log is RequestLog.of(caught.value)
    assert ctx.log.response_cause is None


async def test_body_that_failed_before_it_was_read_is_noticed_then():
    """No wait for it has met the failure, but its error leads to the log."""
    ctx = begin()
    content, _ = watched(ctx)
    error = aiohttp.ClientPayloadError()
    content.set_exception(error)
    with pytest.raises(aiohttp.ClientPayloadError):
        await content.read()
    before = ctx.log.response_cause

    assert ctx.log is RequestLog.of(error)
    assert (None, error) == (before, ctx.log.response_cause)


async def test_error_of_a_body_that_nobody_watches_has_no_log():
    """Such as that of a plain session."""
    content = unending(REQUEST).content
    content.feed_eof()
    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await content.readexactly(5)

    assert RequestLog.of(caught.value, None) is None


async def test_stream_of_another_class_is_left_alone():
    """It need not ask a timer."""
    call = call_of(begin())
    response = FakeResponse(stream := FakeStream())
    before = stream._timer
    watch_body(call, call, response)

    assert before is stream._timer
