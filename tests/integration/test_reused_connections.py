"""Connections that were used before, are taken late, or are waited for in the pool."""

import asyncio
import contextlib
import gc
import socket

import aiohttp
import pytest
from aiohttp import ClientTimeout
from aiohttp.abc import AbstractResolver
from aiohttp.test_utils import TestClient
from chains import connected, retrying
from fault_server import FaultServer
from pool_server import CLOSE, RESET, PoolServer, warm
from stream_server import StreamServer

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    HedgingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryBudget,
    RetryingClient,
    RetrySafety,
    RetryStrategy,
    capture_logs,
    client_decorator,
    decorate,
    is_unprocessed,
    retry_safety,
)

NEVER = retrying(RetryStrategy.never())


async def get(session, path="/orders"):
    """Return the status of a call, or the class of its failure."""
    try:
        async with session.get(path) as response:
            await response.read()
            return response.status
    except aiohttp.ClientError as error:
        return type(error)


@contextlib.asynccontextmanager
async def shared_connector(server):
    """Make a session that retries nothing and does not own its connector."""
    async with (
        aiohttp.TCPConnector() as connector,
        aiohttp.ClientSession(
            server.url, connector=connector, connector_owner=False
        ) as session,
    ):
        yield decorate(session, NEVER)


@pytest.fixture
async def server():
    async with PoolServer() as running:
        yield running


async def test_connection_that_is_being_made_is_a_fresh_one(server):
    """The session was decorated meanwhile."""
    resolving = asyncio.Event()

    class SlowResolver(AbstractResolver):
        async def resolve(self, host, port=0, family=socket.AF_INET):
            await resolving.wait()
            return [
                {
                    "hostname": host,
                    "host": "127.0.0.1",
                    "port": port,
                    "family": family,
                    "proto": 0,
                    "flags": 0,
                }
            ]

        async def close(self):
            """Do nothing."""

    connector = aiohttp.TCPConnector(resolver=SlowResolver())
    async with aiohttp.ClientSession(connector=connector) as session:
        call = asyncio.create_task(get(session, server.url.with_host("example.com")))
        await asyncio.sleep(0.01)
        decorate(session, NEVER)
        resolving.set()

        assert 200 == await call


async def test_closed_session_is_decorated_all_the_same(server):
    """It has no connection, and says that it is closed when it is used."""
    session = aiohttp.ClientSession(server.url)
    await session.close()
    decorate(session, NEVER)

    with pytest.raises(RuntimeError, match="Session is closed"):
        await session.get("/orders")


async def test_call_without_attempts_is_sent_again(server):
    """Its requests share the log of the call."""

    class PassedBy(RetryingClient):
        async def execute(self, ctx, request):
            return await self.delegate.execute(ctx, request)

    async with aiohttp.ClientSession(server.url) as session:
        decorate(session, PassedBy.new_decorator(RetryStrategy.never()))
        await get(session)
        server.leave_stale()
        async with session.get("/orders") as response:
            await response.read()
        log = RequestLog.of(response)

    assert (200, 1, ()) == (response.status, log.total_attempts, log.children)

    assert 3 == len(server.requests)


async def test_first_break_of_a_call_counts_as_reused_where_nobody_can_know(server):
    """Sessions without a chain use the connector, too."""
    server.scripts["/orders"] = [CLOSE, CLOSE]
    async with shared_connector(server) as session:
        with capture_logs() as logs:
            failure = await get(session)

    assert aiohttp.ServerDisconnectedError is failure

    assert ["stale_connection", None] == [
        attempt.delay_source for attempt in logs[0].children
    ]


async def test_shared_connection_that_this_session_used_is_known(server):
    """One after the other breaks, and the call goes through."""
    async with shared_connector(server) as session:
        await warm(server, session, 3)
        server.leave_stale()

        assert 200 == await get(session)


async def test_connection_that_a_bare_session_used_is_known(server):
    """It was given the connector of this one, and nothing marks what it sends."""
    async with (
        aiohttp.ClientSession(server.url) as session,
        aiohttp.ClientSession(server.url, connector=session.connector) as bare,
    ):
        decorate(session, NEVER)
        assert 200 == await get(bare)
        server.leave_stale()

        assert 200 == await get(session)


async def test_session_that_does_not_resend_goes_on_not_to(aiohttp_server):
    """As the test client of aiohttp, which switches the resend off."""
    async with PoolServer() as server:
        running = await aiohttp_server(aiohttp.web.Application())
        async with TestClient(running) as client:
            session = decorate(client.session, NEVER)
            assert 200 == await get(session, server.url / "orders")

            server.leave_stale()

            assert aiohttp.ClientOSError is await get(session, server.url / "orders")


