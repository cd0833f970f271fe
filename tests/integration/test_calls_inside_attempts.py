"""What an attempt holds while its body is open, for the calls that are made inside."""

import asyncio
import gc
import weakref

import aiohttp
import pytest
from aiohttp import web
from chains import NOW, connected, retrying
from download_server import FILE, Answer, DownloadServer, broken_at
from races import hedging

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    RateLimit,
    RateLimitingClient,
    ResumingClient,
    RetryLimiter,
    RetryStrategy,
    client_decorator,
)


class Shop:
    """Fails at first, with a body that never ends; one place is all there is."""

    def __init__(self):
        self.limit = ConcurrencyLimit.fixed(1)
        self.failures = 1
        self.end = asyncio.Event()

    async def respond(self, request):
        if request.path != "/orders":
            return web.Response(text="noon")
        status = 503 if self.failures > 0 else 200
        self.failures -= 1
        # No hedge follows on that.
        headers = {"Retry-After": "0"} if status == 503 else {}
        response = web.StreamResponse(status=status, headers=headers)
        response.content_length = 6
        await response.prepare(request)
        await response.write(b"ord")
        await self.end.wait()
        return response

    def open(self, server, *inside, outside=(), **settings):
        place = ConcurrencyLimitingClient.new_decorator(self.limit, max_pending=0)
        chain = *inside, place, *outside, retrying(max_total_attempts=2, **settings)
        self.client = connected(server.make_url("/"), *chain)
        return self.client

    async def ask(self):
        async with self.client.get("/time") as response:
            assert "noon" == await response.text()


@pytest.fixture
async def shop():
    shop = Shop()
    yield shop
    shop.end.set()


class AskingStrategy(RetryStrategy):
    """Calls the server before it decides."""

    def __init__(self, shop):
        self._shop = shop

    async def should_retry(self, ctx, cause):
        if ctx.request.url.path != "/orders" or ctx.log.response_status == 200:
            return None
        await self._shop.ask()
        return NOW


class AskingLimiter(RetryLimiter):
    """Calls the server before it lets a retry through."""

    def __init__(self, shop):
        self._shop = shop

    async def acquire(self, ctx, cause):
        await self._shop.ask()
        return True


