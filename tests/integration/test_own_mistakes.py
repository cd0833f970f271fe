"""Mistakes of callers are told as such, and so is a forgotten ``await``."""

import asyncio
import io
from http.cookies import CookieError

import aiohttp
import pytest
from aiohttp import web
from chains import NOW, connected, retrying
from stream_server import StreamServer

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    DecoratingClient,
    LoggingClient,
    RequestLog,
    RetryingClient,
    RetryingRpcClient,
    RetryLimiter,
    RetryRule,
    RetrySafety,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    client_decorator,
    is_unprocessed,
    retry_safety,
    rpc,
)

ERRORS = [
    FileNotFoundError(2, "no such file"),
    ConnectionResetError(104, "reset"),
    TimeoutError("the database was slow"),
    RecursionError("too deep"),
    OverflowError("too large"),
    CookieError("illegal key"),
    aiohttp.ClientConnectionError("another server"),
    aiohttp.ClientPayloadError("another body"),
    aiohttp.ServerDisconnectedError(),
    type("OwnError", (Exception,), {})("own"),
    ExceptionGroup("tasks", [ConnectionResetError(104, "reset")]),
]
every_error = pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)


class Limiter(RetryLimiter):
    """A limiter that counts what it is told."""

    def __init__(self):
        self.heard = []

    def acquire(self, ctx, cause):
        self.heard.append("acquire")
        return True

    def on_success(self, ctx):
        self.heard.append("success")

    def on_failure(self, ctx, cause):
        self.heard.append("failure")


@pytest.fixture
async def url(serving):
    """The URL of a server that takes everything."""

    async def answer(request):
        await request.read()
        return web.Response()

    return (await serving(answer)).make_url("/")


class Raising(io.BytesIO):
    """A file whose second chunk cannot be read."""

    def __init__(self, error):
        super().__init__(b"x" * (1 << 20))
        self._error = error

    def read(self, size=-1):
        if self.tell():
            raise self._error
        return super().read(size)


class Again:
    """An async iterable that starts afresh each time, and fails each time."""

    def __init__(self, error):
        self._error = error

    async def __aiter__(self):
        yield b"abc"
        raise self._error


def factory_of(error):
    def make():
        raise error

    return make


class RaisingWhenRead:
    """A cookie jar of the caller's own, or a collection, that fails."""

    def __init__(self, error):
        self._error = error

    def __iter__(self):
        raise self._error


BODIES = {
    "factory": lambda error: {"data": factory_of(error)},
    "json": lambda error: {"json": error},
    "generator": lambda error: {"data": aiter(Again(error))},
    "iterable": lambda error: {"data": Again(error)},
    "file": lambda error: {"data": Raising(error)},
    "part": lambda error: {"data": {"file": Raising(error)}},
    "cookies": lambda error: {"cookies": RaisingWhenRead(error)},
    "skipped": lambda error: {"skip_auto_headers": RaisingWhenRead(error)},
}


def raise_it(error):
    raise error


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
@every_error
async def test_nothing_is_retried_and_nobody_is_blamed(url, body, error):
    """One attempt; neither breaker nor limiter counts it, whatever the class."""
    breaker, limiter = CircuitBreaker("host"), Limiter()
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    session = connected(
        url,
        CircuitBreakerClient.new_decorator(breaker),
        RetryingClient.new_decorator(strategy, limiter=limiter),
        json_serialize=raise_it,
    )
    async with session:
        with pytest.raises(Exception) as caught:
            await session.put("/", **BODIES[body](error))

    assert 1 == len(RequestLog.of(caught.value).children)
    assert RetrySafety.NO is retry_safety(caught.value)
    assert 0 == breaker.event_count.total
    assert [] == limiter.heard


@pytest.fixture
async def refusing():
    """A server that answers one request, and refuses connections from then on.

    Yields its URL and what it got.
    """
    heard = []

    async def handle(reader, writer):
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        server.stop_listening()
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n")
        writer.write(b"Connection: close\r\n\r\n")

    async with StreamServer(handle) as server:
        yield server.url(), heard


