"""Bodies from a real server: looked at or read whole, left to the caller, or cut."""

import asyncio
import gc
import gzip
import json
import weakref

import aiohttp
import pytest
from aiohttp import web
from chains import SAFELY, connected, retrying
from fake_responses import (
    BODY,
    HEAD,
    SOON,
    WAYS,
    WhileBusy,
    assert_nothing_is_held,
    build,
    chunk,
    chunked,
    pieces_of,
    sized,
)
from pairs import each_pair, each_value
from until import until

from aioretry_smithy import (
    AttemptTimeoutError,
    RequestLog,
    RetryStrategy,
    capture_logs,
    client_decorator,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

MEBIBYTE = 1024 * 1024


def in_parts(answer):
    """Send an answer so that some comes with the headers and some later."""
    return [answer[:1000], 0.01, *pieces_of(answer[1000:], 50_000)]


def sent(answer):
    """Send one of the answers, and hang up where only that ends it."""
    hangs_up = answer == "to the end of the connection"
    return [*in_parts(ANSWERS[answer]), *([None] if hangs_up else [])]


GZIP = b"Content-Encoding: gzip"
ANSWERS = {
    "sized": sized(BODY),
    "chunked": chunked(pieces_of(BODY, 7000)),
    "to the end of the connection": HEAD + b"\r\n" + BODY,
    "gzip": sized(gzip.compress(BODY), GZIP),
    "gzip, chunked": chunked(pieces_of(gzip.compress(BODY), 700), GZIP),
}


def expected_from(way):
    return {"text": BODY.decode(), "json": json.loads(BODY)}.get(way, BODY)


@each_pair(way=WAYS, answer=ANSWERS, limit=[1, 100_000, MEBIBYTE, None])
async def test_caller_gets_the_body_in_every_way(serve, answer, way, limit):
    """Looked at in part or whole, or read into memory, it reads as if untouched."""
    url = await serve(sent(answer))
    strategy = WhileBusy(limit or 1)
    async with build(url, strategy, buffer=limit is None) as session:
        async with session.get("/") as response:
            body = await WAYS[way](response)
        log = RequestLog.of(response)

        assert expected_from(way) == body
        assert [BODY[: limit or 1]] == [seen[2] for seen in strategy.seen]
        assert log.is_complete
        assert (len(BODY), None) == (log.response_length, log.response_cause)
        assert_nothing_is_held(session)


@each_value(way=WAYS, answer=ANSWERS)
async def test_buffered_body_is_at_its_end_once_read(serve, answer, way):
    """The stream has it until it is read, in any way; what reads it all, for good."""
    url = await serve(sent(answer))
    async with (
        build(url, RetryStrategy.failsafe(), buffer=True) as session,
        session.get("/") as response,
    ):
        before = response.content.at_eof()
        body, after = await WAYS[way](response), response.content.at_eof()
        again = await response.read()
        rest = await response.content.read()

        assert (False, True) == (before, after)
        kept = BODY if way in {"read", "text", "json"} else b""
        assert expected_from(way) == body
        assert kept == again
        assert b"" == rest

    assert kept.decode() == await response.text()


async def test_buffered_body_is_read_from_the_stream_that_takes_its_place(serve):
    """That of a fault outside of the retries, which cuts it."""
    url = await serve([sized(BODY)])
    fault = FaultInjectingClient.new_decorator(InjectedFault.cut_body(after=1000))
    retries = retrying(RetryStrategy.failsafe(), buffer_response=True)
    async with connected(url, retries, fault) as session, session.get("/") as response:
        with pytest.raises(aiohttp.ClientPayloadError, match="cut off after 1000"):
            await response.read()


class Checked(aiohttp.ClientResponse):
    """A response of a user's own that checks its body."""

    async def read(self):
        body = await super().read()
        if not body.startswith(b"done"):
            raise aiohttp.ClientPayloadError("no such body")
        return body


async def test_buffered_body_is_read_by_a_users_own_method(serve):
    """Within the attempt: what it refuses is retried; its ``read()`` stays."""
    url = await serve([sized(b"busy")], [sized(b"done")])
    async with build(
        url, RetryStrategy.failsafe(SOON), buffer=True, response_class=Checked
    ) as session:
        response = await session.get("/")

        assert b"done" == await response.read()
        assert b"done" == await response.content.read()
        assert 2 == RequestLog.of(response).total_attempts


async def test_buffered_body_is_there_when_the_response_is_gone(serve):
    """A method that reads may outlive the response, and one that is released."""
    url = await serve([sized(BODY)])
    async with build(url, RetryStrategy.failsafe(), buffer=True) as session:
        async with session.get("/") as released:
            pass
        read = (await session.get("/")).read
        gone = await read()

        assert BODY.decode() == await released.text()
        assert BODY == gone


@pytest.mark.parametrize("delta", [-1, 0, 1])
@pytest.mark.parametrize("answer", ANSWERS)
async def test_limit_around_the_length_of_the_body(serve, answer, delta):
    """A body one byte off the limit is neither waited for in vain nor cut."""
    url = await serve(sent(answer))
    strategy = WhileBusy(len(BODY) + delta)
    async with build(url, strategy) as session:
        response = await session.get("/")

        assert [BODY[: len(BODY) + delta]] == [seen[2] for seen in strategy.seen]
        assert BODY == await response.read()


async def test_no_more_is_waited_for_than_is_wanted(serve):
    """A stream that goes on is handed over once the strategy has seen enough."""
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    url = await serve([head + chunk(b"12345"), 3600.0])
    strategy = WhileBusy(5)
    async with build(url, strategy) as session:
        async with session.get("/") as response:
            assert b"12345" == await response.content.readany()

        assert [b"12345"] == [seen[2] for seen in strategy.seen]
        assert_nothing_is_held(session)


@pytest.mark.parametrize("buffer_response", [False, True])
@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", HEAD + b"Content-Length: 5\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
        ("GET", HEAD + b"Content-Length: 0\r\n\r\n"),
        ("GET", HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ],
)
async def test_answers_without_a_body(serve, method, answer, buffer_response):
    """There is nothing to wait for, and the content is empty, not None."""
    url = await serve([answer])
    strategy = WhileBusy()
    async with build(url, strategy, buffer=buffer_response) as session:
        for _ in range(2):  # all bodies that are empty share one stream
            response = await session.request(method, "/")
            assert b"" == await response.read()

        assert [b"", b""] == [seen[2] for seen in strategy.seen]
        assert 1 == len(session.connector._conns)