async def test_proxy_that_breaks_off_has_not_got_the_request(server):
    """The tunnel is fresh, and the failure one of the chain's."""
    server.scripts["example.com:443"] = [CLOSE, CLOSE]
    async with aiohttp.ClientSession(proxy=server.url) as session:
        decorate(session, NEVER)
        failure = await get(session, "https://example.com/orders")

    assert issubclass(failure, aiohttp.ClientError)

    assert 1 == len(server.requests)


async def test_broken_call_of_a_middleware_counts_as_reused_once(server):
    """Nobody knows about the connections of another session."""
    # A bare session sends a request twice by itself.
    server.scripts["/token"] = [RESET, RESET]

    async with aiohttp.ClientSession(server.url) as other:

        async def sign(request, handler):
            async with other.get("/token") as response:
                await response.read()
            return await handler(request)

        async with aiohttp.ClientSession(server.url, middlewares=[sign]) as session:
            decorate(session, NEVER)

            assert 200 == await get(session)

            server.scripts["/token"] = [RESET, RESET, RESET, RESET]

            assert aiohttp.ClientOSError is await get(session)


@pytest.mark.parametrize("turns", range(6))
async def test_server_leaves_no_task_of_a_connection_that_it_took_late(turns, caplog):
    """However far it was taken when the server was to end; and no error is logged."""

    async def wait(reader, writer):
        await reader.read()

    async with StreamServer(wait) as server:
        client = socket.create_connection(("127.0.0.1", server.port))
        for _ in range(turns):
            await asyncio.sleep(0)
    client.close()

    assert {asyncio.current_task()} == asyncio.all_tasks()
    assert [] == caplog.messages


@pytest.mark.parametrize("turns", range(6))
async def test_server_of_faults_loses_no_connection_that_it_took_late(turns):
    """Python would warn of a socket that nobody has closed."""
    async with FaultServer() as server:
        # By then it waits for connections.
        await asyncio.sleep(0.01)
        with socket.create_connection((server.url.host, server.url.port)):
            for _ in range(turns):
                await asyncio.sleep(0)
    gc.collect()

    assert 1 == server.connected


async def test_server_takes_a_late_write_for_a_client_that_went_away():
    """With uvloop it raises no OSError."""

    async def talk(reader, writer):
        writer.transport.abort()
        await asyncio.sleep(0.05)
        writer.write(b"late")
        await writer.drain()

    async with StreamServer(talk) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()
        await asyncio.wait(server.served)

    assert [None] == [each.exception() for each in server.served]


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"

each_limit = pytest.mark.parametrize(
    ("limits", "attempt_timeout", "kind"),
    [
        ({"connect": 0.05}, None, aiohttp.ConnectionTimeoutError),
        ({"total": 5.0}, 0.05, AttemptTimeoutError),
        ({"total": 0.05}, None, ResponseTimeoutError),
    ],
    ids=["connect", "attempt", "call"],
)


class GivesThePlaceBack(Backoff):
    """Frees a connection before the next attempt, and not sooner."""

    response = None

    def next_delay(self, num_attempts_so_far):
        self.response.close()
        return 0.01


class Chain:
    """Retries, with all that counts what says something about the server."""

    def __init__(self, strategy, *, attempt_timeout=None, attempts=2):
        self.breaker = CircuitBreaker("api", minimum_request_threshold=1)
        self.budget = RetryBudget(capacity=5.0, brake_after=1)
        self.decorators = [
            CircuitBreakerClient.new_decorator(self.breaker),
            retrying(
                strategy,
                max_total_attempts=attempts,
                attempt_timeout=attempt_timeout,
                limiter=self.budget,
            ),
        ]

    def build(self, **arguments):
        return connected(None, *self.decorators, **arguments)


@contextlib.asynccontextmanager
async def held(session, url):
    """Hold a connection of a session's pool, whatever limits the session has."""
    plain = aiohttp.ClientSession(connector=session.connector, connector_owner=False)
    async with plain, plain.get(url):
        yield


@pytest.mark.parametrize("place", ["limit", "limit_per_host"])
@each_limit
async def test_full_pool_says_nothing_about_the_server(
    serve, place, limits, attempt_timeout, kind
):
    """No circuit breaker opens and no budget brakes, whichever limit passes."""
    url = await serve([OK, 60.0])
    chain = Chain(RetryStrategy.never(), attempt_timeout=attempt_timeout, attempts=1)
    connector = aiohttp.TCPConnector(**{place: 1})
    async with chain.build(connector=connector) as session, held(session, url):
        counted = chain.breaker.event_count
        with pytest.raises(TimeoutError) as caught:
            await session.post(url, timeout=ClientTimeout(**limits))

    assert kind is type(caught.value)
    assert counted == chain.breaker.event_count
    assert RetrySafety.YES is retry_safety(caught.value)
    assert is_unprocessed(caught.value)


