"""How long requests wait: in the pool, for the resolver, to connect."""

import asyncio
import subprocess
import sys
import time

import aiohttp
import pytest
from aiohttp import ClientTimeout, TCPConnector, web
from aioresponses import aioresponses
from chains import SAFELY, connected, retrying
from pool_server import stale_pool
from request_kind import new_tls
from until import nothing_to_collect

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConnectionTimings,
    HedgingClient,
    RequestLog,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport, patch_aioresponses

pytestmark = pytest.mark.slow


WAIT = 0.1
"""Seconds that resolvers and servers take."""
each_chain = pytest.mark.parametrize(
    "decorators", [(), (retrying(SAFELY),)], ids=["plain", "retrying"]
)


class SlowResolver(aiohttp.abc.AbstractResolver):
    """Knows every host, after a while."""

    def __init__(self, seconds=WAIT):
        self.seconds, self.asked = seconds, []

    async def resolve(self, host, port=0, family=0):
        self.asked.append(host)
        await asyncio.sleep(self.seconds)
        facts = {"hostname": host, "host": "127.0.0.1", "port": port}
        return [{**facts, "family": 2, "proto": 0, "flags": 0}]

    async def close(self):
        pass


def timed(*decorators, resolver=None, limit=100, **arguments):
    """Build a session whose logs say how long requests wait for a connection."""
    dns = arguments.pop("dns", {})
    connector = TCPConnector(limit=limit, resolver=resolver or SlowResolver(0.0), **dns)
    arguments.setdefault("connector", connector)
    builder = SessionBuilder(**arguments).connection_timings()
    for decorator in decorators:
        builder.decorator(decorator)
    return builder.build()


async def log_of(session, url, **options):
    """Make a call, read its body, and return its log, whatever comes of it."""
    try:
        async with session.get(url, **options) as response:
            await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        return RequestLog.of(error)
    return RequestLog.of(response)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
REUSED = ConnectionTimings(None, None, None, reused=True)


@pytest.fixture
async def server(aiohttp_server):
    """A server that takes its time, and that sends on to another host."""

    async def answer(request):
        if "to" in request.query:
            raise web.HTTPFound(request.query["to"])
        await asyncio.sleep(WAIT)
        return web.Response(text="ok")

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    return await aiohttp_server(application)


@pytest.fixture
def url(server):
    return f"http://orders.test:{server.port}/"


@each_chain
async def test_place_in_the_pool_is_waited_for(url, decorators):
    """Of three requests at once two wait in the client's own queue, for no server."""
    async with timed(*decorators, limit=1) as session:
        logs = await asyncio.gather(*(log_of(session, url) for _ in range(3)))

    first, *others = [log.connection for log in logs]
    assert (None, False) == (first.queued, first.reused)
    assert first.connect is not None
    assert [REUSED, REUSED] == [
        ConnectionTimings(None, each.dns, each.connect, each.reused) for each in others
    ]
    waits = sorted(each.queued for each in others)
    assert waits[0] >= WAIT * 0.9
    assert waits[1] >= WAIT * 1.9
    assert all(log.connection.waited + WAIT * 0.9 <= log.duration for log in logs)


async def test_nobody_asked_for_timings(url):
    """Without them nothing is traced, and the module is not even imported."""
    code = (
        "import asyncio, sys; from aioretry_smithy import SessionBuilder\n"
        "async def main():\n"
        "    async with SessionBuilder.standard().build() as session:\n"
        "        print(session.trace_configs)\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if 'timed_connections' in name])\n"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, check=True
    )
    async with connected(None, connector=TCPConnector(resolver=SlowResolver())) as own:
        log = await log_of(own, url)

    assert [b"[]", b"[]"] == done.stdout.split()
    assert log.connection is None
    assert log.to_dict()["connection"] is None


async def test_redirect_to_another_host(server):
    """The hops are added up; the last one says whether its connection was used."""
    there = f"http://other.test:{server.port}/"
    here = f"http://orders.test:{server.port}/?to={there}"
    resolver = SlowResolver()
    async with timed(resolver=resolver) as session:
        fresh = await log_of(session, here)
        again = await log_of(session, here)
        await log_of(session, f"http://third.test:{server.port}/")
        last_known = f"http://fourth.test:{server.port}/?to={there}"
        mixed = await log_of(session, last_known)

    assert fresh.connection.dns >= WAIT * 1.9
    assert fresh.connection.waited + WAIT * 0.9 <= fresh.duration
    assert not fresh.connection.reused
    assert REUSED == again.connection
    assert WAIT * 0.9 <= mixed.connection.dns
    assert mixed.connection.waited + WAIT * 0.9 <= mixed.duration
    assert mixed.connection.reused


