"""Sessions with a chain do what sessions do, their own and those of others."""

import asyncio
import contextlib
import gc
import json
import weakref
from collections import UserDict
from contextlib import asynccontextmanager
from types import MappingProxyType

import aiohttp
import pytest
from aiohttp import web
from chains import SAFELY, connected, retrying
from fault_server import End, FaultServer, answer, cut
from multidict import CIMultiDict, CIMultiDictProxy, MultiDict

from aioretry_smithy import (
    Backoff,
    DecoratingClient,
    LoggingClient,
    RequestLog,
    RetryConfig,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    decorate,
    request_options,
    rpc,
    undecorate,
)

AT_ONCE = Backoff.without_delay()
ALWAYS = RetryStrategy.on_server_error_status(AT_ONCE)
RETRYING = retrying(ALWAYS)
ONCE_MORE = retrying(ALWAYS, max_total_attempts=2)


@pytest.fixture
async def deaf():
    """Start a server that reads a request and hangs up; give its URL and requests."""
    async with FaultServer(then=cut(end=End.CLOSE)) as server:
        yield str(server.url), server.requests


# Verbs and arguments


async def test_netrc_and_proxy_of_the_environment(serving, monkeypatch, tmp_path):
    """With ``trust_env`` each attempt finds what a plain session finds."""
    seen = []

    async def proxy(request):
        seen.append((request.host, request.headers.get("Authorization")))
        return web.Response(status=503)

    server = await serving(proxy)
    netrc = tmp_path / "netrc"
    netrc.write_text("machine shop.invalid login me password hidden\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", str(server.make_url("/")))
    monkeypatch.delenv("no_proxy", raising=False)
    async with aiohttp.ClientSession(trust_env=True) as plain:
        await plain.get("http://shop.invalid/")
    async with connected(None, ONCE_MORE, trust_env=True) as session:
        response = await session.get("http://shop.invalid/")

    assert ("shop.invalid", "Basic bWU6aGlkZGVu") == seen[0]
    assert [seen[0]] * 3 == seen
    assert "bWU6aGlkZGVu" not in str(RequestLog.of(response).to_dict())


# What aiohttp does inside an attempt


# Websockets


async def websocket(request):
    """Echo, later than the handshake may take."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await asyncio.sleep(0.7)
        await socket.send_str(f"heard {message.data}")
    return socket


async def test_websocket_outlives_the_timeouts_of_its_handshake(serving):
    """Attempt timeout and deadline end with the handshake."""
    server = await serving(websocket)
    builder = SessionBuilder(server.make_url("/")).decorator(
        retrying(RetryStrategy.failsafe(AT_ONCE), attempt_timeout=0.5)
    )
    async with (
        builder.response_timeout(0.6).build() as session,
        session.ws_connect("/") as socket,
    ):
        await socket.send_str("hello")
        answer = await socket.receive_str()

    assert "heard hello" == answer


# Sessions of others


async def test_subclass_of_a_session_keeps_its_own_request(serving):
    """A library's session class may add arguments to each request of the chain."""
    with pytest.warns(DeprecationWarning, match="discouraged"):

        class Signing(aiohttp.ClientSession):
            async def _request(self, method, str_or_url, **options):
                options["headers"] = {"X-Signed": "yes"}
                return await super()._request(method, str_or_url, **options)

    seen = []

    async def handler(request):
        seen.append(request.headers.get("X-Signed"))
        return web.Response(status=503)

    server = await serving(handler)
    async with Signing() as session:
        decorate(session, ONCE_MORE)
        await session.get(server.make_url("/"))

    assert ["yes", "yes"] == seen


# The hidden resend


def broken_connection():
    return pytest.raises(aiohttp.ServerDisconnectedError)


@pytest.mark.parametrize(
    ("decorators", "attempts", "on_the_wire"),
    [
        ([], 1, 2),
        ([DecoratingClient], 1, 2),
        ([retrying(RetryStrategy.never())], 1, 1),
        ([ONCE_MORE], 2, 2),
        ([RETRYING], 10, 10),
    ],
    ids=["empty", "no-op", "never", "two attempts", "ten attempts"],
)
async def test_attempt_is_one_request_on_the_wire(
    deaf, decorators, attempts, on_the_wire
):
    """Aiohttp sends a GET again by itself only where nobody else does."""
    url, requests = deaf
    async with aiohttp.ClientSession() as session:
        decorate(session, *decorators)
        with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
            await session.get(url)

    assert on_the_wire == len(requests)
    assert attempts == RequestLog.of(caught.value).total_attempts


async def test_block_retries_nothing_where_no_client_retries(deaf):
    """The session is as aiohttp made it, its own resend included."""
    url, requests = deaf
    retry = RetryConfig(ALWAYS, max_total_attempts=3)
    async with aiohttp.ClientSession() as session:
        decorate(session, DecoratingClient)
        with request_options(retry=retry), broken_connection() as caught:
            await session.get(url)

    assert 2 == len(requests)
    assert 1 == RequestLog.of(caught.value).total_attempts