async def test_post_that_found_no_place_is_sent_again(serve):
    """The server has seen nothing of it, and the budget does not brake."""
    url = await serve([OK, 60.0], [OK + b"0123456789"])
    backoff = GivesThePlaceBack()
    chain = Chain(RetryStrategy.on_unprocessed(backoff))
    connector = aiohttp.TCPConnector(limit=1)
    async with chain.build(connector=connector) as session:
        backoff.response = await session.get(url, timeout=ClientTimeout(total=60.0))
        response = await session.post(url, timeout=ClientTimeout(connect=0.5))
        log = RequestLog.of(response)
        await response.read()

    assert 200 == response.status
    assert log.children[0].response_cause is not None
    assert 0 == chain.breaker.event_count.failure


async def test_slow_connection_does_concern_the_server():
    """A server that does not take connections counts as a failure, as before."""

    class NoAnswer(aiohttp.abc.AbstractResolver):
        async def resolve(self, host, port=0, family=0):
            await asyncio.sleep(60.0)

        async def close(self):
            pass

    chain = Chain(RetryStrategy.never(), attempts=1)
    connector = aiohttp.TCPConnector(resolver=NoAnswer())
    async with chain.build(connector=connector) as session:
        with pytest.raises(aiohttp.ConnectionTimeoutError):
            await session.get(
                "http://api.invalid/", timeout=ClientTimeout(connect=0.05)
            )

    assert CircuitState.OPEN is chain.breaker.state


TEXTS = {
    "connect": "no free connection in the pool in time, for {url}",
    "attempt": "attempt 1 had 0.050 s, and was in the pool's queue",
    "call": "the deadline passed in the pool's queue, attempts: 1",
}


@each_limit
async def test_error_says_that_time_ran_out_in_the_queue(
    serve, request, limits, attempt_timeout, kind
):
    """A server that was never asked is not called slow, in any text."""
    url = await serve([OK, 60.0])
    chain = Chain(RetryStrategy.never(), attempt_timeout=attempt_timeout, attempts=1)
    connector = aiohttp.TCPConnector(limit=1)
    async with chain.build(connector=connector) as session, held(session, url):
        with pytest.raises(TimeoutError) as caught:
            await session.post(url, timeout=ClientTimeout(**limits))
    log = RequestLog.of(caught.value)
    assert 1 == len(log.children)
    _, line = log.render().splitlines()

    text = TEXTS[request.node.callspec.id].format(url=url)
    assert text == str(caught.value)
    assert f"{kind.__name__}: {text}" == log.to_dict()["response_cause"]
    assert f"└─ 1  {kind.__name__}, in the pool's queue, not sent   " == line[:-7]


async def test_deadline_in_the_queue_of_a_call_that_nothing_retries(serve):
    """The error has the seconds of the call, and says where they went."""
    url = await serve([OK, 60.0])
    async with (
        connected(None, connector=aiohttp.TCPConnector(limit=1)) as session,
        session.get(url),
    ):
        with pytest.raises(ResponseTimeoutError) as caught:
            await session.get(url, timeout=ClientTimeout(total=0.05))

    assert "the call had 0.050 s, and was in the pool's queue" == str(caught.value)
    assert (
        f"ResponseTimeoutError: {caught.value}" in RequestLog.of(caught.value).render()
    )


async def test_limit_of_a_decorator_in_the_queue(serve):
    """A timeout of aiohttp's without any words gets some."""

    @client_decorator
    async def hurry(delegate, ctx, request):
        """Give each request its own limit."""
        return await delegate.execute(
            ctx, request.replace(timeout=ClientTimeout(total=0.05))
        )

    url = await serve([OK, 60.0])
    async with (
        connected(None, hurry, connector=aiohttp.TCPConnector(limit=1)) as session,
        held(session, url),
    ):
        with pytest.raises(TimeoutError) as caught:
            await session.get(url)

    assert "no free connection in the pool in time" == str(caught.value)
    assert (
        "TimeoutError, in the pool's queue, not sent"
        in RequestLog.of(caught.value).render()
    )


@pytest.mark.parametrize("decorators", [(), (HedgingClient.new_decorator(delay=5.0),)])
async def test_cancelled_call_passes_on_the_connection_that_it_was_woken_for(
    serve, decorators
):
    """The next in the queue of the pool gets it, which aiohttp alone forgets."""
    url = await serve([OK, 60.0], [OK, 60.0])
    connector = aiohttp.TCPConnector(limit=1)
    async with connected(None, *decorators, connector=connector) as session:
        response = await session.get(url)
        woken, next_one = (asyncio.create_task(session.get(url)) for _ in range(2))
        await asyncio.sleep(0.05)
        response.close()
        woken.cancel()
        async with asyncio.timeout(5.0):
            response = await next_one
        response.close()

    assert 200 == response.status
    assert woken.cancelled()
