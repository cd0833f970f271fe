"""Sessions of all kinds lose no call: after redirects, and as long as there is time."""

import asyncio
import time
from collections import Counter
from contextlib import asynccontextmanager

import aiohttp
import pytest
from chains import connected, retrying
from fault_server import End, Fault, response
from pairs import each_pair
from pool_server import (
    BARE,
    BREAKS,
    CHAINS,
    NEVER,
    PATIENCE,
    RESET,
    RETRYING,
    PoolServer,
    each,
    in_use,
    never,
    stale_pool,
    standard,
    status_of,
    warm,
)
from yarl import URL

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    HedgingClient,
    LoggingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryStrategy,
    client_decorator,
    decorate,
)

BROKEN = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
NOTHING = retrying(RetryStrategy.never())


# Whoever made the session


@asynccontextmanager
async def warm_session(**arguments):
    """Serve a bare session with a connection in its pool."""
    async with (
        asyncio.timeout(PATIENCE),
        PoolServer() as server,
        aiohttp.ClientSession(server.url, **arguments) as session,
    ):
        await warm(server, session, 1)
        server.requests.clear()
        yield server, session

        assert 0 == in_use(session)


async def test_pool_may_be_older_than_the_decorators():
    """What a bare session has used before is used."""
    async with warm_session() as (server, session):
        decorate(session, NOTHING)
        server.leave_stale()
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 2 == len(server.to("/x"))


async def test_connection_may_be_in_use_when_the_decorators_come():
    """It goes to the pool of a session that is ours by then."""
    async with warm_session() as (server, session):
        with server.holding():
            call = asyncio.create_task(status_of(session.get("/before")))
            await server.arrived(1)
            decorate(session, NOTHING)
        before = await call
        server.leave_stale()
        status = await status_of(session.get("/x"))

    assert (200, 200) == (before, status)
    assert 2 == len(server.to("/x"))


# Chains without retries


@pytest.mark.parametrize(
    "decorator",
    [
        LoggingClient.new_decorator(),
        CircuitBreakerClient.new_decorator(CircuitBreaker()),
    ],
    ids=["logging", "breaker"],
)
async def test_chain_without_retries_leaves_it_to_aiohttp(decorator):
    """Which sends again once, and tells no log."""
    make = lambda url: connected(url, decorator)  # noqa: E731
    async with stale_pool(make) as (server, session), session.get("/x") as got:
        log = RequestLog.of(got)

    assert 200 == got.status
    assert 2 == len(server.to("/x"))
    assert (1, ()) == (log.total_attempts, log.children)


async def test_hedge_and_first_request_are_each_sent_again():
    """Both have met a stale connection; the first answer wins, and none is kept."""
    chain = (HedgingClient.new_decorator(0.05), NOTHING)
    broken = asyncio.Event()
    how = Fault(send=(broken,), end=End.RESET)
    async with stale_pool(lambda url: connected(url, *chain), 2, how) as (
        server,
        session,
    ):
        call = asyncio.create_task(status_of(session.get("/x")))
        await server.arrived(2)
        broken.set()
        status = await call

    assert 200 == status
    assert 3 <= len(server.to("/x")) <= 4


# What breaks is no connection


async def test_exception_of_a_mock_counts_as_ever(aioresponses_mock):
    """Nothing was sent, so nothing is sent again."""
    aioresponses_mock.get("http://h/", exception=aiohttp.ServerDisconnectedError())
    aioresponses_mock.get("http://h/", status=200)
    async with connected("http://h", NOTHING) as session:
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await session.get("/")


async def test_exception_of_a_middleware_counts_as_ever():
    """It looks like a broken connection, and is none."""
    sent = []

    async def fail(request, handler):
        sent.append(request.url)
        raise aiohttp.ServerDisconnectedError

    async with stale_pool(never, 0, middlewares=(fail,)) as (_, session):
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await session.get("/x")

    assert 1 == len(sent)


@each(BARE | NEVER)
async def test_post_of_a_middleware_is_made_no_oftener_than_by_a_bare_session(make):
    """What is sent again is the request around, and the middleware with it."""

    async def with_token(request, handler):
        async with session.post("/token", data=b"key", middlewares=()) as response:
            await response.read()
        return await handler(request)

    async with stale_pool(make, 6) as (server, session):
        with pytest.raises(BROKEN):
            await session.get("/x", middlewares=(with_token,))

    assert 2 == len(server.to("/token"))


# Kinds of connections


@each(BARE | CHAINS)
async def test_connection_to_a_proxy_is_stale_as_any(make):
    """It is reused for all hosts behind the proxy."""
    async with PoolServer() as proxy, make(None) as session:
        first = await status_of(session.get("http://a.test/x", proxy=proxy.url))
        proxy.leave_stale()
        second = await status_of(session.get("http://a.test/x", proxy=proxy.url))

    assert (200, 200) == (first, second)
    assert 3 == len(proxy.to("http://a.test/x"))


HOP = "/see/302/b"
ONE_EACH = {2: RESET}
"""Each connection answers once, and breaks when it is used again."""