def asking(shop, asked=None):
    """Call the server with an answer in hand."""

    @client_decorator
    async def ask(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        if request.url.path == "/orders":
            await shop.ask()
            if asked is not None:
                asked.append(response.status)
        return response

    return ask


@client_decorator
async def in_a_task(delegate, ctx, request):
    return await asyncio.create_task(delegate.execute(ctx, request))


ASKING = {
    "strategy": lambda shop: {"strategy": AskingStrategy(shop)},
    "strategy around hedges": lambda shop: {
        "outside": [hedging(9.0)],
        "strategy": AskingStrategy(shop),
    },
    # The place was taken in that task, and is the attempt's all the same.
    "strategy around a task": lambda shop: {
        "outside": [in_a_task],
        "strategy": AskingStrategy(shop),
    },
    "limiter": lambda shop: {
        "strategy": RetryStrategy.on_server_error_status(NOW),
        "limiter": AskingLimiter(shop),
    },
    "decorator further out": lambda shop: {"outside": [asking(shop)]},
}
"""By name: settings of a chain that makes a call while an answer's body is open."""


class TestOpenBodies:
    """The place of an answer is the attempt's until the attempt is over."""

    @pytest.mark.parametrize("settings", ASKING.values(), ids=ASKING)
    async def test_who_has_the_answer_may_call(self, serving, shop, settings):
        """The answer is decided about, or given up, after that."""
        server = await serving(shop.respond)
        async with (
            shop.open(server, **settings(shop)) as client,
            client.get("/orders") as response,
        ):
            assert 200 == response.status

        assert 0 == shop.limit.in_flight

    async def test_decorator_around_hedges_where_nothing_retries(self, serving, shop):
        """It has the answer of the one that won."""
        asked = []

        server = await serving(shop.respond)
        place = ConcurrencyLimitingClient.new_decorator(shop.limit, max_pending=0)
        url, chain = server.make_url("/"), (place, hedging(9.0), asking(shop, asked))
        shop.client = connected(url, *chain)
        async with shop.client as client, client.get("/orders"):
            with pytest.raises(ConcurrencyLimitError):
                await shop.ask()

        assert [503] == asked

    async def test_attempts_of_a_decorator_of_the_users(self, serving, shop):
        """Each takes a place; the last one is held until the call is over."""

        @client_decorator
        async def twice(delegate, ctx, request):
            response = await delegate.execute(ctx.derive(request), request)
            if response.status == 200:
                return response
            assert 1 == shop.limit.in_flight
            response.close()
            return await delegate.execute(ctx.derive(request), request)

        server = await serving(shop.respond)
        place = ConcurrencyLimitingClient.new_decorator(shop.limit, max_pending=0)
        shop.client = connected(server.make_url("/"), place, twice, asking(shop))
        async with shop.client as client, client.get("/orders") as response:
            assert 200 == response.status
            with pytest.raises(ConcurrencyLimitError):
                await shop.ask()

    async def test_caller_needs_a_place_of_its_own(self, serving, shop):
        """The attempt is over that its response came from."""
        shop.failures = 0
        server = await serving(shop.respond)
        async with shop.open(server) as client, client.get("/orders"):
            with pytest.raises(ConcurrencyLimitError):
                await shop.ask()

    async def test_task_that_outlives_the_attempt_needs_one_too(self, serving, shop):
        """It began inside, but the body is the caller's by now."""
        shop.failures = 0
        tasks = []
        over = asyncio.Event()

        async def later():
            await over.wait()
            with pytest.raises(ConcurrencyLimitError):
                await shop.ask()

        @client_decorator
        async def starting(delegate, ctx, request):
            if request.url.path == "/orders":
                tasks.append(asyncio.create_task(later()))
            return await delegate.execute(ctx, request)

        server = await serving(shop.respond)
        async with shop.open(server, starting) as client, client.get("/orders"):
            over.set()
            await tasks[0]

    async def test_body_of_a_call_inside_holds_nothing(self, serving, shop):
        """It may stay open after the attempt has given its place back."""
        shop.failures = 0
        left = []

        @client_decorator
        async def asking(delegate, ctx, request):
            if request.url.path == "/time":
                left.append(await shop.client.get("/orders"))
            return await delegate.execute(ctx, request)

        server = await serving(shop.respond)
        async with shop.open(server, asking):
            await shop.ask()
            assert 0 == shop.limit.in_flight
            left.pop().close()


async def test_hook_of_a_trace(serving, shop):
    """It runs while the request is sent, in the trial of a circuit."""
    breaker = CircuitBreaker(trial_request_interval=60.0)
    config = aiohttp.TraceConfig()

    async def on_start(session, ctx, params):
        if params.url.path == "/first":
            await shop.ask()

    config.on_request_start.append(on_start)
    server = await serving(shop.respond)
    guarded = CircuitBreakerClient.new_decorator(breaker)
    shop.client = connected(server.make_url("/"), guarded, trace_configs=[config])
    async with shop.client as client:
        breaker.enter_state(CircuitState.HALF_OPEN)
        async with client.get("/first") as response:
            assert 200 == response.status

    assert CircuitState.CLOSED is breaker.state


async def test_kept_connection_keeps_nothing_of_the_attempt(serving, shop):
    """It has the context variables of the attempt that opened it."""

    class Kept:
        pass

    @client_decorator
    async def asking(delegate, ctx, request):
        if request.url.path == "/first":
            ctx.attributes["kept"] = kept = Kept()
            seen.append(weakref.ref(kept))
            await shop.ask()
        return await delegate.execute(ctx, request)

    seen = []
    breaker = CircuitBreaker(trial_request_interval=60.0)
    chain = (
        asking,
        CircuitBreakerClient.new_decorator(breaker),
        ConcurrencyLimitingClient.new_decorator(2),
        RateLimitingClient.new_decorator(RateLimit(100)),
        retrying(),
    )
    server = await serving(shop.respond)
    shop.client = connected(server.make_url("/"), *chain)
    async with shop.client as client:
        breaker.enter_state(CircuitState.HALF_OPEN)
        async with client.get("/first") as response:
            await response.read()
        del response
        gc.collect()
        connections = len(client.connector._conns)

        assert [None] == [each() for each in seen]
        assert 1 == connections


@pytest.mark.parametrize("retries", [(), (retrying(),)], ids=["alone", "retried"])
async def test_part_of_a_download(retries):
    """It has a place of its own, after the call: the connection keeps nothing of it."""

    class Kept:
        pass

    @client_decorator
    async def asking(delegate, ctx, request):
        if request.url.path != "/time":
            kept = ctx.attributes.setdefault("kept", Kept())
            seen.append(weakref.ref(kept))
            async with client.get("/time", headers={"Range": "bytes=0-"}) as response:
                assert 206 == response.status
        return await delegate.execute(ctx, request)

    seen = []
    limit = ConcurrencyLimit.fixed(1)
    place = ConcurrencyLimitingClient.new_decorator(limit, max_pending=0)
    chain = asking, place, *retries, ResumingClient.new_decorator()
    time, parts = Answer(body=b"noon", end=True), broken_at(5_000, 9_000)[:2]
    parts.append(Answer(end=True))
    answers = [each for part in parts for each in (time, part)]
    async with DownloadServer(*answers) as server:
        client = connected(f"{server.origin}/", *chain)
        async with client:
            async with client.get("/file") as response:
                assert FILE == await response.read()
            del response
            gc.collect()

            assert [None] * 3 == [each() for each in seen]
            assert 1 == len(client.connector._conns)
            assert 0 == limit.in_flight