async def test_handshake_of_tls_is_part_of_the_connection(serve):
    """The server has not seen the request by then."""
    served, trusting = new_tls()
    served.sni_callback = lambda *given: time.sleep(WAIT)
    url = await serve([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], tls=served)
    url = url.replace("127.0.0.1", "localhost")
    async with timed() as session:
        fresh, reused = [await log_of(session, url, ssl=trusting) for _ in range(2)]

    assert 200 == fresh.response_status
    assert fresh.connection.connect >= WAIT * 0.9
    assert REUSED == reused.connection


@pytest.mark.parametrize(
    ("limits", "attempt_timeout"),
    [({"connect": WAIT}, None), ({}, WAIT), ({"total": WAIT}, None)],
    ids=["connect", "attempt", "call"],
)
async def test_attempt_that_is_cut_in_the_queue(serve, limits, attempt_timeout):
    """It has waited up to then, whichever limit passed."""
    url = await serve([OK, 60.0])
    retries = retrying(
        RetryStrategy.never(), attempt_timeout=attempt_timeout, max_total_attempts=1
    )
    async with timed(retries, limit=1) as session, session.get(url):
        log = await log_of(session, url, timeout=ClientTimeout(**limits))

    queued = log.connection.queued
    assert WAIT * 0.9 <= queued <= log.duration
    assert (None, None, False) == (
        log.connection.dns,
        log.connection.connect,
        log.connection.reused,
    )
    assert "in the pool's queue" in log.render()


async def test_hedge_has_times_of_its_own(url):
    """The first one has the connection, for which the hedge waits in vain."""
    hedging = HedgingClient.new_decorator(delay=WAIT / 2)
    async with timed(hedging, limit=1) as session:
        log = await log_of(session, url)

    first, hedge = log.children
    assert first.connection == log.connection
    assert first.connection.queued is None
    assert hedge.superseded
    assert 0 < hedge.connection.queued <= hedge.duration


async def test_stale_connection_was_reused():
    """The request that is sent again in its place has a fresh one."""

    def make(url, **arguments):
        builder = SessionBuilder(url, **arguments).connection_timings()
        return builder.decorator(retrying(SAFELY)).build()

    async with stale_pool(make) as (_, session), session.get("/x") as response:
        log = RequestLog.of(response)

    stale, answered = log.children
    assert "stale_connection" == stale.delay_source
    assert REUSED == stale.connection
    assert not answered.connection.reused
    assert answered.connection.connect is not None


async def test_trace_configurations_of_the_caller_go_on(url):
    """They get what the caller gives, and their list stays as it is."""
    heard = []

    async def started(session, context, given):
        await asyncio.sleep(WAIT / 10)
        heard.append(context.trace_request_ctx)

    config = aiohttp.TraceConfig()
    config.on_request_start.append(started)
    configs = [config]
    builder = SessionBuilder(trace_configs=configs).connection_timings()
    async with builder.build() as first, builder.build() as second:
        for session in first, second:
            session._connector._resolver = SlowResolver(0.0)
        logs = [
            await log_of(session, url, trace_request_ctx=number)
            for number, session in enumerate((first, second))
        ]
        traces = [*first.trace_configs, *second.trace_configs]

    assert [config] == configs
    assert [0, 1] == heard
    assert all(log.connection.connect is not None for log in logs)
    assert 4 == len(traces)
    assert 3 == len({id(each) for each in traces})


async def test_call_of_a_middleware_is_another_one(url, server):
    """A middleware that gets a token first has its times for itself."""
    there = f"http://tokens.test:{server.port}/"
    tokens = []

    async def authorize(request, handler):
        if not tokens:
            tokens.append(None)
            tokens[0] = await log_of(session, there)
        return await handler(request)

    resolver = SlowResolver()
    async with timed(resolver=resolver, middlewares=(authorize,)) as session:
        log = await log_of(session, url)

    assert WAIT * 0.9 <= tokens[0].connection.dns
    assert WAIT * 0.9 <= log.connection.dns
    # Each has its own times, and those of the server besides.
    assert tokens[0].connection.waited + WAIT * 0.9 <= tokens[0].duration
    own = log.duration - tokens[0].duration
    assert log.connection.waited + WAIT * 0.9 <= own


async def test_sends_of_a_decorator_are_added_up(url):
    """One that asks twice in an attempt has waited for both."""
    other = url.replace("orders", "prices")

    @client_decorator
    async def twice(delegate, ctx, request):
        first = await delegate.execute(ctx, request)
        await first.read()
        return await delegate.execute(ctx, request.replace(url=other))

    async with timed(twice, resolver=SlowResolver()) as session:
        log = await log_of(session, url)

    assert log.connection.dns >= WAIT * 1.9