@pytest.mark.parametrize("buffer_response", [False, True])
async def test_web_socket_is_never_read(serving, buffer_response):
    """Its frames are for the caller, with any strategy that looks at bodies."""

    async def handle(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str("first")
        await socket.send_str(await socket.receive_str())
        await socket.close()
        return socket

    server = await serving(handle)
    strategy = WhileBusy()
    async with build(server.make_url("/"), strategy, buffer=buffer_response) as session:
        socket = await session.ws_connect("/")
        await socket.send_str("second")

        assert ["first", "second"] == [message.data async for message in socket]

    assert [(101, None, b"")] == strategy.seen


async def test_buffered_response_tells_traces_once(serve):
    """A trace of the session sees the body, as with ``read()``."""
    received = []
    trace = aiohttp.TraceConfig()

    async def on_chunk(session, context, params):
        received.append(params.chunk)

    trace.on_response_chunk_received.append(on_chunk)
    url = await serve([sized(b"done")])
    async with (
        build(
            url, RetryStrategy.failsafe(), buffer=True, trace_configs=[trace]
        ) as session,
        session.get("/") as response,
    ):
        await response.read()
        await response.content.read()

    assert [b"done"] == received


TEN = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
HALF = TEN + b"01234"


async def test_stream_says_each_time_which_limit_passed(serve):
    """A reader that goes on after the limit meets the same error again."""
    url = await serve([HALF, 3600.0])
    in_time = retrying(RetryStrategy.failsafe(), attempt_timeout=0.5)
    async with connected(url, in_time) as session, session.get("/") as response:
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
    async def read_whole(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await response.read()
        return response

    url = await serve([HALF, None])
    async with connected(url, read_whole) as session:
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
    async with connected(url, watch, retrying(SAFELY, max_total_attempts=3)) as session:
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
    async with connected(server.make_url("/"), twice) as session:
        response = await session.get("/")
        log = RequestLog.of(response)
        complete = log.is_complete
        await response.read()

    assert not complete
    assert 20 == log.response_length


LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"
LARGE = [LENGTH, *[b"x" * 50_000] * 4]
SLOW = [LENGTH, *(part for _ in range(4) for part in (b"x" * 50_000, 0.02))]


def cutting(url, after, **settings):
    fault = InjectedFault.cut_body(after=after)
    return connected(url, FaultInjectingClient.new_decorator(fault), **settings)


async def read_into(seen, content):
    async for part in content.iter_any():
        seen.append(part)


@pytest.mark.parametrize("parts", [LARGE, SLOW], ids=["at once", "slowly"])
@pytest.mark.parametrize("after", [0, 10, 70_000])
async def test_body_is_cut_where_it_should_be(serve, parts, after):
    """Exactly so many bytes arrive, then it fails, and the log says the same."""
    async with cutting(await serve(parts), after) as session, session.get("/") as got:
        seen = []
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await read_into(seen, got.content)
        log = RequestLog.of(caught.value)

    assert b"x" * after == b"".join(seen)
    assert (200, after, caught.value) == (
        log.response_status,
        log.response_length,
        log.response_cause,
    )


@pytest.mark.parametrize("parts", [LARGE, SLOW], ids=["at once", "slowly"])
async def test_connection_is_closed(serve, parts):
    """It is not used again, and not left over."""
    async with cutting(await serve(parts), 10) as session:
        with pytest.raises(aiohttp.ClientPayloadError):
            async with session.get("/") as response:
                await response.read()

        assert None is response.connection
        assert not session.connector._conns
        assert not session.connector._acquired


async def test_body_that_was_here_before_it_was_read_is_cut_all_the_same(serve):
    """The log, which had the end of the body, takes that back at once."""
    small = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
    with capture_logs() as logs:
        url = await serve([small, 0.01, b"orders"])
        async with cutting(url, 2) as session, session.get("/") as response:
            await until(lambda: logs[0].response_cause is not None)
            cause = logs[0].response_cause
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()

    assert "cut off after 2 bytes" in str(cause)
    assert 2 == logs[0].response_length