def sent(server):
    """Return what came over the wire, in order."""
    return [
        (request.method, request.target, bytes(request.body))
        for request in server.requests
    ]


async def wire_of(make, method, path, **options):
    """Make one call with connections that answer once each; return all about it."""
    async with (
        asyncio.timeout(PATIENCE),
        PoolServer() as server,
        make(server.url) as session,
    ):
        server.places = ONE_EACH
        try:
            async with session.request(method, path, **options) as got:
                hops = [(hop.status, hop.url.path) for hop in got.history]
                outcome = got.status, got.url.path_qs, hops, await got.text()
        except aiohttp.ClientError:
            outcome = None
        assert 0 == in_use(session)

        return sent(server), outcome


@each_pair(
    status=[301, 302, 303, 307, 308],
    method=["GET", "PUT", "DELETE", "OPTIONS"],
    chain=CHAINS,
)
async def test_same_requests_are_sent_as_by_a_bare_session(status, method, chain):
    """Body and parameters included; the response has the same history."""
    options = {"params": {"q": "1"}, "data": b"body" if method == "PUT" else None}
    options |= {"allow_redirects": True, "max_redirects": 2}
    path = f"/see/{status}/b"
    bare = await wire_of(aiohttp.ClientSession, method, path, **options)
    ours = await wire_of(CHAINS[chain], method, path, **options)

    assert bare == ours
    assert 200 == bare[1][0]
    assert 3 == len(bare[0])


@each(CHAINS)
async def test_each_of_several_hops_may_break(make):
    """Each is sent again, and none that was answered."""
    wire, outcome = await wire_of(make, "GET", "/see/302/see/302/c")

    paths = Counter(target for _, target, _ in wire)
    assert {"/see/302/see/302/c": 1, "/see/302/c": 2, "/c": 2} == paths
    assert 200 == outcome[0]


def closing_redirect():
    """Redirect once, and say that the connection ends."""
    moved = response(302, b"", "Location: /b", "Connection: close")
    return Fault(send=(moved,), end=End.CLOSE)


@each(RETRYING)
async def test_attempt_after_a_hop_that_failed_begins_anew(make):
    """An attempt is the whole way."""
    async with stale_pool(make, 0) as (server, session):
        server.scripts = {HOP: [closing_redirect()], "/b": [RESET]}
        status = await status_of(session.get(HOP))

    assert 200 == status
    assert {HOP: 2, "/b": 2} == server.paths()


@each(BARE | CHAINS)
async def test_newer_cookie_is_not_overwritten_by_the_redirect(make):
    """What is sent again has the cookies of the moment."""
    moved = response(302, b"", "Location: /b", "Set-Cookie: sid=old; Path=/")
    renewed = response(200, b"", "Set-Cookie: sid=new; Path=/")
    broken = asyncio.Event()
    jar = aiohttp.CookieJar(unsafe=True)
    async with stale_pool(make, 0, cookie_jar=jar) as (server, session):
        server.scripts = {
            HOP: [Fault(send=(moved,))],
            "/b": [Fault(send=(broken,), end=End.RESET)],
            "/renew": [Fault(send=(renewed,))],
        }
        call = asyncio.create_task(status_of(session.get(HOP)))
        await server.arrived(2)
        renewal = await status_of(session.get("/renew"))
        broken.set()
        status = await call

    cookies = [request.header("Cookie") for request in server.to("/b")]
    assert (200, 200) == (renewal, status)
    assert [b"sid=old", b"sid=new"] == cookies
    assert ["new"] == [cookie.value for cookie in jar]
    assert 1 == len(server.to(HOP))


@each(BARE | CHAINS)
async def test_secrets_stay_behind_at_another_origin(make):
    """Also with what is sent there again."""
    async with PoolServer() as other, stale_pool(make, 0) as (server, session):
        away = response(302, b"", f"Location: {other.url / 'b'}")
        server.scripts[HOP] = [Fault(send=(away,)) for _ in range(2)]
        warming = await status_of(session.get(other.url / "warm"))
        other.leave_stale()
        secret = {"Authorization": "Bearer token"}
        status = await status_of(session.get(HOP, headers=secret))

    assert (200, 200) == (warming, status)
    told = [request.header("Authorization") for request in server.to(HOP)]
    assert [b"Bearer token"] == told
    assert [b"", b""] == [request.header("Authorization") for request in other.to("/b")]


@pytest.mark.parametrize("of_the_request", [False, True])
@each(CHAINS)
async def test_middlewares_see_what_they_see_in_a_bare_session(make, of_the_request):
    """Users' own ones run once for each request on the wire."""

    async def seen_by(make):
        seen = []

        async def note(request, handler):
            seen.append((request.method, request.url.path))
            got = await handler(request)
            seen.append(got.status)
            return got

        where = "request" if of_the_request else "session"
        both = {"session": {}, "request": {}, where: {"middlewares": (note,)}}
        async with stale_pool(make, **both["session"]) as (server, session):
            seen.clear()
            server.places = {2: RESET}
            status = await status_of(session.get("/b", **both["request"]))
            assert 200 == status

            seen.append(URL(HOP).path)
            server.places = {3: RESET}
            await status_of(session.get(HOP, **both["request"]))
        return seen, sent(server)

    assert await seen_by(aiohttp.ClientSession) == await seen_by(make)


