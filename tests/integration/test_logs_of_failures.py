"""Each error leads to the log of its call, which shows what was sent and raised."""

import asyncio
import json
import re
from contextlib import suppress

import aiohttp
import pytest
from aiohttp.http_exceptions import HttpProcessingError
from chains import NOW, SAFELY, connected, decorated, log_of, retrying
from fault_server import FaultServer
from fault_server import answer as answer_of

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    rpc,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
LIMIT = {"timeout": aiohttp.ClientTimeout(total=0.4)}
IN_TIME = "attempt 1 had 0.400 s, which passed while its body was read"


def answer(body, status="200 OK", content_type="application/json"):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
    return [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body]


async def iterate(response):
    async for _ in response.content.iter_any():
        pass


async def read_lines(response):
    async for _ in response.content:
        pass


READS = {
    "read": lambda response: response.read(),
    "text": lambda response: response.text(),
    "json": lambda response: response.json(),
    "content.read": lambda response: response.content.read(),
    "content.readexactly": lambda response: response.content.readexactly(10),
    "content.iter_any": iterate,
    "content.readline": read_lines,
}
each_read = pytest.mark.parametrize("read", READS.values(), ids=READS)


IN_AN_ATTEMPT = [retrying(0.01, attempt_timeout=0.4)]
FAILURES = {
    "attempt": ([3600.0], IN_AN_ATTEMPT, {}, AttemptTimeoutError, IN_TIME),
    "call": ([3600.0], [], LIMIT, ResponseTimeoutError, "the call had 0.400 s"),
    "break": ([0.02, None], [], {}, aiohttp.ClientPayloadError, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("failure", FAILURES)
@each_read
async def test_body_that_fails(serve, read, failure):
    """The error says which limit it was, if any, and the log knows at once."""
    rest, decorators, options, error, said = FAILURES[failure]
    url = await serve([HEAD + b"01234", *rest])
    session = connected(url, *decorators, **options)
    async with session, session.get("/") as response:
        with pytest.raises(error, match=said) as caught:
            await read(response)
        log = RequestLog.of(caught.value)

        assert log is RequestLog.of(response)
        assert log.is_complete
        assert {caught.value} == {each.response_cause for each in (log, *log.children)}


async def read_exactly(response):
    await response.content.readexactly(100)


@pytest.mark.slow
async def test_failed_body_notes_the_attempts(serve):
    """The caller's exception has notes on the attempts, with the time each took."""
    url = await serve([BUSY], [HEAD + b"01234", 3600.0])
    async with connected(url, *IN_AN_ATTEMPT) as session:
        response = await session.get("/")
        with pytest.raises(AttemptTimeoutError) as caught:
            await response.read()
    first, second = caught.value.__notes__

    assert re.match(r"attempt 1: 503 Busy, \d\.\d{3} s", first)
    assert re.match(
        r"attempt 2: 200 OK, attempt 2 had 0\.400 s, which passed while its body was"
        r" read \(attempt_timeout=None for a stream\), \d\.\d{3} s",
        second,
    )


@pytest.mark.slow
async def test_status_that_the_caller_raises_for(serve):
    """The commonest idiom of all leads to the log."""
    url = await serve(answer(b"{}", "404 Not Found"))
    async with connected(url) as session, session.get("/") as response:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            response.raise_for_status()

    assert RequestLog.of(response) is RequestLog.of(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "content_type", "error"),
    [
        pytest.param(b"<p>", "text/html", aiohttp.ContentTypeError, id="type"),
        pytest.param(b"<p>", "application/json", json.JSONDecodeError, id="syntax"),
        pytest.param(b"\xff", "application/json", UnicodeDecodeError, id="charset"),
    ],
)
async def test_body_that_is_no_json(serve, body, content_type, error):
    """An error in a body that came whole leads to the log."""
    url = await serve(answer(body, content_type=content_type))
    async with connected(url) as session:
        response = await session.get("/")
        with pytest.raises(error) as caught:
            await response.json()

    assert RequestLog.of(response) is RequestLog.of(caught.value)


async def wrapping(response):
    try:
        await response.json()
    except ValueError as error:
        raise LookupError("no answer") from error


@pytest.mark.slow
async def test_failure_that_was_wrapped(serve):
    """A library's exception around that of a response leads to the log."""
    url = await serve(answer(b"<p>"))
    async with connected(url) as session, session.get("/") as response:
        with pytest.raises(LookupError) as caught:
            await wrapping(response)

    assert RequestLog.of(response) is RequestLog.of(caught.value)


@pytest.mark.slow
async def test_handshake_that_fails(serve):
    """A server that wants no web socket has answered a call, which has a log."""
    url = await serve(answer(b"no", "403 Forbidden"))
    async with connected(url, retrying(0.01)) as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await session.ws_connect("/")

    assert 403 == RequestLog.of(caught.value).response_status


@pytest.mark.slow
async def test_failure_of_another_response_has_no_log(serve):
    """A plain session's response leads nowhere."""
    url = await serve(answer(b"<p>"))
    async with aiohttp.ClientSession(url) as session, session.get("/") as response:
        with pytest.raises(ValueError, match="Expecting value") as caught:
            await response.json()

    assert RequestLog.of(caught.value, None) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "decorators", [[], [retrying(0.01)]], ids=["plain", "retrying"]
)
async def test_every_view_gives_the_time_up_to_the_failure(serve, decorators):
    """A body that ran out of time took that time, whenever its headers came."""
    url = await serve([HEAD + b"01234", 3600.0])
    async with connected(url, *decorators, **LIMIT) as session:
        response = await session.get("/")
        with pytest.raises(ResponseTimeoutError):
            await response.read()
    log = RequestLog.of(response)
    said = "200 OK, the call had 0.400 s, which passed while its body was read"

    for line in log.render().splitlines():
        assert said in line
        # An attempt on a busy machine begins well after its call.
        assert float(re.findall(r"\d\.\d+", line.partition(said)[2])[0]) > 0.2
    assert log.to_dict()["total_duration"] >= 0.39
    assert said.removeprefix("200 OK, ") in log.to_dict()["response_cause"]


