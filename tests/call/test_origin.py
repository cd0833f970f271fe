"""Where a failure comes from, by the frames that it came through."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from calls import begin, record_of
from chains import URL, now, refused, retrying, session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    DecoratingClient,
    FailFastError,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetrySafety,
    RetryStrategy,
    UnprocessedRequestError,
    client_decorator,
    is_unprocessed,
    new_response,
    retry_safety,
    rpc,
)
from aioretry_smithy._call.recorder import judge_request
from aioretry_smithy._failures.failure import was_in_pool
from aioretry_smithy.testing import ScriptedTransport

BREAKER = CircuitBreaker("orders")
CALL = "calls.pop(0)(*([calls] if calls else []))"


def function(module, name, body):
    """Make a function that looks as if it stood in another module."""
    variables = {"__name__": module}
    exec(f"def {name}(calls):\n    {body}", variables)
    return variables[name]


def raised(cause, *functions):
    """Raise an exception in functions that call each other, and catch it."""
    future = asyncio.get_running_loop().create_future()
    future.set_exception(cause)
    # Written in C, so it adds no frame of its own.
    calls = [*functions, future.result]
    with pytest.raises(type(cause)):
        calls.pop(0)(*([calls] if calls else []))
    return cause


REQUEST = function("aiohttp.client", "_request", f"history = (); req = None; {CALL}")
SENDING = function(
    "aiohttp.client", "_request", f"history = (); req = _connect = 1; {CALL}"
)
RENAMED = function("aiohttp.client", "_request", f"hops = (); req = 1; {CALL}")
TIMER = function("aiohttp.helpers", "__exit__", CALL)
POOL = function("aiohttp.connector", "_wait_for_available_connection", CALL)
BODY = [
    SENDING,
    function("aiohttp.client_reqrep", "write_bytes", CALL),
    function("aiohttp.payload", "write_with_length", CALL),
]
WIRE = function("aiohttp.http_writer", "write", CALL)
OTHERS = function("shop.orders", "read", CALL)


@pytest.mark.parametrize(
    ("functions", "safety"),
    [
        ([], RetrySafety.MAYBE),
        ([REQUEST], RetrySafety.NO),
        ([REQUEST, OTHERS], RetrySafety.NO),
        ([REQUEST, TIMER], RetrySafety.MAYBE),
        ([SENDING], RetrySafety.MAYBE),
        (BODY, RetrySafety.NO),
        ([*BODY, OTHERS], RetrySafety.NO),
        ([*BODY, OTHERS, WIRE], RetrySafety.NO),
        ([*BODY, WIRE], RetrySafety.MAYBE),
        (BODY[:2], RetrySafety.MAYBE),
    ],
)
async def test_frames_tell_the_caller_from_the_transport(functions, safety):
    """A timeout says by itself nothing about whose it is."""
    cause = raised(TimeoutError(), *functions)
    judge_request(cause, record_of(begin())[1])

    assert safety is retry_safety(cause)


async def test_what_aiohttp_renames_is_taken_for_a_redirect():
    """The safe side: a POST does not go out again."""
    cause = raised(aiohttp.ConnectionTimeoutError(), RENAMED)
    judge_request(cause, record_of(begin())[1])

    assert not is_unprocessed(cause)


class Refusing(DecoratingClient):
    """Refuses each second request."""

    refuses = False

    async def execute(self, ctx, request):
        self.refuses = not self.refuses
        if not self.refuses:
            raise UnprocessedRequestError("no place")
        return await self.delegate.execute(ctx, request)


@client_decorator
async def insistent(delegate, ctx, request):
    """Send again whatever came of it."""
    with suppress(aiohttp.ClientError, TimeoutError):
        (await delegate.execute(ctx, request)).close()
    return await delegate.execute(ctx, request)


@pytest.mark.parametrize("clients", [(), (retrying(RetryStrategy.never()),)])
@pytest.mark.parametrize("inside", [(), (Refusing,)], ids=["transport", "decorator"])
@pytest.mark.parametrize(
    ("earlier", "unprocessed"),
    [
        (401, False),
        (TimeoutError(), False),
        (aiohttp.ServerDisconnectedError(), False),
        (refused(), True),
        (UnprocessedRequestError(), True),
    ],
)
async def test_an_earlier_send_in_the_same_attempt_counts(
    earlier, unprocessed, inside, clients
):
    """Refused twice is unprocessed; what the server may have seen once is not."""
    answers = [earlier, UnprocessedRequestError("no place")]
    async with session(answers, *inside, insistent, *clients) as client:
        with pytest.raises(UnprocessedRequestError) as caught:
            await client.post(URL)

    assert unprocessed is is_unprocessed(caught.value)


@pytest.mark.parametrize(
    ("earlier", "attempts"),
    [(ValueError(), 1), (UnprocessedRequestError(), 2), (FailFastError(BREAKER), 2)],
)
async def test_attempts_that_a_decorator_makes_of_a_function(earlier, attempts):
    """What the function did in the first of them is not known to be nothing."""
    failures = [earlier, UnprocessedRequestError("no place")] * 2

    @client_decorator
    async def derive(delegate, ctx, request):
        with suppress(type(earlier)):
            await delegate.execute(ctx.derive(request), request)
        return await delegate.execute(ctx.derive(request), request)

    strategy = RetryStrategy.on_unprocessed(Backoff.without_delay())

    @rpc(derive, RetryingRpcClient.new_decorator(strategy, 2))
    async def operation():
        raise failures.pop(0)

    with pytest.raises(UnprocessedRequestError) as caught:
        await operation()

    assert 2 * attempts == 4 - len(failures)
    assert (attempts == 2) is is_unprocessed(caught.value)


@pytest.mark.parametrize("clients", [(), (retrying(RetryStrategy.failsafe()),)])
async def test_deadline_that_passes_in_a_queue_after_a_send(clients):
    """The server has seen the request that went out before the wait."""
    limit = ConcurrencyLimit.fixed(1)

    @client_decorator
    async def hold(delegate, ctx, request):
        """Keep the place as a body under way does."""
        response = await delegate.execute(ctx, request)
        limit._try_enter(now())
        return response

    limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=None)
    transport = ScriptedTransport([401, 401])
    chain = limiting, hold, insistent, *clients
    async with session(transport, *chain, timeout=5.0) as client:
        with pytest.raises(ResponseTimeoutError) as caught:
            await client.post(URL)

    assert 1 == len(transport.requests)
    assert not is_unprocessed(caught.value)


async def test_what_stood_in_for_the_server_was_no_send():
    """The answer of a fallback proves nothing; this request reached nobody."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    answers = iter([401, refused()])

    def fallback(ctx, request):
        answer = next(answers)
        if isinstance(answer, int):
            return new_response(request, answer)
        raise answer

    guarded = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
    async with session([], guarded, insistent) as client:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await client.post(URL)

    assert is_unprocessed(caught.value)


async def test_wait_of_an_earlier_request_is_not_this_one_s():
    """The context may be the failure of another request, which went elsewhere."""
    earlier = raised(TimeoutError(), REQUEST, POOL)
    later = raised(TimeoutError(), SENDING)
    later.__context__ = earlier
    for cause in (earlier, later):
        judge_request(cause, record_of(begin())[1])

    assert was_in_pool(earlier)
    assert not was_in_pool(later)


@pytest.mark.parametrize("was_sent", [True, False])
async def test_request_that_was_sent_stays_sent(was_sent):
    """A failure before anything went out does not take that back."""
    call = record_of(begin())[0]
    call.was_sent = was_sent
    judge_request(UnprocessedRequestError("full"), call)

    assert was_sent is call.was_sent
