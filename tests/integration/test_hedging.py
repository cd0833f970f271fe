"""Several requests of one call at once: whole bodies, and nothing left behind."""

import asyncio
import gc
import io
import itertools
import random
import weakref
from contextlib import suppress

import aiohttp
import pytest
from aiohttp import web
from chains import connected, decorated, retrying
from races import hedging
from until import until

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RequestLog,
    RetryRule,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
)
from aioretry_smithy._hedging.hedged_request import _given_up

SIZE = 1 << 20
CHUNK = 1 << 16
QUICK, SLOW = 0.01, 0.5
"""Seconds to an answer, less and much more than a delay of some milliseconds."""

IS_HEDGE = "armeria-retry-count"


def body_of(number):
    return number.to_bytes(8) * (SIZE // 8)


async def respond(request):
    """Send a body whose number is in the path, in pieces, early or late."""
    loser, number = request.match_info["path"].split("/")
    is_late = (IS_HEDGE in request.headers) == (loser == "hedge")
    await asyncio.sleep(SLOW if loser != "none" and is_late else QUICK)
    response = web.StreamResponse(headers={"Content-Length": str(SIZE)})
    await response.prepare(request)
    body = body_of(int(number))
    for start in range(0, SIZE, CHUNK):
        await response.write(body[start : start + CHUNK])
        await asyncio.sleep(0)
    return response


@client_decorator
async def stubborn(delegate, ctx, request):
    """Be busy for a while when cancelled."""
    try:
        return await delegate.execute(ctx, request)
    except asyncio.CancelledError:
        await asyncio.sleep(SLOW / 4)
        raise


async def what_is_held(client, limit):
    """Wait until all is free again, and return what is not."""

    def held():
        return [*client.connector._acquired, *_given_up], limit.in_flight

    with suppress(TimeoutError):
        await until(lambda: held() == ([], 0))
    return held()


@pytest.mark.parametrize(
    "number", [40, pytest.param(1000, marks=pytest.mark.long)], ids=["some", "many"]
)
async def test_bodies_arrive_whole_and_nothing_is_left(serving, number):
    """Hedges and first requests that win have whole bodies; losers are cancelled."""
    server = await serving(respond)
    chance = random.Random(7)
    limit, breaker = ConcurrencyLimit.fixed(100), CircuitBreaker()
    whole, left, free = [], [], asyncio.Semaphore(10)
    client = connected(
        server.make_url("/"),
        stubborn,
        ConcurrencyLimitingClient.new_decorator(limit),
        CircuitBreakerClient.new_decorator(breaker),
        hedging(0.005),
        retrying(),
    )

    async def call(number):
        loser = chance.choice(["first", "hedge", "none"])
        patience = chance.choice([None, None, chance.uniform(0.0, 0.05)])
        async with free:
            try:
                async with asyncio.timeout(patience):
                    async with client.get(f"{loser}/{number}") as response:
                        body = await response.read()
            except TimeoutError:
                left.append(number)
            else:
                assert body_of(number) == body
                whole.append(RequestLog.of(response))

    async with client:
        await asyncio.gather(*map(call, range(number)))

        assert ([], 0) == await what_is_held(client, limit)

    assert number == len(whole) + len(left)
    assert min(len(whole), len(left)) >= number / 40
    winners = {log.children[-1].superseded for log in whole}
    assert {True, False} == winners
    assert all(log.response_length == SIZE for log in whole)
    assert 0 == breaker.event_count.failure


async def test_a_response_that_a_decorator_drops_is_closed(serving):
    """It is cancelled after the headers of its request, and looks after nothing."""

    @client_decorator
    async def thorough(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        if not ctx.log.is_hedge:
            kept.append(response)
            await asyncio.sleep(SLOW)
        return response

    async def respond(request):
        response = web.StreamResponse(headers={"Content-Length": str(SIZE)})
        await response.prepare(request)
        await response.write(bytes(SIZE))
        return response

    kept = []
    server = await serving(respond)
    async with connected(server.make_url("/"), thorough, hedging(0.05)) as client:
        async with client.get("/") as response:
            closed = [each.closed for each in kept]
            body = await response.read()
        log = RequestLog.of(response)

        assert [True] == closed
        assert bytes(SIZE) == body
        assert set() == client.connector._acquired

    assert [True, False] == [each.superseded for each in log.children]


async def test_the_connection_of_a_loser_is_closed(serving):
    """The server sees the end of the connection and need not go on."""
    transports = []

    async def wait(request):
        if IS_HEDGE not in request.headers:
            transports.append(request.transport)
            await is_over.wait()
        return web.Response(text="hedge")

    is_over = asyncio.Event()

    server = await serving(wait)
    async with connected(server.make_url("/"), hedging(0.01)) as client:
        async with client.get("/") as response:
            text = await response.text()
        await until(transports[0].is_closing)
        is_over.set()

        assert "hedge" == text
        assert set() == client.connector._acquired


@pytest.mark.parametrize("delay", [0.05, 9.0], ids=["under way", "at once"])
async def test_a_bad_answer_keeps_no_connection_from_the_others(serving, delay):
    """It is closed when its long body would, so that a hedge gets the only one."""
    bad, good = SIZE * 4, SIZE

    async def respond(request):
        is_hedge = IS_HEDGE in request.headers
        response = web.StreamResponse(status=200 if is_hedge else 503)
        await asyncio.sleep(QUICK if is_hedge else 2 * 0.05)
        await response.prepare(request)
        with suppress(ConnectionError):
            await response.write(bytes(good if is_hedge else bad))
        return response

    server = await serving(respond)
    connector = aiohttp.TCPConnector(limit=1)
    settings = {"connector": connector, "timeout": aiohttp.ClientTimeout(5)}
    async with connected(server.make_url("/"), hedging(delay), **settings) as client:
        async with client.get("/") as response:
            body = await response.read()

            assert (200, good) == (response.status, len(body))
        assert set() == connector._acquired


@pytest.fixture
async def url(serving):
    """Where a server answers with the text it got, the first request last."""
    numbers = itertools.count()

    async def answer(request):
        text = await request.text()
        if next(numbers) == 0:
            await asyncio.sleep(0.2)
        return web.Response(text=text)

    return (await serving(answer)).make_url("/")


@pytest.mark.parametrize("outside", [(), (retrying(),)])
async def test_bodies_that_are_sent_at_once_are_counted_each(url, outside):
    """The log has the length of the request that was answered last."""

    @client_decorator
    async def send_twice(delegate, ctx, request):
        sending = [
            asyncio.create_task(delegate.execute(ctx, request.replace(data=body)))
            for body in (b"x" * 1000, b"y" * 20)
        ]
        await (await sending[0]).read()
        return await sending[1]

    connector = aiohttp.TCPConnector(limit=1)
    async with (
        connected(url, send_twice, *outside, connector=connector) as session,
        session.put("/", data=b"z") as response,
    ):
        assert b"y" * 20 == await response.read()
        log = RequestLog.of(response)

    assert [20] * (1 + len(outside)) == [
        each.request_length for each in (log, *log.children)
    ]


async def test_request_that_outlives_its_call_keeps_no_json(url):
    """A decorator may leave one under way; its call is over all the same."""
    left = []

    @client_decorator
    async def answer_meanwhile(delegate, ctx, request):
        left.append(asyncio.create_task(delegate.execute(ctx, request)))
        await asyncio.sleep(0.02)
        return new_response(request, 202)

    class Content(dict):
        """One that can be referred to weakly."""

    content = Content(a=1)
    known = weakref.ref(content)
    async with connected(url, answer_meanwhile, retrying()) as session:
        async with session.put("/", json=content) as response:
            log = RequestLog.of(response)
        (await left.pop()).release()
        del content
        gc.collect()

    assert 202 == log.response_status
    assert known() is None


async def test_call_ends_though_a_response_cannot_be_closed(serving):
    """Its log, which lives on, keeps nothing of the caller's."""

    class Stubborn(aiohttp.ClientResponse):
        def close(self):
            is_open = self._connection is not None
            super().close()
            if is_open:
                raise OSError("not closed")

    @client_decorator
    async def refuse(delegate, ctx, request):
        await delegate.execute(ctx, request)
        raise ValueError("refused")

    async def stream(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x")
        await asyncio.sleep(0.2)
        return response

    url = (await serving(stream)).make_url("/")
    body = io.BytesIO(b"abc")
    known = weakref.ref(body)
    with capture_logs() as logs:
        async with connected(url, refuse, response_class=Stubborn) as session:
            with pytest.raises(OSError, match="not closed"):
                await session.put("/", data=body)

    del body
    gc.collect()

    assert logs[0].is_complete
    assert known() is None


async def test_failure_that_a_breaker_of_ones_own_ignores_hides_no_other(url):
    """What it does not count does not begin a round either."""

    class Forgiving(CircuitBreaker):
        ignores = True

        def on_failure(self, permit=None):
            if not self.ignores:
                super().on_failure(permit)

    breaker = Forgiving("server")
    answers = asyncio.Queue()

    @client_decorator
    async def answer(delegate, ctx, request):
        found = await answers.get() if request.method == "GET" else 500
        if isinstance(found, Exception):
            raise found
        return new_response(request, found)

    breaking = CircuitBreakerClient.new_decorator(breaker)
    async with connected(url, answer, breaking) as session:
        broken = asyncio.create_task(session.get("/"))
        await asyncio.sleep(0)
        await session.put("/")
        breaker.ignores = False
        answers.put_nowait(aiohttp.ServerDisconnectedError())
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await broken

    assert 1 == breaker.event_count.failure


async def test_deadline_that_passed_in_a_queue_shows_the_refusal(serving):
    """Its cause keeps the frames in which it was raised."""

    @client_decorator
    async def slow(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        except Exception:
            await asyncio.sleep(0.15)
            raise

    async def wait(request):
        await asyncio.sleep(0.5)
        return web.Response()

    limit = ConcurrencyLimitingClient.new_decorator(1, timeout=0.2)
    chain = limit, retrying(RetryRule(statuses=[599])), slow
    builder = SessionBuilder((await serving(wait)).make_url("/")).response_timeout(0.3)
    async with decorated(builder, *chain).build() as session:
        timeout = aiohttp.ClientTimeout(total=5.0)
        first = asyncio.create_task(session.get("/", timeout=timeout))
        await asyncio.sleep(0.02)
        with pytest.raises(aiohttp.ServerTimeoutError) as caught:
            await session.get("/")
        (await first).release()

    assert caught.value.__cause__.__traceback__ is not None


async def test_what_breaks_in_while_a_body_is_closed_closes_the_response(serving):
    """The caller never gets it; without that its connection would stay in use."""
    got, closing = [], asyncio.Event()

    class Slow(aiohttp.payload.BytesIOPayload):
        async def close(self):
            closing.set()
            await asyncio.sleep(60.0)

    @client_decorator
    async def keep(delegate, ctx, request):
        got.append(await delegate.execute(ctx, request))
        return got[-1]

    async def stream(request):
        await request.read()
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x")
        await asyncio.sleep(0.2)
        return response

    url = (await serving(stream)).make_url("/")
    async with connected(url, keep) as session:
        call = asyncio.create_task(session.put("/", data=Slow(io.BytesIO(b"abc"))))
        await closing.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        assert got[0].closed