# A line that is too long was a ValueError before aiohttp 3.14.
DISAPPOINTMENTS = asyncio.IncompleteReadError, HttpProcessingError, ValueError


async def read_without_a_separator(response):
    await response.content.readuntil(b"")


async def read_a_line_that_is_too_long(response):
    response.content._high_water = 1
    await response.content.readline()


async def parse(content):
    return await content.readexactly(100)


class Reader:
    """Keeps a response, as wrappers of clients do."""

    def __init__(self, response):
        self._response = response

    async def read(self):
        await self._response.content.readexactly(100)


READS_OF_WHOLE_BODIES = {
    "readexactly": read_exactly,
    "readuntil": read_without_a_separator,
    "readline": read_a_line_that_is_too_long,
    "a function that has the stream": lambda response: parse(response.content),
    "an object that has the response": lambda response: Reader(response).read(),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "read", READS_OF_WHOLE_BODIES.values(), ids=READS_OF_WHOLE_BODIES
)
async def test_body_that_came_with_its_headers_and_disappoints(serve, read):
    """It never was waited for, and its errors lead to the log all the same."""
    url = await serve(answer(b"short"))
    async with connected(url, retrying(0.01)) as session:
        responses = [await session.get("/") for _ in range(2)]
        for response in responses:
            with pytest.raises(DISAPPOINTMENTS) as caught:
                await read(response)
            log = RequestLog.of(caught.value)

            assert RequestLog.of(response) is log
            assert (200, None) == (log.response_status, log.response_cause)


@pytest.mark.slow
async def test_empty_body_that_disappoints(serve):
    """All empty bodies share one stream: the code that read it tells which it was."""
    url = await serve([b"HTTP/1.1 204 No Content\r\n\r\n"])
    async with connected(url) as session, session.get("/") as response:
        with pytest.raises(asyncio.IncompleteReadError) as caught:
            await response.content.readexactly(100)

        assert RequestLog.of(response) is RequestLog.of(caught.value)

        async with session.get("/") as other:
            assert other.content is response.content
            assert RequestLog.of(caught.value, None) is None


@pytest.mark.slow
async def test_log_that_is_asked_for_where_only_the_stream_is_known(serve):
    """The code that waits for it has the response."""
    url = await serve(answer(b"short"))
    logs = []

    async def parse_and_report(content):
        try:
            await content.readexactly(100)
        except asyncio.IncompleteReadError as error:
            logs.append(RequestLog.of(error))

    async with connected(url) as session, session.get("/") as response:
        await parse_and_report(response.content)

        assert [RequestLog.of(response)] == logs


HANGS_UP = [None]
each_chain_in_vain = pytest.mark.parametrize(
    "decorators",
    [[], [retrying(0.01, max_total_attempts=1)], [DecoratingClient]],
    ids=["plain", "retrying", "decorated"],
)


def built(url, *decorators):
    """Build a session that sends the version of its program."""
    builder = SessionBuilder(url, headers={"X-Version": "1"})
    return decorated(builder, *decorators).build()


async def log_in_vain(session, **options):
    with capture_logs() as logs, suppress(aiohttp.ClientError, TimeoutError):
        await session.get("/", **options)
    return logs[0]


