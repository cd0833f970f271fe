"""Decorators that return what they should have awaited: which one, in every chain."""

import asyncio

import aiohttp
import pytest
from aiohttp import web
from chains import NOW, connected, retrying

from aioretry_smithy import (
    DecoratingClient,
    LoggingClient,
    RequestLog,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    client_decorator,
    rpc,
)

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
