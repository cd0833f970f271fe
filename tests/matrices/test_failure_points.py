"""Broken off at any byte: every attempt is one request, nothing is done twice."""

import asyncio
import contextlib
import io
import itertools

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import SAFELY, connected, retrying
from fault_server import OK, End, Fault, FaultServer, Read, answer, cut, response

from aioretry_smithy import IDEMPOTENT_METHODS, capture_logs

METHODS = ["GET", "PUT", "DELETE", "POST", "PATCH"]
BODY = b"0123456789" * 20
ANSWER = response(200, BODY)
HEAD_ENDS = len(ANSWER) - len(BODY)
RESPONSE_POINTS = {
    "before the first byte": 0,
    "after the first byte": 1,
    "in the status line": 12,
    "in the headers": 30,
    "before the end of the headers": HEAD_ENDS - 1,
    "after the headers": HEAD_ENDS,
    "in the body": HEAD_ENDS + 100,
    "before the last byte": len(ANSWER) - 1,
    "at the end": len(ANSWER),
}
REQUEST_POINTS = {
    "after the first byte": 1,
    "in the request line": 9,
    "in the headers": 60,
    "in the body": 1 << 17,
}
LARGE = b"x" * (1 << 20)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GARBAGE = {
    "status line": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "status": b"HTTP/1.1 2x0 OK\r\n\r\n",
    "header": b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    "line too long": b"HTTP/1.1 200 OK\r\nX: " + b"y" * (1 << 16) + b"\r\n\r\n",
    "chunk size": CHUNKED + b"zz\r\nabc\r\n",
    "nothing but zeros": bytes(1 << 10),
}

each_method = pytest.mark.parametrize("method", METHODS)
either_kind_of_method = pytest.mark.parametrize("method", ["PUT", "POST"])
# Point and end make the error, on which and the method it depends what is repeated.
each_end = pytest.mark.parametrize("end", [End.CLOSE, End.RESET])


def build(server, **settings):
    return connected(server.url, retrying(SAFELY, **settings))


async def call(session, method, **options):
    """Make a call and read all of the answer; return its log, whatever happens."""
    with capture_logs() as logs, contextlib.suppress(aiohttp.ClientError, TimeoutError):
        async with session.request(method, "/", **options) as got:
            await got.read()
    (log,) = logs
    assert not session.connector._acquired
    assert log.is_complete
    return log


def may_be_repeated(method):
    return method in IDEMPOTENT_METHODS


@pytest.mark.parametrize("point", RESPONSE_POINTS)
@each_end
@each_method
async def test_response_is_cut(method, end, point):
    """A failure before the end of the headers is an attempt, later it is the caller's.

    One that may change something twice is never sent twice.
    """
    at = RESPONSE_POINTS[point]
    fault = cut(ANSWER[:at], end=end)
    async with FaultServer([fault]) as server, build(server) as session:
        log = await call(session, method, data=b"abc")

    again = at < HEAD_ENDS and may_be_repeated(method)
    assert 1 + again == len(server.requests) == log.total_attempts
    assert 1 + again == server.processed
    if at < HEAD_ENDS:
        assert (200 if again else None) == log.response_status
    else:
        assert 200 == log.response_status
        assert (at < len(ANSWER)) is isinstance(log.response_cause, aiohttp.ClientError)


@pytest.mark.parametrize("point", REQUEST_POINTS)
@each_end
@each_method
async def test_request_is_cut(method, end, point):
    """Half an upload did nothing; even so, only what may be repeated is."""
    fault = cut(read=REQUEST_POINTS[point], end=end)
    async with FaultServer([fault]) as server, build(server) as session:
        log = await call(session, method, data=LARGE)

    again = may_be_repeated(method)
    assert 1 + again == len(server.requests) == log.total_attempts
    assert int(again) == server.processed
    assert [LARGE] * again == server.bodies


@pytest.mark.parametrize("point", ["before", "during", "headers", "body"])
@either_kind_of_method
async def test_server_stalls(method, point):
    """Silence, wherever it begins, ends an attempt by its timeout."""
    faults = {
        "before": Fault(read=1, send=(), end=End.STALL),
        "during": Fault(send=(ANSWER[:12],), end=End.STALL),
        "headers": Fault(send=(ANSWER[: HEAD_ENDS - 1],), end=End.STALL),
        "body": Fault(send=(ANSWER[: HEAD_ENDS + 1],), end=End.STALL),
    }
    limits = ClientTimeout(sock_read=0.3)
    async with FaultServer([faults[point]]) as server, build(server) as session:
        log = await call(session, method, data=b"abc", timeout=limits)

    again = point != "body" and may_be_repeated(method)
    assert 1 + again == len(server.requests) == log.total_attempts
    assert again is (log.response_cause is None)