@each_chain
async def test_timed_calls_leave_nothing_to_collect(url, decorators):
    """No cycle runs through a request that is over, good or bad."""
    resolver = SlowResolver(0.0)
    async with timed(*decorators, resolver=resolver, limit=1) as session:
        await log_of(session, url)
        with nothing_to_collect():
            logs = await asyncio.gather(
                log_of(session, url),
                log_of(session, url.replace("orders", "prices")),
                log_of(session, url, timeout=ClientTimeout(total=WAIT / 2)),
            )
            assert all(log.connection is not None for log in logs)
            del logs


async def test_nothing_reached_aiohttp(url):
    """An open circuit, a script and a mock have no connection."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    logs = []
    async with timed(CircuitBreakerClient.new_decorator(breaker)) as session:
        logs.append(await log_of(session, url))
    async with timed(ScriptedTransport([200])) as session:
        logs.append(await log_of(session, url))
    with patch_aioresponses(), aioresponses() as mock:
        mock.get(url)
        async with timed(retrying(SAFELY)) as session:
            logs.append(await log_of(session, url))

    assert [None] * 3 == [log.connection for log in logs]


def assert_counted_once(log):
    """The waits and the time of the server are parts of the call, one by one."""
    assert log.connection.connect is not None
    assert log.connection.waited + WAIT * 0.9 <= log.duration


@each_chain
async def test_resolver_that_takes_its_time(url, decorators):
    """Its time is not that to connect, and a name that is known takes none."""
    resolver = SlowResolver()
    async with timed(*decorators, resolver=resolver) as session:
        log = await log_of(session, url)
        first = log.connection
        # With a connection of its own.
        later = (await log_of(session, url, ssl=False)).connection

    assert first.dns >= WAIT * 0.9
    assert 1 == len(resolver.asked)
    assert REUSED == later or later.dns is None
    assert_counted_once(log)


async def test_second_request_that_waits_for_the_same_query(url):
    """It is told of a hit in the cache of aiohttp, before it waits."""
    resolver = SlowResolver()
    async with timed(resolver=resolver) as session:
        logs = await asyncio.gather(*(log_of(session, url) for _ in range(3)))
        known = asyncio.gather(*(log_of(session, url) for _ in range(4)))
        fresh = [log.connection for log in await known if not log.connection.reused]

    assert 1 == len(resolver.asked)
    assert all(log.connection.dns >= WAIT * 0.9 for log in logs)
    for log in logs:
        assert_counted_once(log)
    assert [None] == [each.dns for each in fresh]


@pytest.mark.parametrize("closes", [False, True], ids=["open", "closed"])
async def test_query_of_another_session_with_the_same_connector(url, closes):
    """Sessions that share a connector wait for each other's queries."""
    connector = TCPConnector(resolver=SlowResolver(WAIT * 5))
    first, second = (
        timed(connector=connector, connector_owner=False) for _ in range(2)
    )
    asking = asyncio.create_task(log_of(first, url))
    await asyncio.sleep(WAIT / 4)
    joining = asyncio.create_task(log_of(second, url))
    await asyncio.sleep(WAIT / 4)
    if closes:
        asking.cancel()
        await first.close()
    log = await joining
    await asyncio.wait([asking])
    for each in first, second, connector:
        await each.close()

    assert log.connection.dns >= WAIT
    assert_counted_once(log)


async def test_resolver_without_a_cache_is_asked_by_each(url):
    """Nobody waits for the query of another one then."""
    resolver = SlowResolver()
    async with timed(resolver=resolver, dns={"use_dns_cache": False}) as session:
        logs = await asyncio.gather(*(log_of(session, url) for _ in range(2)))

    assert 2 == len(resolver.asked)
    assert all(log.connection.dns >= WAIT * 0.9 for log in logs)


async def test_query_that_outlives_the_attempt(url):
    """It reports nothing to an attempt that is over; the next one waits for it."""
    resolver = SlowResolver(7 * WAIT)
    retries = retrying(SAFELY, attempt_timeout=5 * WAIT, max_total_attempts=2)
    async with timed(retries, resolver=resolver) as session:
        with capture_logs() as logs:
            response = await session.get(url)
        cut, answered = logs[0].children
        at_once = cut.connection
        await response.read()

    assert 1 == len(resolver.asked)
    assert AttemptTimeoutError is type(cut.response_cause)
    assert at_once == cut.connection
    assert WAIT * 4 <= cut.connection.dns <= cut.duration
    # The rest, and not the whole query.
    assert WAIT * 0.5 <= answered.connection.dns < WAIT * 4
    assert 200 == answered.response_status
