"""The end of a body is noticed, however it ends, and costs the response nothing."""

from __future__ import annotations

import asyncio
import gc
import gzip
import weakref

import aiohttp
import pytest
from aiohttp import ClientTimeout, web
from chains import SAFELY, retrying
from chains import connected as build

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryStrategy,
    capture_logs,
    client_decorator,
)

RETRYING = retrying(RetryStrategy.failsafe(Backoff.fixed(0.01)))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n"
HALF = HEAD + b"01234"

each_chain = pytest.mark.parametrize(
    "decorator", [DecoratingClient, RETRYING], ids=["plain", "retrying"]
)


def ends(log):
    """Return the log of the call and those of its attempts."""
    return [log, *log.children]


@each_chain
async def test_body_read_to_its_end(serve, decorator):
    """The log is complete with the last byte, and knows how many there were."""
    asked = asyncio.Event()
    url = await serve([HEAD + b"01234", asked, b"56789"])
    async with build(url, decorator) as session, session.get("/") as response:
        log = RequestLog.of(response)
        assert not any(log.is_complete for log in ends(log))
        assert log.response_length is log.total_duration is None
        await asyncio.sleep(0.05)
        asked.set()
        assert b"0123456789" == await response.read()

        for end in ends(log):
            assert end.is_complete
            assert 10 == end.response_length
            assert end.response_cause is None
            assert end.total_duration >= end.duration + 0.04


@each_chain
async def test_length_counts_decoded_bytes(serve, decorator):
    """A packed body is counted as the caller gets it."""
    body = gzip.compress(b"x" * 5000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    url = await serve([head % len(body), 0.01, body])
    async with build(url, decorator) as session, session.get("/") as response:
        chunks = [chunk async for chunk in response.content.iter_chunked(1000)]

    assert 5000 == sum(map(len, chunks)) == RequestLog.of(response).response_length


@each_chain
async def test_small_body_that_came_with_the_headers(serve, decorator):
    """A body that was there before anybody read it is complete as well."""
    url = await serve([HEAD + b"0123456789"])
    async with build(url, decorator) as session:
        response = await session.get("/")
        await asyncio.sleep(0.02)
        log = RequestLog.of(response)

    assert all(end.is_complete for end in ends(log))
    assert 10 == log.response_length


@pytest.mark.parametrize("leave", ["exit", "release", "close"])
@each_chain
async def test_early_exit_has_no_cause(serve, decorator, leave):
    """A caller that has seen enough has not failed."""
    url = await serve([HALF, 3600.0])
    async with build(url, decorator) as session:
        response = await session.get("/")
        assert b"01234" == await response.content.readany()
        if leave == "exit":
            async with response:
                pass
        else:
            getattr(response, leave)()
        log = RequestLog.of(response)

    for end in ends(log):
        assert end.is_complete
        assert 5 == end.response_length
        assert end.response_cause is None


@each_chain
async def test_cancelled_reader_has_no_cause(serve, decorator):
    """A caller that goes away while reading ends the log too."""
    url = await serve([HALF, 3600.0])
    async with build(url, decorator) as session:
        response = await session.get("/")
        task = asyncio.create_task(response.read())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        log = RequestLog.of(response)

        assert all(end.is_complete for end in ends(log))
        assert log.response_cause is None
        assert not session.connector._acquired


FAILURES = {
    "cut": ([HALF, None], {}, aiohttp.ClientPayloadError, 5),
    "no gzip": ([GZIP, 0.01, b"0123456789"], {}, aiohttp.ClientPayloadError, 0),
    "silence": ([HALF, 3600.0], {"sock_read": 0.5}, aiohttp.SocketTimeoutError, 5),
    "time": ([HALF, 3600.0], {"total": 0.5}, ResponseTimeoutError, 5),
}


@pytest.mark.parametrize("failure", FAILURES)
@each_chain
async def test_failed_body_is_a_failure(serve, decorator, failure):
    """The log has the very error that the reader got, beside the status."""
    parts, limits, error, length = FAILURES[failure]
    url = await serve(parts)
    async with build(url, decorator, timeout=ClientTimeout(**limits)) as session:
        response = await session.get("/")
        with pytest.raises(error) as caught:
            await response.read()
        log = RequestLog.of(response)

    for end in ends(log):
        assert end.is_complete
        assert caught.value is end.response_cause
        assert (200, length) == (end.response_status, end.response_length)
        assert end.total_duration >= (0.04 if limits else 0.0)
    assert "200 OK, " in log.render()


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


@pytest.mark.parametrize(
    ("method", "head"),
    [
        ("HEAD", HEAD),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ],
)
@each_chain
async def test_response_without_a_body_is_complete_at_once(
    serve, decorator, method, head
):
    """Nobody has to read what is not there."""
    url = await serve([head])
    async with build(url, decorator) as session:
        response = await session.request(method, "/")
        log = RequestLog.of(response)

        assert all(end.is_complete for end in ends(log))
        assert 0 == log.response_length
        assert log.response_cause is None


@each_chain
async def test_web_socket_is_complete_at_its_handshake(echoing, decorator):
    """The bytes after a 101 are no body, and the socket works as ever."""
    async with build(echoing, decorator) as session:
        with capture_logs() as logs:
            socket = await session.ws_connect("/")
        assert all(end.is_complete for end in ends(logs[0]))
        assert 101 == logs[0].response_status

        await socket.send_str("hello")
        assert "hello" == (await socket.receive()).data
        await socket.close()


@each_chain
async def test_mocked_response_is_complete_at_once(aioresponses_mock, decorator):
    """The fakes of aioresponses hold no connection, so nothing more can come."""
    aioresponses_mock.get("http://127.0.0.1/", status=201, body=b"abc")
    async with build(None, decorator) as session:
        response = await session.get("http://127.0.0.1/")
        log = RequestLog.of(response)

        assert all(end.is_complete for end in ends(log))
        assert (201, 3) == (log.response_status, log.response_length)
        assert b"abc" == await response.read()


async def test_log_of_a_redirected_call(serve):
    """The body is that of the last hop, the headers sent are those of the first."""
    away = b"HTTP/1.1 303 See Other\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"
    url = await serve([away], [HEAD + b"0123456789"])
    async with (
        build(url, RETRYING) as session,
        session.post("/a", data=b"abc") as response,
    ):
        await response.read()
    log = RequestLog.of(response)

    assert "3" == log.request_headers["Content-Length"]
    assert ("POST", "/a") == (log.request_method, log.request_url.path)
    assert (200, 10, 1) == (
        log.response_status,
        log.response_length,
        log.total_attempts,
    )


async def read(response):
    await response.read()


async def leave(response):
    async with response:
        pass


async def close(response):
    response.close()


@pytest.mark.parametrize("finish", [read, leave, close])
@pytest.mark.parametrize(
    "decorators", [[], [DecoratingClient], [RETRYING]], ids=["none", "plain", "retry"]
)
async def test_nothing_keeps_a_response_alive(serve, decorators, finish):
    """With a chain as without, counting references frees response and connection."""
    url = await serve([HEAD + b"01234", 0.02, b"56789"])
    async with build(url, *decorators) as session:
        gc.collect()
        gc.disable()
        try:
            response = await session.get("/")
            connection = weakref.ref(response.connection)
            freed = weakref.ref(response)
            await finish(response)
            log = RequestLog.of(response, None)
            del response

            assert freed() is None
            assert connection() is None
            assert log is None or log.is_complete
        finally:
            gc.enable()


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
