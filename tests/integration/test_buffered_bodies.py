"""A body that is wanted within the attempt is read innermost, and holds nothing."""

import asyncio

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import SAFELY, connected, retrying
from races import hedging
from stream_server import StreamServer

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    ContentPreviewingClient,
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    OutlierDetection,
    RefreshingClient,
    RequestLog,
    RetryBudget,
    RetryConfig,
    client_decorator,
    new_response,
    request_options,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
WHOLE = [HEAD + b"good"]
TRUNCATED = [HEAD + b"go", None]
RESET = [HEAD + b"go", 0.01, ConnectionResetError]
STALLED = [HEAD + b"go", 60.0]
BROKEN = {"truncated": TRUNCATED, "reset": RESET, "stalled": STALLED}
QUICK = 0.5

broken = pytest.mark.parametrize(
    "script",
    [
        pytest.param(each, id=name, marks=[pytest.mark.slow] * (name == "stalled"))
        for name, each in BROKEN.items()
    ],
)


def buffering(attempts=2, strategy=SAFELY, **settings):
    return retrying(
        strategy,
        max_total_attempts=attempts,
        attempt_timeout=QUICK,
        buffer_response=True,
        **settings,
    )


async def get(session, path=""):
    """Return the body of a response, or the class of what was raised."""
    try:
        async with session.get(path) as response:
            return await response.read()
    except (aiohttp.ClientError, asyncio.CancelledError) as error:
        return type(error)


def noting(seen):
    """Make a decorator of a user's, who notes what comes back."""

    @client_decorator
    async def note(delegate, ctx, request):
        try:
            response = await delegate.execute(ctx, request)
        except BaseException as cause:
            seen.append(type(cause))
            raise
        seen.append(response.status)
        return response

    return note


@broken
async def test_circuit_breaker_counts_a_failure(serve, script):
    """And no success before."""
    breaker = CircuitBreaker("orders")
    inside = CircuitBreakerClient.new_decorator(breaker)
    url = await serve(script)
    async with connected(url, inside, buffering(4)) as session:
        await get(session)

    assert (0, 4) == (breaker.event_count.success, breaker.event_count.failure)


@broken
async def test_limit_is_cut(serve, script):
    """As it is where the answers do not come at all."""
    limit = ConcurrencyLimit.aimd(initial=8)
    inside = ConcurrencyLimitingClient.new_decorator(limit)
    url = await serve(script)
    async with connected(url, inside, buffering()) as session:
        await get(session)

    assert limit.limit < 8
    assert 0 == limit.in_flight


@broken
async def test_endpoint_is_ejected(serve, script):
    """The next attempt goes to another one."""
    bad, good = await serve(script), await serve(WHOLE)
    outliers = OutlierDetection(consecutive_failures=2)
    group = EndpointGroup.of(
        bad,
        good,
        selection=EndpointSelectionStrategy.in_order(),
        outlier_detection=outliers,
    )
    async with connected(group, buffering(1)) as session:
        bodies = [await get(session) for _ in range(3)]

    assert b"good" not in bodies[:2]
    assert b"good" == bodies[2]
    assert [0, 0] == [each.in_flight for each in group.states.values()]


@broken
async def test_own_decorator_hears_of_it(serve, script):
    """An exception in place of a response; and of the next attempt a response."""
    seen = []
    url = await serve(script, WHOLE)
    async with connected(url, noting(seen), buffering()) as session:
        assert b"good" == await get(session)

    assert 2 == len(seen)
    assert issubclass(seen[0], aiohttp.ClientError)
    assert 200 == seen[1]


@broken
async def test_hedge_is_sent_for_it(serve, script):
    """Where the body of the first one breaks off, or does not come in time."""
    url = await serve(script, WHOLE)
    inside = HedgingClient.new_decorator(QUICK / 3)
    async with connected(url, inside, buffering(1)) as session:
        async with session.get("") as response:
            assert b"good" == await response.read()
        log = RequestLog.of(response)

    assert [False, True] == [child.is_hedge for child in log.children]
    assert 200 == log.children[1].response_status


@broken
async def test_settings_of_a_block_count(serve, script):
    """As those of the client; and the other way round."""
    seen = []
    url = await serve(script, WHOLE, script)
    buffered = RetryConfig(
        SAFELY, max_total_attempts=2, attempt_timeout=QUICK, buffer_response=True
    )
    plain = RetryConfig(SAFELY, max_total_attempts=2, attempt_timeout=QUICK)
    async with connected(url, noting(seen), retrying(plain)) as session:
        with request_options(retry=buffered):
            assert b"good" == await get(session)
        assert 200 == seen[-1]
        assert issubclass(await get(session), aiohttp.ClientError)

    assert [200, 200] == seen[1:]


async def test_attempt_that_was_cut_names_its_limit(serve):
    """While its body was read; the next one has its own time."""
    url = await serve(STALLED, WHOLE)
    async with connected(url, buffering()) as session, session.get("") as response:
        cause = RequestLog.of(response).children[0].response_cause

    assert AttemptTimeoutError is type(cause)
    assert "attempt 1 had 0.500 s, which passed while its body was read" in str(cause)