def retrying_post(*decorators, **arguments):
    builder = SessionBuilder(**arguments)
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    retrying = RetryingClient.new_decorator(strategy, max_total_attempts=3)
    for decorator in (*decorators, retrying):
        builder.decorator(decorator)
    return builder.build()


async def refused_afterwards(request, send):
    (await send(request)).close()
    raise UnprocessedRequestError("what was to follow")


async def refused_before(request, send):
    raise UnprocessedRequestError("what was to go before")


def failed_future(*_, **__):
    future = asyncio.get_running_loop().create_future()
    future.set_exception(aiohttp.ServerDisconnectedError())
    return future


@rpc(response_timeout=0.01)
async def gateway(*_, **__):
    await asyncio.sleep(60.0)


@pytest.mark.parametrize("mock", [failed_future, gateway])
async def test_request_that_a_mock_failed_counts_as_sent(monkeypatch, mock):
    """Nobody can know, even if no module but this library's is in the traceback."""
    monkeypatch.setattr(aiohttp.ClientSession, "_request", mock)
    async with connected("http://a.example/", retrying()) as session:
        with pytest.raises((aiohttp.ServerDisconnectedError, TimeoutError)) as caught:
            await session.post("/")

    assert RequestLog.of(caught.value).sent


@pytest.mark.parametrize(
    ("middleware", "sent"), [(refused_afterwards, True), (refused_before, False)]
)
async def test_what_a_middleware_fails_with_once_it_has_an_answer_was_processed(
    refusing, middleware, sent
):
    """Its error says nothing about the request, which went out, as the log says."""
    url, heard = refusing
    async with retrying_post(middlewares=[middleware]) as session:
        with pytest.raises(UnprocessedRequestError) as caught:
            await session.post(url)

    log = RequestLog.of(caught.value)
    assert int(sent) == len(heard)
    assert (not sent) is is_unprocessed(caught.value)
    assert [sent] * (1 if sent else 3) == [each.sent for each in log.children]


@pytest.mark.parametrize("status", [307, 308])
async def test_redirect_of_a_body_that_was_read_is_permanent(serving, status):
    """The body is gone by the time that the server says where to."""
    heard = []

    async def redirect(request):
        heard.append(await request.read())
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    async def chunks():
        yield b"abc"

    server = await serving(redirect)
    async with retrying_post(base_url=server.make_url("/")) as session:
        with pytest.raises(aiohttp.ClientError) as factory:
            await session.put("/", data=chunks)
        with pytest.raises(aiohttp.ClientError) as one_shot:
            await session.put("/", data=chunks())

    assert [b"abc"] * 2 == heard
    for caught in (factory, one_shot):
        # Before 3.14 aiohttp asks the body again, which refuses that itself.
        is_ours = isinstance(caught.value, UnprocessedRequestError)
        safety = RetrySafety.MAYBE if is_ours else RetrySafety.NO
        assert safety is retry_safety(caught.value)
        assert 1 == len(RequestLog.of(caught.value).children)


async def test_an_error_that_carries_the_response_is_as_readable_as_in_aiohttp(serving):
    """A function for ``raise_for_status`` may keep the response for later."""

    class RefusedError(Exception):
        def __init__(self, response):
            self.response = response

    async def refuse(response):
        raise RefusedError(response)

    async def answer(request):
        return web.Response(status=400, text="why" * 50_000)

    async def read(session):
        with pytest.raises(RefusedError) as caught:
            await session.get("/")
        try:
            return await caught.value.response.text()
        except aiohttp.ClientConnectionError:
            return "closed"
        finally:
            caught.value.response.close()

    url = (await serving(answer)).make_url("/")
    async with (
        aiohttp.ClientSession(url, raise_for_status=refuse) as bare,
        retrying_post(base_url=url, raise_for_status=refuse) as decorated,
    ):
        expected, got = await read(bare), await read(decorated)

    assert expected == got


RETRYING = retrying(RetryStrategy.on_server_error_status(NOW))