@pytest.mark.parametrize("kind", GARBAGE)
@either_kind_of_method
async def test_answer_is_garbage(method, kind):
    """An answer that is no HTTP was an answer all the same: it may have been done."""
    faults = [Fault(send=(GARBAGE[kind],), end=End.CLOSE)]
    async with FaultServer(faults) as server, build(server) as session:
        log = await call(session, method, data=b"abc")

    again = may_be_repeated(method)
    assert 1 + again == server.processed == log.total_attempts
    assert again is (log.response_cause is None)


@pytest.mark.parametrize("chunks", [b"zz\r\nabc\r\n", b"5\r\nabc"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_chunks_are_garbage(method, chunks):
    """The status was good and the body is not: the caller is told, nothing repeated."""
    faults = [Fault(send=(CHUNKED, 0.01, chunks), end=End.CLOSE)]
    # aiohttp sees a bad chunk size after the headers, yet tells nobody but its timer.
    limits = ClientTimeout(total=0.5)
    async with FaultServer(faults) as server, build(server) as session:
        log = await call(session, method, data=b"abc", timeout=limits)

    assert 1 == server.processed == log.total_attempts
    assert isinstance(log.response_cause, aiohttp.ClientPayloadError | TimeoutError)


async def test_header_without_end():
    """The size of headers is limited: the attempt fails instead of growing."""
    endless = itertools.chain([b"HTTP/1.1 200 OK\r\nX: "], itertools.repeat(b"y" * 99))
    async with FaultServer([Fault(send=endless)]) as server, build(server) as session:
        log = await call(session, "GET")

    assert 2 == len(server.requests) == log.total_attempts
    assert 200 == log.response_status


@pytest.mark.parametrize("count", [0, 1, 5, 9])
async def test_fails_so_often_and_works_then(count):
    """Each of the attempts is on the wire once, with any failure."""
    kinds = [answer(503), cut(end=End.CLOSE), cut(end=End.RESET)]
    faults = itertools.islice(itertools.cycle(kinds), count)
    async with FaultServer(faults) as server, build(server) as session:
        log = await call(session, "PUT", data=b"abc")

    assert 1 + count == len(server.requests) == log.total_attempts
    assert [b"abc"] * (1 + count) == server.bodies
    assert 200 == log.response_status


@each_method
async def test_request_timeout_on_an_idle_connection(method):
    """A 408 that was on its way before the request is no answer to it."""
    pushed = response(408, b"", "Connection: close")
    faults = [Fault(send=(OK, 0.01, pushed), end=End.CLOSE)]
    async with FaultServer(faults) as server, build(server) as session:
        await call(session, method, data=b"abc")
        await asyncio.sleep(0.05)
        log = await call(session, method, data=b"abc")

    assert 200 == log.response_status
    assert 2 == server.processed


@each_method
async def test_request_timeout_answers_the_next_request(method):
    """A 408 that crosses the request is taken for its answer, though nobody saw it."""
    pushed = response(408, b"", "Connection: close")
    faults = [answer(200), Fault(1, (pushed,), End.CLOSE)]
    async with FaultServer(faults) as server, build(server) as session:
        await call(session, method, data=b"abc")
        log = await call(session, method, data=b"abc")

    again = may_be_repeated(method)
    assert (200 if again else 408) == log.response_status
    assert 1 + again == log.total_attempts == len(server.requests) - 1
    assert 1 + again == server.processed


@each_end
@each_method
async def test_connection_is_ended_before_the_request(method, end):
    """A connection that was accepted and dropped may have carried the request."""
    async with FaultServer(connections=[end]) as server, build(server) as session:
        log = await call(session, method, data=b"abc")

    assert server.connected == log.total_attempts
    assert server.processed <= 1
    assert may_be_repeated(method) <= (200 == log.response_status)


async def test_early_answer_keeps_the_count():
    """Answered before the upload: one request for each attempt, one body at the end."""
    faults = [Fault(Read.HEAD, (response(503),))] * 3
    async with FaultServer(faults) as server, build(server) as session:
        log = await call(session, "PUT", data=io.BytesIO(b"x" * (8 << 20)))

    assert 4 == len(server.requests) == log.total_attempts
    assert 1 == server.processed