@pytest.mark.parametrize(
    ("settings", "options", "error"),
    [
        ({}, {"timeout": aiohttp.ClientTimeout(total=0.2)}, ResponseTimeoutError),
        ({"attempt_timeout": 0.2}, {}, AttemptTimeoutError),
    ],
    ids=["deadline", "attempt"],
)
async def test_nothing_is_sent_again_when_the_time_is_up(settings, options, error):
    """The break is noticed when the call, or the attempt, has no time left."""
    chain = retrying(RetryStrategy.never(), **settings)
    stalled = Fault(end=End.STALL, send=())
    async with stale_pool(lambda url: connected(url, chain), how=stalled) as (
        server,
        session,
    ):
        call = asyncio.create_task(session.get("/x", **options))
        await server.arrived(1)
        server.drop(BREAKS["closed"])
        time.sleep(0.25)  # noqa: ASYNC251 - the loop is late
        with pytest.raises(error):
            await call

    assert 1 == len(server.to("/x"))


async def test_requests_of_one_attempt_share_its_time():
    """The error names the time of the attempt, not what was left of it."""
    chain = retrying(RetryStrategy.never(), attempt_timeout=0.4)
    late = Fault(send=(0.25,), end=End.RESET)
    async with stale_pool(lambda url: connected(url, chain), how=late) as (
        server,
        session,
    ):
        server.scripts["/x"] = [Fault(send=(), end=End.STALL)]
        with pytest.raises(AttemptTimeoutError, match="0.400 s") as e:
            await session.get("/x")

    duration = RequestLog.of(e.value).duration
    assert 2 == len(server.to("/x"))
    assert 0.38 <= duration < 0.64


async def test_requests_of_one_call_share_its_deadline():
    """What is sent again has what is left."""
    limits = {"response_timeout": 0.4, "attempt_timeout": None}
    late = Fault(send=(0.25,), end=End.RESET)
    async with stale_pool(standard, how=late, **limits) as (server, session):
        server.scripts["/x"] = [Fault(send=(), end=End.STALL)]
        with pytest.raises(ResponseTimeoutError) as e:
            await session.get("/x")

    duration = RequestLog.of(e.value).duration
    assert not isinstance(e.value, AttemptTimeoutError)
    assert 2 == len(server.to("/x"))
    assert 0.38 <= duration < 0.64


@pytest.mark.parametrize("limit", [0.4, aiohttp.ClientTimeout(total=0.4)])
async def test_requests_of_one_send_share_the_timeout_of_a_decorator(limit):
    """What the decorator sends has that time, not each request on the wire."""

    @client_decorator
    async def hurry(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(timeout=limit))

    late = Fault(send=(0.25,), end=End.RESET)
    never = retrying(RetryStrategy.never())
    async with stale_pool(
        lambda url: connected(url, hurry, never), count=4, how=late
    ) as (server, session):
        with pytest.raises(TimeoutError) as e:
            await session.get("/x")

    assert 2 == len(server.to("/x"))
    assert 0.38 <= RequestLog.of(e.value).duration < 0.64


async def test_nothing_is_sent_again_when_the_time_of_a_decorator_is_up():
    """It was used up before the connection broke, by the making of the body."""

    @client_decorator
    async def hurry(delegate, ctx, request):
        limit = aiohttp.ClientTimeout(total=0.2)
        return await delegate.execute(ctx, request.replace(timeout=limit))

    def body():
        time.sleep(0.25)
        return b"late"

    chain = hurry, retrying(RetryStrategy.never())
    async with stale_pool(lambda url: connected(url, *chain)) as (server, session):
        assert await status_of(session.put("/x", data=body)) is None

    assert [b"late"] == server.bodies


async def test_timeout_of_a_decorator_may_have_no_total():
    """There is nothing to share then."""

    @client_decorator
    async def listen(delegate, ctx, request):
        limit = aiohttp.ClientTimeout(sock_read=5.0)
        return await delegate.execute(ctx, request.replace(timeout=limit))

    chain = listen, retrying(RetryStrategy.never())
    async with stale_pool(lambda url: connected(url, *chain), 2) as (server, session):
        assert 200 == await status_of(session.get("/x"))

    assert 3 == len(server.to("/x"))


@each(CHAINS)
async def test_cancelled_call_leaves_nothing_behind(make):
    """Whatever it was just doing."""
    async with stale_pool(make, 2) as (server, session):
        for turns in range(30):
            call = asyncio.create_task(session.get("/x"))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            answered = await asyncio.gather(call, return_exceptions=True)
            if isinstance(answered[0], aiohttp.ClientResponse):
                answered[0].release()

            assert 0 == in_use(session)
            server.leave_stale()
        assert 200 == await status_of(session.get("/last"))