@client_decorator
async def forgetful(delegate, ctx, request):
    return delegate.execute(ctx, request)


class Forgetful(DecoratingClient):
    async def execute(self, ctx, request):
        return self.delegate.execute(ctx, request)


class Bare:
    def __init__(self, delegate):
        self.delegate = delegate

    async def execute(self, ctx, request):
        return self.delegate.execute(ctx, request)


@client_decorator
async def hasty(delegate, ctx, request):
    return asyncio.create_task(delegate.execute(ctx, request))


@client_decorator
async def silent(delegate, ctx, request):
    await delegate.execute(ctx, request)


@client_decorator
def patient(delegate, ctx, request):
    return delegate.execute(ctx, request)


class Promise:
    def __await__(self):
        raise AssertionError
        yield


@client_decorator
async def promising(delegate, ctx, request):
    return Promise()


CASES = [
    (forgetful, "forgetful returned a coroutine"),
    (Forgetful, "Forgetful returned a coroutine"),
    (Bare, "Bare returned a coroutine"),
    (hasty, "hasty returned a Task"),
    (promising, "promising returned a Promise"),
]


@pytest.fixture
async def server(serving):
    """A server that counts."""

    async def answer(request):
        server.requests += 1
        return web.Response(text="fine")

    server = await serving(answer)
    server.requests = 0
    return server


CHAINS = {
    "alone": lambda decorator: [decorator],
    "around retries": lambda decorator: [RETRYING, decorator],
    "inside of retries": lambda decorator: [decorator, RETRYING],
    "between": lambda decorator: [RETRYING, decorator, LoggingClient.new_decorator()],
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize(("decorator", "expected"), CASES)
async def test_decorator_that_forgot_to_await_is_named(
    server, chain, decorator, expected
):
    """Once, in one attempt; what it left under way is ended, and nothing warns."""
    async with connected(server.make_url("/"), *chain(decorator)) as session:
        with pytest.raises(TypeError, match=rf"^{expected} \(expected: a ") as error:
            await session.get("/")

    log = RequestLog.of(error.value)
    assert "return await delegate.execute(ctx, request)" in str(error.value)
    assert log.total_attempts == 1
    assert log.response_status is None


async def test_decorator_that_returns_nothing_is_named(server):
    """In the words that there were, and with its name."""
    expected = (
        r"^response: None \(expected: what the delegate returned; silent returned"
    )
    async with connected(server.make_url("/"), silent, RETRYING) as session:
        with pytest.raises(TypeError, match=expected):
            await session.get("/")

    assert 1 == server.requests


async def test_plain_function_may_leave_the_await_to_the_chain(server):
    """What it returns is awaited; it has forgotten nothing."""
    async with (
        connected(server.make_url("/"), patient, RETRYING) as session,
        session.get("/") as response,
    ):
        assert "fine" == await response.text()


@pytest.mark.parametrize("decorator", [forgetful, Forgetful, Bare])
async def test_decorator_of_a_function_that_forgot_to_await_is_named(decorator):
    """The caller of the function got the coroutine, in place of a result."""
    calls = []

    @rpc(
        decorator,
        RetryingRpcClient.new_decorator(RetryRule(exceptions=[OSError], backoff=NOW)),
    )
    async def fetch():
        calls.append(1)

    name = "forgetful" if decorator is forgetful else decorator.__name__
    with pytest.raises(TypeError, match=rf"^{name} returned a coroutine \(expected: "):
        await fetch()

    assert [] == calls


async def test_transport_that_is_not_awaited_is_named(monkeypatch):
    """A mock of aiohttp's method may forget it, too."""

    async def answer():
        raise AssertionError

    async def mock(self, method, url, **options):
        return answer()

    monkeypatch.setattr(aiohttp.ClientSession, "_request", mock)
    async with connected("http://h/", RETRYING) as session:
        with pytest.raises(TypeError, match=r"^the transport returned a coroutine"):
            await session.get("/", params={"a": "b"})
