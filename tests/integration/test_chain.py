"""A full chain against a real server: sums, costs, and nothing left behind."""

import asyncio
import gc
import logging
import random
import weakref
from collections import Counter
from contextlib import suppress

import aiohttp
import pytest
from aiohttp import ClientTimeout, web
from chains import NOW, SAFELY, connected, retrying
from fault_server import FaultServer, answer
from races import hedging
from story_chains import CHAINS as STORY_CHAINS
from story_text import Witness, told_log
from until import nothing_to_collect

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    LoggingClient,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    RetryingClient,
    RetryingRpcClient,
    RetryStrategy,
    RetryStrategyWithContent,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    is_unprocessed,
    rpc,
)
from aioretry_smithy._limits.rate_rules import Charge


def acquired(session):
    """Count the connections that are in use."""
    return len(session.connector._acquired)


class Counting(CircuitBreaker):
    """Counts what is reported; connections that break together are one failure."""

    reported = 0

    def on_success(self, permit=None):
        self.reported += 1
        super().on_success(permit)

    def on_failure(self, permit=None):
        self.reported += 1
        super().on_failure(permit)


async def test_logs_of_many_calls_add_up_to_what_the_server_saw(serving, caplog):
    """200 calls at once: attempts, statuses and log lines all agree."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    chance = random.Random(7)
    seen = Counter()

    async def flaky(request):
        seen[request.headers.get("armeria-retry-count", "0")] += 1
        match chance.randrange(5):
            case 0:
                return web.Response(status=503, body=b"x" * chance.randrange(100_000))
            case 1:
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case _:
                return web.Response(text=request.path)

    server = await serving(flaky)
    breaker = Counting(failure_rate_threshold=1.0)

    async with connected(
        server.make_url("/"),
        CircuitBreakerClient.new_decorator(breaker),
        LoggingClient.new_decorator(),
        retrying(
            RetryStrategy.failsafe(Backoff.random(0.0, 0.01)), attempt_timeout=10.0
        ),
    ) as session:

        async def call(number):
            async with session.get(f"/{number}") as response:
                return await response.text(), RequestLog.of(response)

        results = await asyncio.gather(*(call(number) for number in range(200)))
        in_use = acquired(session)

    logs = [log for _, log in results]
    resent = 0
    attempts = Counter()
    for log in logs:
        made = 0
        for child in log.children:
            attempts[str(made)] += 1
            # What the transport sends again carries the count of its attempt.
            is_stale = child.delay_source == "stale_connection"
            resent, made = resent + is_stale, made + (not is_stale)
    assert 0 < resent
    assert [f"/{number}" for number in range(200)] == [text for text, _ in results]
    assert seen == attempts
    assert breaker.reported == sum(seen.values()) - resent
    assert 2 * (sum(seen.values()) - resent) == len(caplog.records)
    assert all(log.is_complete for log in logs)
    assert 0 == in_use


USUAL = ("retry", "full", "standard", "standard, untouched", "Smithy", "mapping")
USUAL_REQUESTS = {
    "GET": ("GET", {}),
    "POST of JSON": ("POST", {"json": {"a": 1}}),
    "POST of bytes": ("POST", {"data": b"body"}),
    "all arguments": (
        "GET",
        {
            "headers": {"X-A": "1"},
            "params": {"a": "1"},
            "cookies": {"b": "2"},
            "timeout": 5,
        },
    ),
}

chains = pytest.mark.parametrize("chain", USUAL)


def opened(chain, url):
    return STORY_CHAINS[chain].open(Witness(), base_url=url)


@chains
@pytest.mark.parametrize("kind", USUAL_REQUESTS)
async def test_success_leaves_nothing_to_collect(chain, kind):
    """Not even what a collector would find: no cycle runs through a call."""
    method, options = USUAL_REQUESTS[kind]

    async def call():
        async with session.request(method, "/", **options) as response:
            await response.read()

    async with (
        FaultServer(then=answer(200, b"fine")) as server,
        opened(chain, server.url) as session,
    ):
        await call()
        with nothing_to_collect():
            await call()


async def called(chain, path="/", look=None):
    """Make a call that may be looked at meanwhile; return what it leaves."""
    with capture_logs() as logs:
        async with (
            FaultServer(then=answer(200, b"fine")) as server,
            opened(chain, server.url) as session,
            session.get(path) as response,
        ):
            if look is not None:
                look(logs[0])
            await response.read()
    return logs[0], response, session


@chains
async def test_log_alone_stays_as_it_was(chain):
    """It shows the same when response, session and context are gone."""
    log, response, session = await called(chain)
    before = told_log(log)
    gone = weakref.ref(response), weakref.ref(session)
    del response, session
    gc.collect()

    assert [None, None] == [reference() for reference in gone]
    assert before == told_log(log)


@chains
async def test_log_first_looked_at_afterwards_is_the_same(chain):
    """A look while the call was under way makes no difference."""
    logs = [(await called(chain, look=look))[0] for look in (None, told_log)]

    assert told_log(logs[0]) == told_log(logs[1])


class Orders:
    """A server that wants a fresh token."""

    def __init__(self):
        self.requests = 0

    async def respond(self, request):
        self.requests += 1
        await request.read()
        return web.Response(status=401, text="expired")


@client_decorator
async def refresh(delegate, ctx, request):
    """Send once more, and hold the first answer meanwhile."""
    response = await delegate.execute(ctx, request)
    if response.status != 401:
        return response
    try:
        return await delegate.execute(ctx, request)
    finally:
        response.release()


def one_turn():
    return RateLimitingClient.new_decorator(RateLimit(1, per=60.0), timeout=0.0)


def one_place():
    limit = ConcurrencyLimit.fixed(1)

    @client_decorator
    async def to_the_end(delegate, ctx, request):
        """Hold the place for as long as the answer is in hand."""
        response = await delegate.execute(ctx, request)
        held.append(limit._try_enter(asyncio.get_running_loop()))
        return response

    held = []
    limiting = ConcurrencyLimitingClient.new_decorator(limit, max_pending=0)
    return lambda delegate: to_the_end(limiting(delegate))


CHAINS = {
    "retries": (retrying(SAFELY),),
    "no retries": (),
    "hedges": (hedging(5.0),),
    "hedges and retries": (hedging(5.0), retrying(SAFELY)),
}


@pytest.mark.parametrize("refusing", [one_turn, one_place])
@pytest.mark.parametrize("outside", CHAINS.values(), ids=CHAINS)
async def test_a_post_that_was_answered_is_not_sent_again(serving, refusing, outside):
    """The decorator's second request met a limit; the server has the first one."""
    orders = Orders()
    server = await serving(orders.respond)
    client = connected(server.make_url("/"), refusing(), refresh, *outside)
    async with client:
        with pytest.raises(UnprocessedRequestError) as caught:
            await client.post("/orders", data=b"one", timeout=ClientTimeout(30.0))

        assert 1 == orders.requests
        assert not is_unprocessed(caught.value)
        assert RequestLog.of(caught.value).sent


