"""How long requests wait for the resolver."""

import asyncio

import pytest
from aiohttp import TCPConnector, web
from chains import retrying
from slow_resolver import SAFELY, WAIT, SlowResolver, each_chain, log_of, timed

from aioretry_smithy import AttemptTimeoutError, ConnectionTimings, capture_logs

pytestmark = pytest.mark.slow

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
