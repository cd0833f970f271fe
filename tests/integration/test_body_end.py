"""The end of a body is noticed, however it ends, and costs the response nothing."""

import asyncio
import gc
import weakref

import aiohttp
import pytest
from aiohttp import web
from chains import SAFELY, retrying
from chains import connected as build

from aioretry_smithy import (
    AttemptTimeoutError,
    RequestLog,
    RetryStrategy,
    client_decorator,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
HALF = HEAD + b"01234"


async def test_stream_says_each_time_which_limit_passed(serve):
    """A reader that goes on after the limit meets the same error again."""
    url = await serve([HALF, 3600.0])
    in_time = retrying(RetryStrategy.failsafe(), attempt_timeout=0.5)
    async with build(url, in_time) as session, session.get("/") as response:
        assert b"01234" == await response.content.read(5)
        for _ in range(2):
            with pytest.raises(AttemptTimeoutError) as caught:
                await response.content.read(5)

    said = "attempt 1 had 0.500 s, which passed while its body was read"
    said += " (attempt_timeout=None for a stream)"
    assert said == str(caught.value)
    assert TimeoutError is type(caught.value.__cause__)
    assert AttemptTimeoutError is type(RequestLog.of(response).response_cause)


async def test_body_that_a_decorator_reads_and_fails_on(serve):
    """Failure of the body inside the chain: the log keeps the status that came."""

    @client_decorator
    async def read(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await response.read()
        return response

    url = await serve([HALF, None])
    async with build(url, read) as session:
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await session.get("/")
    log = RequestLog.of(caught.value)

    assert (200, caught.value) == (log.response_status, log.response_cause)
    assert log.is_complete


async def test_response_that_was_given_up_is_freed(serve):
    """A retried response does not live on while the next attempt is under way."""
    freed, alive = [], []

    @client_decorator
    async def watch(delegate, ctx, request):
        alive.extend(seen() is not None for seen in freed)
        response = await delegate.execute(ctx, request)
        freed.append(weakref.ref(response))
        return response

    url = await serve([b"HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\n0123456789"])
    async with build(url, watch, retrying(SAFELY, max_total_attempts=3)) as session:
        gc.collect()
        gc.disable()
        try:
            async with session.get("/"):
                pass
        finally:
            gc.enable()

    assert [False] * 3 == alive


async def test_answer_that_was_replaced_does_not_end_the_log_of_its_successor(
    aiohttp_raw_server,
):
    """A decorator that asked twice gives the first answer up after the second."""

    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x" * 10)
        await asyncio.sleep(0.01)
        await response.write(b"x" * 10)
        return response

    @client_decorator
    async def twice(delegate, ctx, request):
        first = await delegate.execute(ctx, request)
        second = await delegate.execute(ctx, request)
        first.close()
        return second

    server = await aiohttp_raw_server(handler)
    async with build(server.make_url("/"), twice) as session:
        response = await session.get("/")
        log = RequestLog.of(response)
        complete = log.is_complete
        await response.read()

    assert not complete
    assert 20 == log.response_length