async def test_a_post_among_very_many_calls_of_a_function_is_not_sent_again(serving):
    """The log keeps the first hundred calls; what the others sent counts, too."""
    orders = Orders()
    server = await serving(orders.respond)
    refusing = connected(server.make_url("/"), refuse)

    @rpc(RetryingRpcClient.new_decorator(SAFELY), idempotent=False)
    async def order():
        for _ in range(100):
            with suppress(UnprocessedRequestError):
                await refusing.get("/stock")
        async with session.post("/orders", data=b"one"):
            pass
        await refusing.get("/stock")

    async with refusing, connected(server.make_url("/")) as session:
        with pytest.raises(UnprocessedRequestError):
            await order()

    assert 1 == orders.requests


@client_decorator
async def refuse(delegate, ctx, request):
    """Send nothing."""
    raise UnprocessedRequestError("closed today")


RATE = 1e-3
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"
PARTS = [HEAD, b'{"usa', 0.05, b'ge": 7}']
BODY = b'{"usage": 7}'


class Looking(RetryStrategyWithContent):
    """Waits for the first bytes of each body."""

    def __init__(self, length):
        self.max_content_length = length

    def should_retry(self, ctx, cause, content):
        return NOW if cause is not None else None


def metered(asked):
    """Return a limit that notes what it is told of bodies."""

    def actual(log, content):
        asked.append(content)
        return None if content is None else len(content)

    return RateLimit(RATE, burst=100, cost=lambda ctx, request: 50, actual=actual)


def limited(limit, url, strategy, response_class=aiohttp.ClientResponse, **settings):
    limiting = RateLimitingClient.new_decorator([RateLimit(1000), limit])
    retrying = RetryingClient.new_decorator(strategy, **settings)
    return connected(url, limiting, retrying, response_class=response_class)


@pytest.mark.parametrize(
    ("strategy", "settings", "content"),
    [
        (SAFELY, {}, None),
        (SAFELY, {"buffer_response": True}, BODY),
        (Looking(1000), {}, BODY),
        # The rest has not come yet when it has seen enough.
        (Looking(3), {}, None),
        (Looking(3), {"buffer_response": True}, BODY),
    ],
    ids=["stream", "buffered", "looked at", "looked at the start", "both"],
)
async def test_the_content_is_there_where_the_body_was_read_whole(
    serve, strategy, settings, content
):
    """The caller gets all of it in any case."""
    asked = []
    url = await serve(PARTS)
    async with (
        limited(metered(asked), url, strategy, **settings) as client,
        client.get("/") as response,
    ):
        assert BODY == await response.read()

    assert [content] == asked


class OwnResponse(aiohttp.ClientResponse):
    """A response class of the user's own, with a way to read bodies of its own."""

    async def read(self):
        return await super().read()


async def test_a_response_class_of_ones_own_has_content_too(serve):
    """What it has read it keeps."""
    asked = []
    url = await serve(PARTS)
    async with (
        limited(
            metered(asked), url, SAFELY, OwnResponse, buffer_response=True
        ) as client,
        client.get("/") as response,
    ):
        assert BODY == await response.read()

    assert [BODY] == asked


async def test_nothing_keeps_a_response_that_is_dropped(serve):
    """Neither the limit nor the call; its charge is forgotten with it."""
    asked = []
    limit = metered(asked)
    url = await serve(PARTS)
    async with limited(limit, url, SAFELY, buffer_response=True) as client:
        response = await client.get("/")
        kept = weakref.ref(response)
        del response
        gc.collect()

        assert kept() is None
        assert [] == [
            each
            for each in gc.get_objects()
            if isinstance(each, Charge) and each._bucket is limit._line.rule
        ]
