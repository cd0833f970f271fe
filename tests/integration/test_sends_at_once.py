"""Several requests of one call at once, and calls whose end is disturbed."""

import asyncio
import gc
import io
import itertools
import weakref

import aiohttp
import pytest
from aiohttp import web
from chains import connected, decorated, retrying

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimitingClient,
    RequestLog,
    RetryRule,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
)


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