@pytest.mark.parametrize(
    ("decorators", "on_the_wire"), [([], 6), ([retrying(RetryStrategy.never())], 3)]
)
async def test_function_retried_around_a_session_has_its_resend(
    deaf, decorators, on_the_wire
):
    """A chain that never retries switches it off, as a page says."""
    url, requests = deaf
    broken = RetryRule(exceptions=[aiohttp.ServerDisconnectedError], backoff=AT_ONCE)

    async with connected(url, *decorators) as session:

        @rpc(RetryingRpcClient.new_decorator(broken, max_total_attempts=3))
        async def fetch():
            await session.get("/")

        with broken_connection():
            await fetch()

    assert on_the_wire == len(requests)


# Before the call is awaited, and after it is forgotten


async def test_call_starts_when_it_is_awaited():
    """Until then there is no log, and none of its time passes."""
    async with FaultServer() as server, connected(server.url, RETRYING) as s:
        with capture_logs() as logs:
            call = s.get("/")
            await asyncio.sleep(0.002)
            before, awaited = list(logs), asyncio.get_running_loop().time()
            await call

    assert [] == before
    assert awaited <= logs[0].started


async def test_call_that_is_never_awaited_warns():
    """As a coroutine of aiohttp's own does."""
    async with connected(None, RETRYING) as session:
        call = session.get("http://127.0.0.1:1/")
        with pytest.warns(RuntimeWarning, match="was never awaited"):
            del call


async def test_session_is_collected_after_a_failure(deaf):
    """The failure and its log know each other; the collector frees both."""
    url, _ = deaf
    session = aiohttp.ClientSession()
    decorate(session, ONCE_MORE)
    with contextlib.suppress(aiohttp.ClientError):
        await session.get(url)
    await session.close()
    freed = weakref.ref(session)
    del session
    gc.collect()

    assert freed() is None


AGENT = {"User-Agent": "home/2025.12"}
KINDS = [
    MappingProxyType,
    dict,
    UserDict,
    MultiDict,
    CIMultiDict,
    lambda headers: CIMultiDictProxy(CIMultiDict(headers)),
    lambda headers: [*headers.items()],
]
NAMES = ["read-only", "dict", "UserDict", "MultiDict", "own", "own, read-only", "pairs"]
CHAINS = [[], [LoggingClient.new_decorator()], [retrying(SAFELY)]]

of_each_kind = pytest.mark.parametrize("kind", KINDS, ids=NAMES)
through_each_chain = pytest.mark.parametrize(
    "decorators", CHAINS, ids=["nothing", "log", "retry"]
)


class HomeResponse(aiohttp.ClientResponse):
    """A response with a reader of JSON of its own."""

    async def json(self, *arguments, loads=json.loads, **options):
        """Read the body as JSON."""
        return await super().json(*arguments, loads=loads, **options)


def refuse_to_close():
    raise AssertionError


@asynccontextmanager
async def home_session(headers=MappingProxyType(AGENT)):
    """Make a session as Home Assistant's helper does: shared, and hard to misuse."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(),
        json_serialize=json.dumps,
        response_class=HomeResponse,
    )
    vars(session)["_default_headers"] = headers
    vars(session)["close"] = refuse_to_close
    try:
        yield session
    finally:
        await aiohttp.ClientSession.close(session)


def agents(server):
    return [each.header("User-Agent").decode() for each in server.requests]


@of_each_kind
@through_each_chain
async def test_default_headers_may_be_any_mapping(kind, decorators):
    """They go out and are in the log, as they do from a session without a chain."""
    async with FaultServer() as server, home_session(kind(AGENT)) as session:
        (await session.get(server.url)).close()
        decorate(session, *decorators)
        async with session.get(server.url, headers={"A": "1"}) as response:
            log = RequestLog.of(response)
        undecorate(session)
        (await session.get(server.url)).close()

        assert [AGENT["User-Agent"]] * 3 == agents(server)
    assert isinstance(response, HomeResponse)
    assert (AGENT["User-Agent"], "1") == (
        log.request_headers["user-agent"],
        log.request_headers["a"],
    )


@of_each_kind
async def test_default_headers_may_change_between_attempts(kind):
    """The log of each attempt has those that it was sent with."""

    @client_decorator
    async def renew(delegate, ctx, request):
        if ctx.attempt == 2:
            vars(session)["_default_headers"] = kind({"user-agent": "renewed"})
        return await delegate.execute(ctx, request)

    fails_first = FaultServer([answer(503), answer()])
    async with fails_first as server, home_session() as session:
        decorate(session, renew, retrying(SAFELY))
        async with session.get(server.url) as response:
            log = RequestLog.of(response)

        sent = [AGENT["User-Agent"], "renewed"]
        assert sent == agents(server)
        assert sent == [each.request_headers["User-Agent"] for each in log.children]


@of_each_kind
@through_each_chain
async def test_default_headers_may_be_set_later(kind, decorators):
    """The calls that begin from then on have them, in their logs too."""
    async with FaultServer() as server, home_session(CIMultiDict()) as session:
        decorate(session, *decorators)
        (await session.get(server.url)).close()
        for name in ("a", "b"):
            vars(session)["_default_headers"] = kind({"user-agent": name})
            (await session.get(server.url)).close()
        vars(session)["_default_headers"] = CIMultiDict(AGENT)
        (await session.get(server.url)).close()

        assert ["a", "b", AGENT["User-Agent"]] == agents(server)[1:]