def versions(log):
    """Return the versions that the logs of a call and its attempts show."""
    return [each.request_headers.get("X-Version") for each in (log, *log.children)]


@each_chain_in_vain
async def test_headers_that_change_after_the_call(serve, decorators):
    """The log is that of the call: it shows nothing that came later."""
    async with built(await serve(HANGS_UP), *decorators) as session:
        with pytest.raises(aiohttp.ClientError) as caught:
            await session.get("/", headers={"X-Call": "a"})
        session.headers["X-Version"] = "2"
        session.headers["X-Later"] = "yes"
        log = RequestLog.of(caught.value)

    assert {"1"} == {*versions(log)}
    assert "X-Later" not in log.request_headers
    assert "a" == log.request_headers["X-Call"]
    assert "1" == log.to_dict()["request_headers"]["X-Version"]


@each_chain_in_vain
async def test_headers_that_are_taken_away_while_the_call_is_under_way(
    serve, decorators
):
    """They were sent."""
    async with built(await serve([0.05, None]), *decorators) as session:
        with capture_logs() as logs:
            call = asyncio.ensure_future(session.get("/"))
            await asyncio.sleep(0.02)
            del session.headers["X-Version"]

            assert "1" == logs[0].request_headers["X-Version"]
            with pytest.raises(aiohttp.ClientError):
                await call

    assert {"1"} == {*versions(logs[0])}


async def test_headers_that_change_between_two_attempts(serve):
    """Each attempt shows its own, the call those of the first."""

    def upgrade(status, cause):
        session.headers["X-Version"] = "2"
        return NOW

    retries = retrying(RetryStrategy.on_status(upgrade), max_total_attempts=3)
    session = built(await serve(HANGS_UP), retries)
    async with session:
        log = await log_in_vain(session)
        session.headers["X-Version"] = "3"

    assert ["1", "1", "2", "2"] == versions(log)


@pytest.fixture
async def server():
    async with FaultServer() as server:
        yield server


async def raise_for_status(request, handler):
    """Raise as middlewares of many clients do."""
    response = await handler(request)
    response.raise_for_status()
    return response


async def translate(request, handler):
    """Raise an exception of one's own, which says where it comes from."""
    try:
        return await raise_for_status(request, handler)
    except aiohttp.ClientResponseError as error:
        raise ApiError(
            error.request_info,
            error.history,
            status=error.status,
            headers=error.headers,
        ) from ValueError("the body has no code")


class ApiError(aiohttp.ClientResponseError):
    """What a library raises for each status."""


@pytest.mark.parametrize("middleware", [raise_for_status, translate])
@pytest.mark.parametrize(
    ("status", "sent", "counted"), [(404, 1, (1, 0)), (503, 3, (0, 3))]
)
async def test_middleware_that_raises(server, middleware, status, sent, counted):
    """Strategy and breaker judge by the status."""
    server.then = answer_of(status)
    breaker = CircuitBreaker("shop")
    client = connected(
        server.url,
        CircuitBreakerClient.new_decorator(breaker),
        retrying(SAFELY, max_total_attempts=3),
        middlewares=[middleware],
    )
    log = await log_of(client, "/orders")

    assert (sent, sent) == (log.total_attempts, len(server.requests))
    assert counted == (breaker.event_count.success, breaker.event_count.failure)


@pytest.mark.parametrize(("status", "sent"), [(404, 1), (503, 3)])
async def test_function_around_a_session_that_raises(server, status, sent):
    """A plain session, inside a function that is retried."""
    server.then = answer_of(status)
    retry = RetryingRpcClient.new_decorator(SAFELY, max_total_attempts=3)

    @rpc(retry, idempotent=True)
    async def fetch():
        async with aiohttp.ClientSession(raise_for_status=True) as client:
            await client.get(server.url)

    with pytest.raises(aiohttp.ClientResponseError):
        await fetch()

    assert sent == len(server.requests)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("status", "sent"), [(407, 1), (403, 1), (404, 1), (302, 1), (503, 3), (429, 3)]
)
async def test_tunnel_that_a_proxy_refuses(server, method, status, sent):
    """Wrong credentials stay wrong; one that is busy has passed nothing on."""
    server.then = answer_of(status)
    client = connected(None, retrying(SAFELY, max_total_attempts=3))
    log = await log_of(
        client, "https://shop.test/orders", method=method, proxy=server.url
    )

    assert aiohttp.ClientHttpProxyError is type(log.response_cause)
    assert (sent, sent) == (log.total_attempts, len(server.requests))
    assert False is log.sent
    if sent == 1:
        assert RetryStopReason.NO_RETRY == log.stop_reason
