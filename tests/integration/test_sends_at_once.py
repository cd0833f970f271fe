"""Several requests of one call at once, and calls whose end is disturbed."""

from __future__ import annotations

import asyncio
import gc
import io
import itertools
import json
import weakref

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from chains import retrying

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimitingClient,
    HedgingClient,
    RequestLog,
    RetryRule,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
)


@pytest.fixture
async def server():
    """A server that answers with the text it got, the first request last."""
    numbers = itertools.count()

    async def answer(request):
        text = await request.text()
        if next(numbers) == 0:
            await asyncio.sleep(0.2)
        return web.Response(text=text)

    application = web.Application()
    application.router.add_route("*", "/", answer)
    async with TestServer(application) as serving:
        yield serving


def session_of(server, *decorators, **options):
    builder = SessionBuilder(server.make_url("/"), **options)
    for decorator in decorators:
        builder.decorator(decorator)
    return builder.build()


async def test_hedge_sends_the_json_that_was_serialized_first(server):
    """It goes out while the first request is under way."""
    numbers = itertools.count()

    def dumps(value):
        return json.dumps({**value, "number": next(numbers)})

    hedging = HedgingClient.new_decorator(0.02)
    chain = hedging, retrying()
    async with (
        session_of(server, *chain, json_serialize=dumps) as session,
        session.put("/", json={}) as response,
    ):
        assert {"number": 0} == await response.json(content_type=None)
        assert 2 == len(RequestLog.of(response).children)


@pytest.mark.parametrize("outside", [(), (retrying(),)])
async def test_bodies_that_are_sent_at_once_are_counted_each(server, outside):
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
        session_of(server, send_twice, *outside, connector=connector) as session,
        session.put("/", data=b"z") as response,
    ):
        assert b"y" * 20 == await response.read()
        log = RequestLog.of(response)

    assert [20] * (1 + len(outside)) == [
        each.request_length for each in (log, *log.children)
    ]


async def test_request_that_outlives_its_call_keeps_no_json(server):
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
    async with session_of(server, answer_meanwhile, retrying()) as session:
        async with session.put("/", json=content) as response:
            log = RequestLog.of(response)
        (await left.pop()).release()
        del content
        gc.collect()

    assert 202 == log.response_status
    assert known() is None


async def test_call_ends_though_a_response_cannot_be_closed(server):
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

    application = web.Application()
    application.router.add_put("/", stream)
    body = io.BytesIO(b"abc")
    known = weakref.ref(body)
    with capture_logs() as logs:
        async with (
            TestServer(application) as streaming,
            session_of(streaming, refuse, response_class=Stubborn) as session,
        ):
            with pytest.raises(OSError, match="not closed"):
                await session.put("/", data=body)

    del body
    gc.collect()

    assert logs[0].is_complete
    assert known() is None


async def test_failure_that_a_breaker_of_ones_own_ignores_hides_no_other(server):
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
    async with session_of(server, answer, breaking) as session:
        broken = asyncio.create_task(session.get("/"))
        await asyncio.sleep(0)
        await session.put("/")
        breaker.ignores = False
        answers.put_nowait(aiohttp.ServerDisconnectedError())
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await broken

    assert 1 == breaker.event_count.failure


async def test_deadline_that_passed_in_a_queue_shows_the_refusal():
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

    application = web.Application()
    application.router.add_get("/", wait)
    limit = ConcurrencyLimitingClient.new_decorator(1, timeout=0.2)
    async with TestServer(application) as waiting:
        builder = SessionBuilder(waiting.make_url("/")).decorator(limit)
        builder.decorator(retrying(strategy=RetryRule(statuses=[599]))).decorator(slow)
        async with builder.response_timeout(0.3).build() as session:
            timeout = aiohttp.ClientTimeout(total=5.0)
            first = asyncio.create_task(session.get("/", timeout=timeout))
            await asyncio.sleep(0.02)
            with pytest.raises(aiohttp.ServerTimeoutError) as caught:
                await session.get("/")
            (await first).release()

    assert caught.value.__cause__.__traceback__ is not None
