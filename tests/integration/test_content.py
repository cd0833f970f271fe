"""Bodies from a real server: looked at or read whole, and left to the caller."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib

import aiohttp
import pytest
from aiohttp import web
from chains import connected, retrying

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
)

SOON = Backoff.fixed(0.01)
MEBIBYTE = 1024 * 1024
NUMBERS = [b'"%06d"' % n for n in range(20_000)]
LINES = [b", ".join(NUMBERS[n : n + 10]) for n in range(0, 20_000, 10)]
BODY = b"[" + b",\n".join(LINES) + b"]"
"""JSON in 2000 lines, 200 KB: more than a stream holds before it stops reading."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class WhileBusy(RetryStrategyWithContent):
    """Keeps what it was shown; retries failures, and bodies that begin so."""

    def __init__(self, max_content_length=1024):
        self.max_content_length = max_content_length
        self.seen = []

    def should_retry(self, ctx, cause, content):
        self.seen.append((ctx.log.response_status, cause, content))
        return SOON if content is None or content.startswith(b"busy") else None


def sized(body, *headers):
    """Write a response whose body has a length."""
    length = b"Content-Length: %d" % len(body)
    return HEAD + b"\r\n".join([length, *headers]) + b"\r\n\r\n" + body


def chunk(data):
    """Write an HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunked(pieces, *headers):
    """Write a response whose body comes in chunks."""
    lines = [b"Transfer-Encoding: chunked", *headers]
    head = HEAD + b"\r\n".join(lines) + b"\r\n\r\n"
    return head + b"".join(map(chunk, pieces)) + b"0\r\n\r\n"


def pieces_of(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


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


async def joined(iterator):
    return b"".join([part async for part in iterator])


async def in_reads(content):
    parts = [b"1"]
    while parts[-1]:
        parts.append(await content.read(1000))
    return b"".join(parts[1:])


WAYS = {
    "read": lambda response: response.read(),
    "text": lambda response: response.text(),
    "json": lambda response: response.json(),
    "content.read": lambda response: response.content.read(),
    "content.read(n)": lambda response: in_reads(response.content),
    "readexactly": lambda response: response.content.readexactly(len(BODY)),
    "iter_chunked": lambda response: joined(response.content.iter_chunked(3000)),
    "iter_any": lambda response: joined(response.content.iter_any()),
    "lines": lambda response: joined(response.content),
}


def expected_from(way):
    return {"text": BODY.decode(), "json": json.loads(BODY)}.get(way, BODY)


def build(url, strategy, *, attempts=10, limit=None, buffer=False, **options):
    """Build a session with settings of retries, and options of its own."""
    return connected(
        url,
        retrying(
            strategy,
            max_total_attempts=attempts,
            attempt_timeout=limit,
            buffer_response=buffer,
        ),
        **options,
    )


def assert_nothing_is_held(session):
    assert not session.connector._acquired


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("limit", [1, 100_000, MEBIBYTE, None])
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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("answer", ANSWERS)
async def test_buffered_body_is_at_its_end_once_read(serve, answer, way):
    """The stream has it until it is read, in any way; the response has it for good."""
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
        assert expected_from(way) == body
        assert BODY == again
        assert b"" == rest

    assert BODY.decode() == await response.text()


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


@pytest.mark.parametrize("limit", [1, 6999, 7000, 7001, 100_000, MEBIBYTE, None])
async def test_caller_sees_where_chunks_ended(serve, limit):
    """``iter_chunks()`` tells the same ends of HTTP chunks as without us."""
    url = await serve(in_parts(ANSWERS["chunked"]))
    ends, position = [], 0
    async with build(url, WhileBusy(limit or 1), buffer=limit is None) as session:
        response = await session.get("/")
        async for data, is_end in response.content.iter_chunks():
            position += len(data)
            ends += [position] if is_end else []

    assert [*range(7000, len(BODY), 7000), len(BODY)] == ends


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


FAILURES = {
    "stalls": ([HEAD + b"Content-Length: 9\r\n\r\nbusy", 3600.0], TimeoutError),
    "silent": ([HEAD + b"Content-Length: 9\r\n\r\n", 3600.0], TimeoutError),
    "truncated": (
        [HEAD + b"Content-Length: 9\r\n\r\nbusy", 0.01, None],
        aiohttp.ClientPayloadError,
    ),
    "truncated chunk": (
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nbusy", 0.01, None],
        aiohttp.ClientPayloadError,
    ),
    "bad gzip": (
        [HEAD + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n", b"not gzip."],
        aiohttp.ClientPayloadError,
    ),
}


@pytest.mark.parametrize("strategy", [WhileBusy, RetryStrategy.failsafe])
@pytest.mark.parametrize("failure", FAILURES)
async def test_failure_of_the_body_is_a_failed_attempt(serve, failure, strategy):
    """It is retried on a new connection, and the log keeps the status that came."""
    answer, kind = FAILURES[failure]
    url = await serve(answer, [sized(b"done")])
    buffer = strategy is not WhileBusy
    async with build(url, strategy(), limit=0.5, buffer=buffer) as session:
        response = await session.get("/")
        first, last = RequestLog.of(response).children

        assert b"done" == await response.read()
        assert isinstance(first.response_cause, kind)
        assert 200 == first.response_status == last.response_status
        assert first.is_complete
        assert last.response_cause is None
        assert_nothing_is_held(session)


@pytest.mark.parametrize("failure", FAILURES)
async def test_strategy_is_asked_about_a_failure_of_the_body(serve, failure):
    """It gets the error as its cause, the one that the log has, and no content."""
    answer, _ = FAILURES[failure]
    url = await serve(answer, [sized(b"done")])
    strategy = WhileBusy()
    async with build(url, strategy, limit=0.5) as session:
        response = await session.get("/")
        first, _ = RequestLog.of(response).children

    (_, cause, _), _ = strategy.seen
    assert [(200, cause, None), (200, None, b"done")] == strategy.seen
    assert repr(cause) == repr(first.response_cause)


async def test_last_failure_of_the_body_is_raised(serve):
    """The caller gets the error from the call, with its log, not later."""
    url = await serve(FAILURES["truncated"][0])
    async with build(
        url, RetryStrategy.failsafe(SOON), attempts=2, buffer=True
    ) as session:
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await session.get("/")
        log = RequestLog.of(caught.value)

        assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
        assert 2 == log.total_attempts
        assert caught.value is log.response_cause
        assert_nothing_is_held(session)


async def test_failure_after_what_was_looked_at_is_the_callers(serve):
    """A part that the strategy did not want to see fails as in aiohttp."""
    url = await serve([HEAD + b"Content-Length: 9\r\n\r\nfine", 0.05, None])
    async with build(url, WhileBusy(4)) as session:
        response = await session.get("/")
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await response.read()

    assert caught.value is RequestLog.of(response).response_cause


async def test_order_whose_answer_was_cut_is_not_repeated(serve):
    """The server has done the work: ``failsafe`` does not send a POST again for it."""
    url = await serve(FAILURES["truncated"][0], [sized(b"done")])
    async with build(url, RetryStrategy.failsafe(SOON), buffer=True) as session:
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await session.post("/")

    assert RetryStopReason.NO_RETRY == RequestLog.of(caught.value).stop_reason


@pytest.mark.parametrize("limit", [1, MEBIBYTE, 16 * MEBIBYTE])
async def test_pool_of_one_and_large_error_bodies(serve, limit):
    """Each attempt gives its connection back before the next one asks for it."""
    large = sized(b"busy" + b"x" * (8 * MEBIBYTE))
    url = await serve([large], [large], [large], [sized(b"done")])
    strategy = WhileBusy(max(limit, 4))
    async with asyncio.timeout(20):
        async with build(
            url, strategy, connector=aiohttp.TCPConnector(limit=1)
        ) as session:
            async with session.get("/") as response:
                assert b"done" == await response.read()

            assert 4 == RequestLog.of(response).total_attempts
            assert_nothing_is_held(session)


async def test_rest_of_a_large_body_waits_for_the_caller(serve):
    """Looking at the beginning does not draw the rest into memory."""
    url = await serve([sized(b"x" * (32 * MEBIBYTE))])
    async with build(url, WhileBusy(MEBIBYTE)) as session:
        response = await session.get("/")
        await asyncio.sleep(0.2)
        arrived = response.content.total_bytes
        length = 0
        async for data in response.content.iter_any():
            length += len(data)

    assert arrived < 4 * MEBIBYTE
    assert 32 * MEBIBYTE == length


async def test_bomb_is_looked_at_in_bounded_memory(serve):
    """A kilobyte that unpacks to a megabyte, many times over, is not unpacked."""
    packer = zlib.compressobj(1, wbits=31)
    zeros = bytes(MEBIBYTE)
    packed = [
        packer.compress(zeros) + packer.flush(zlib.Z_SYNC_FLUSH) for _ in range(300)
    ]
    paced = [part for piece in packed for part in (chunk(piece), 0.002)]
    head = HEAD + GZIP + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    url = await serve([head, *paced, chunk(packer.flush()), b"0\r\n\r\n"])
    strategy = WhileBusy(64 * 1024)
    tracemalloc.start()
    try:
        async with build(url, strategy) as session, session.get("/"):
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert [bytes(64 * 1024)] == [seen[2] for seen in strategy.seen]
    assert peak < 16 * MEBIBYTE


@pytest.mark.parametrize("way", ["read", "iter_any", "iter_chunked"])
async def test_large_compressed_body(serve, way):
    """A body that aiohttp unpacks piece by piece goes on where looking stopped."""
    body = BODY * 40
    url = await serve([sized(gzip.compress(body, 1), GZIP)])
    strategy = WhileBusy(MEBIBYTE)
    async with build(url, strategy) as session:
        response = await session.get("/")

        assert [body[:MEBIBYTE]] == [seen[2] for seen in strategy.seen]
        assert body == await WAYS[way](response)
        assert len(body) == RequestLog.of(response).response_length


@pytest.mark.parametrize("limit", [20_000, 50_000])
async def test_tiny_chunks(serve, limit):
    """A body that comes byte by byte, of which aiohttp keeps only so many, is whole."""
    body = b"0123456789" * 4000
    url = await serve([chunked(pieces_of(body, 1))])
    strategy = WhileBusy(limit)
    async with build(url, strategy) as session:
        response = await session.get("/")

        assert [body[:limit]] == [seen[2] for seen in strategy.seen]
        assert body == await response.read()


async def test_concurrent_calls_do_not_mix(serving):
    """One strategy serves many calls at once; each sees its own body."""
    counts = {}

    async def handle(request):
        key = request.query["n"]
        counts[key] = counts.get(key, 0) + 1
        state = "busy" if counts[key] < 3 else "done"
        return web.Response(body=f"{state} {key} ".encode() + b"x" * 50_000)

    server = await serving(handle)
    strategy = WhileBusy(100_000)
    async with build(
        server.make_url("/"), strategy, connector=aiohttp.TCPConnector(limit=7)
    ) as session:

        async def call(n):
            async with session.get("/", params={"n": n}) as response:
                return await response.read()

        bodies = await asyncio.gather(*(call(n) for n in range(200)))
        assert_nothing_is_held(session)

    assert [b"done %d " % n + b"x" * 50_000 for n in range(200)] == bodies
    assert {3} == set(counts.values())
    assert 600 == len(strategy.seen)


@pytest.mark.parametrize("where", ["session", "request"])
@pytest.mark.parametrize("how", ["bool", "callable"])
async def test_raise_for_status_comes_once_at_the_end(serve, where, how):
    """The strategy sees each status; what is refused is the last response, readable."""
    error = sized(b"busy").replace(b"200 OK", b"503 Down")
    last = error.replace(b"busy", b"gone")
    url = await serve([error], [last])
    refused = []

    async def refuse(response):
        refused.append(await response.text())
        response.raise_for_status()

    option = {"raise_for_status": refuse if how == "callable" else True}
    strategy = WhileBusy()
    async with build(
        url, strategy, **(option if where == "session" else {})
    ) as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await session.get("/", **(option if where == "request" else {}))
        log = RequestLog.of(caught.value)

        assert 503 == caught.value.status
        assert [(503, None, b"busy"), (503, None, b"gone")] == strategy.seen
        assert (["gone"] if how == "callable" else []) == refused
        assert [503, 503] == [attempt.response_status for attempt in log.children]
        assert_nothing_is_held(session)


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


async def test_redirects_are_followed_before(serve):
    """A strategy is shown the body of the last hop."""
    url = await serve(
        [b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 4\r\n\r\nbusy"],
        [sized(b"done")],
    )
    strategy = WhileBusy()
    async with build(url, strategy) as session:
        await session.get("/")

    assert [b"done"] == [seen[2] for seen in strategy.seen]


@pytest.mark.parametrize("buffer_response", [False, True])
async def test_mocked_bodies(aioresponses_mock, buffer_response):
    """Answers of aioresponses are looked at like any other."""
    url = "http://shop.example/"
    aioresponses_mock.get(url, body=b"busy")
    aioresponses_mock.get(url, body=b"done")
    strategy = WhileBusy()
    async with build(None, strategy, buffer=buffer_response) as session:
        response = await session.get(url)

        assert b"done" == await response.content.read()
        assert (b"done" if buffer_response else b"") == await response.read()

    assert [b"busy", b"done"] == [seen[2] for seen in strategy.seen]
