"""Responses that a decorator has in hand when something goes wrong."""

import asyncio
import copy
import gc
import warnings

import aiohttp
import pytest
from chains import connected, retrying, session

from aioretry_smithy import RequestLog, client_decorator, new_response
from aioretry_smithy.testing import VirtualTimeLoop

UNENDING = [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", 60.0]
RETRYING = retrying(0.0, max_total_attempts=2)


class DecoratorError(Exception):
    """An error of a decorator that has responses in hand."""


class Wrapped:
    """Around a response."""

    def __init__(self, response):
        self.response = response

    def __getattr__(self, name):
        return getattr(self.response, name)


@client_decorator
async def asks_twice(delegate, ctx, request):
    await delegate.execute(ctx, request)
    await delegate.execute(ctx, request)
    raise DecoratorError


@client_decorator
async def asks_twice_at_once(delegate, ctx, request):
    await asyncio.gather(*(delegate.execute(ctx, request) for _ in range(2)))
    raise DecoratorError


@client_decorator
async def makes_two_attempts_at_once(delegate, ctx, request):
    attempts = [ctx.derive(request) for _ in range(2)]
    await asyncio.gather(*(delegate.execute(each, request) for each in attempts))
    raise DecoratorError


@client_decorator
async def answers_itself(delegate, ctx, request):
    await delegate.execute(ctx, request)
    return new_response(request, 500)


@client_decorator
async def raises(delegate, ctx, request):
    await delegate.execute(ctx, request)
    raise DecoratorError


@pytest.fixture(autouse=True)
def _nothing_is_freed_by_chance():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    "decorators",
    [
        pytest.param([asks_twice], id="twice"),
        pytest.param([asks_twice, RETRYING], id="twice in each attempt"),
        pytest.param([RETRYING, asks_twice], id="two passes"),
        pytest.param([asks_twice_at_once], id="twice at once"),
        pytest.param([asks_twice_at_once, RETRYING], id="twice at once, retried"),
        pytest.param([RETRYING, asks_twice_at_once], id="two passes at once"),
        pytest.param([makes_two_attempts_at_once], id="attempts of its own"),
        pytest.param([answers_itself, raises], id="replaced"),
        pytest.param([answers_itself, raises, RETRYING], id="replaced, retried"),
    ],
)
async def test_call_that_fails_leaves_no_connection_in_use(serve, decorators):
    """Responses are closed, however a decorator dealt with them."""
    async with connected(await serve(UNENDING), *decorators) as session:
        with pytest.raises(DecoratorError):
            await session.get("/")

        assert set() == session.connector._acquired


@pytest.mark.parametrize("wrap", [copy.copy, Wrapped])
async def test_wrapped_response_is_the_one_that_came(serve, wrap):
    """A decorator may return something around a response; the log shows it once."""
    durations = []

    @client_decorator
    async def wraps(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        durations.append(ctx.log.duration)
        return wrap(response)

    url = await serve([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"])
    async with connected(url, wraps) as session:
        with warnings.catch_warnings():
            # A copy of a response does not know that it is closed.
            warnings.simplefilter("ignore", ResourceWarning)
            response = await session.get("/")
            log = RequestLog.of(response)
            await response.read()
            del response

        assert durations == [log.duration]


def test_times_are_those_of_the_loop_that_runs():
    """Also with a session that was made in another loop."""

    async def slow(ctx, request):
        await asyncio.sleep(2.0)
        return new_response(request)

    async def build():
        return session([slow])

    async def duration(session):
        async with session, session.get("http://example.com/") as response:
            return RequestLog.of(response).duration

    with asyncio.Runner() as real, asyncio.Runner(loop_factory=VirtualTimeLoop) as loop:
        assert 2.0 == loop.run(duration(real.run(build())))


async def test_failure_after_a_response_is_raised_as_it_is(serve):
    """To close what is still in hand hides nothing of what went wrong."""
    url = await serve(UNENDING, [ConnectionResetError])
    async with connected(url, asks_twice) as session:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get("/")

        assert set() == session.connector._acquired