@broken
async def test_preview_has_what_came_of_a_body(serve, script):
    """As far as that is, in the log of the attempt that it broke."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n"
    inside = ContentPreviewingClient.new_decorator(20)
    url = await serve([head + b"go", *script[1:]], [head + b"good"])
    async with connected(url, inside, buffering()) as session, session.get("") as got:
        children = RequestLog.of(got).children

    assert ["go", "good"] == [each.response_content_preview for each in children]


async def test_injected_cut_is_a_failure_further_out(serve):
    """A fault stands for the server, whose body is read within the attempt."""
    breaker = CircuitBreaker("orders")
    inside = CircuitBreakerClient.new_decorator(breaker)
    fault = InjectedFault.cut_body(after=2)
    faults = FaultInjectingClient.new_decorator(fault)
    url = await serve(WHOLE)
    async with connected(url, faults, inside, buffering(3)) as session:
        assert aiohttp.ClientPayloadError is await get(session)
        assert not session.connector._acquired

    assert (0, 3) == (breaker.event_count.success, breaker.event_count.failure)


async def test_response_from_elsewhere_is_read_too(serve):
    """What a decorator fetched by itself is read before the attempt is over."""
    there, seen = await serve(TRUNCATED, WHOLE), []
    async with aiohttp.ClientSession() as other:

        @client_decorator
        async def fetch(delegate, ctx, request):
            return await other.get(there)

        async with connected(None, fetch, noting(seen), buffering()) as session:
            assert b"good" == await get(session, "http://localhost/")

    assert [200, 200] == seen


async def test_body_that_is_no_stream_is_read_whole():
    """A response that never touched the network has all of it."""
    seen = []

    @client_decorator
    async def answer(delegate, ctx, request):
        return new_response(request, 200, body=b"made")

    async with connected(None, answer, noting(seen), buffering()) as session:
        assert b"made" == await get(session, "http://localhost/")

    assert [200] == seen


PATIENCE = 3.0
BAD = b"HTTP/1.1 503 Busy\r\nContent-Length: 7\r\n\r\n"
DENIED = BAD.replace(b"503", b"401")
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"


class Stalling(StreamServer):
    """Answers the first requests badly, and never sends the rest of their bodies.

    Not before all of them are there: the second request of a quick call is no first.
    """

    def __init__(self, bad, first):
        self.bad, self.first = bad, first
        self.asked = 0
        self._all_asked = asyncio.Event()
        super().__init__(self._answer)

    async def _answer(self, reader, writer):
        while True:
            await reader.readuntil(b"\r\n\r\n")
            self.asked += 1
            is_first = self.asked <= self.first
            if self.asked == self.first:
                self._all_asked.set()
            await self._all_asked.wait()
            writer.write(self.bad if is_first else GOOD)
            await writer.drain()


async def fetch():
    return "a token"


def limited(delegate):
    return hedging(9.0, limiter=RetryBudget())(delegate)


REFRESHING = RefreshingClient.new_decorator(fetch)
RETRYING = retrying(SAFELY)
CHAINS = {
    "hedging": (BAD, [hedging(9.0)]),
    "hedging late": (BAD, [hedging(0.02)]),
    "hedging with a limiter": (BAD, [limited]),
    "hedging in retries": (BAD, [hedging(9.0), RETRYING]),
    "retrying": (BAD, [RETRYING]),
    "refreshing": (DENIED, [REFRESHING]),
    "refreshing in hedges": (DENIED, [REFRESHING, hedging(9.0)]),
    "refreshing in retries": (DENIED, [REFRESHING, RETRYING]),
}


@pytest.mark.parametrize(("bad", "chain"), CHAINS.values(), ids=CHAINS)
async def test_ten_calls_over_ten_connections_do_not_wait_for_themselves(bad, chain):
    """Each gives back that of its bad answer before it sends another request."""
    connector = aiohttp.TCPConnector(limit=10)
    settings = {"connector": connector, "timeout": ClientTimeout(PATIENCE)}
    async with (
        Stalling(bad, 10) as server,
        connected(server.url(), *chain, **settings) as client,
    ):

        async def call():
            async with client.get("/") as response:
                return response.status, await response.read()

        answers = await asyncio.gather(*(call() for _ in range(10)))

        assert [(200, b"good")] * 10 == answers
        assert set() == connector._acquired


@pytest.mark.parametrize(("bad", "chain"), CHAINS.values(), ids=CHAINS)
async def test_one_place_is_enough(bad, chain):
    """It is free again before the further request waits for one."""
    limit = ConcurrencyLimit.fixed(1)
    limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=PATIENCE)
    async with Stalling(bad, 1) as server:
        timeout = ClientTimeout(2 * PATIENCE)
        chain = limiting, *chain
        async with connected(server.url(), *chain, timeout=timeout) as client:
            async with client.get("/") as response:
                assert (200, b"good") == (response.status, await response.read())
            log = RequestLog.of(response)

    assert 0 == limit.in_flight
    # One that waits for itself ends when the limit does, or the deadline.
    assert log.duration < PATIENCE * 0.9
