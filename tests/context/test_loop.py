"""The way of a request through the hooks of a chain, in and out again."""

from __future__ import annotations

import asyncio
from unittest import mock

import aiohttp
import pytest
from calls import REQUEST, begin
from chains import SAFELY, URL, now, retrying, session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    CircuitState,
    FailFastError,
    RequestLog,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    new_response,
    unwrap,
)
from aioretry_smithy._call.hooks import WAIT, Hooks
from aioretry_smithy._context.client import DecoratingClient
from aioretry_smithy.smithy import sdk_headers
from aioretry_smithy.testing import ScriptedTransport


class Noting(Hooks):
    """Notes what it is told; raises where it is asked to."""

    def __init__(self, name, notes, raises=None):
        self.name, self.notes, self.raises = name, notes, raises

    def enter(self, call, scope, request):
        self.notes.append(("enter", self.name))
        return self.name

    def leave(self, call, scope, permit, result, cause):
        self.notes.append(("leave", permit, type(cause)))
        if self.raises is not None:
            raise self.raises

    def cancel(self, call, scope, permit, cause):
        self.notes.append(("cancel", permit, type(cause)))


def noting(*arguments):
    """Make a decorator with such hooks."""

    class Client(DecoratingClient):
        _hooks = Noting(*arguments)

    return Client


async def test_each_is_told_of_the_outcome_once():
    """The innermost first; what it raises is the outcome for those further out."""
    notes = []
    chain = noting("inner", notes, KeyError()), noting("outer", notes)
    async with session([200], *chain) as client:
        with pytest.raises(KeyError):
            await client.get(URL)

    assert [
        ("enter", "outer"),
        ("enter", "inner"),
        ("leave", "inner", type(None)),
        ("leave", "outer", KeyError),
    ] == notes


async def test_what_is_no_exception_is_no_outcome():
    """It is told as a cancellation, whoever raised it."""
    notes = []
    chain = noting("inner", notes, KeyboardInterrupt()), noting("outer", notes)
    async with session([200], *chain) as client:
        with pytest.raises(KeyboardInterrupt):
            await client.get(URL)

    assert ("cancel", "outer", KeyboardInterrupt) == notes[-1]


async def test_response_is_closed_where_hooks_raise():
    """Nobody gets it any more."""
    response = new_response(REQUEST, body=b"abc")
    async with session([response], noting("one", [], KeyError())) as client:
        with (
            mock.patch.object(type(response), "close") as close,
            pytest.raises(KeyError),
        ):
            await client.get(URL)

    close.assert_called_once_with()


async def test_hooks_that_wait_have_to_say_for_what():
    """Those that never do need no method for it."""

    class Waiting(Noting):
        def enter(self, call, scope, request):
            return WAIT

    class Client(DecoratingClient):
        _hooks = Waiting("one", [])

    with pytest.raises(NotImplementedError):
        await Client(ScriptedTransport([200])).execute(begin(), REQUEST)


async def test_answer_of_a_fallback_outside_of_retries():
    """It answers the call, and nothing is retried."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)

    def fallback(ctx, request):
        return new_response(request, 203)

    guarded = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
    async with session([200], SAFELY_RETRIED, guarded) as client:
        response = await client.get(URL)

    assert 203 == response.status
    assert () == RequestLog.of(response).children


SAFELY_RETRIED = retrying(SAFELY)


@pytest.mark.parametrize("answers", [[200], [503, 200]])
async def test_hooks_outside_of_retries_may_take_their_time(answers):
    """The call waits for them."""
    judged = []

    class Slow(CircuitBreakerStrategy):
        async def should_report_as_success(self, ctx, cause):
            await asyncio.sleep(1.0)
            judged.append(ctx.log.response_status)
            return True

    guarded = CircuitBreakerClient.new_decorator(CircuitBreaker(), Slow())
    async with session(answers, SAFELY_RETRIED, guarded) as client:
        await client.get(URL)

    assert [200] == judged
    assert 1.0 == now()


async def test_cancelled_call_with_headers_of_ours():
    """What was set for a request is dropped with it."""
    waiting = asyncio.Event()

    async def never(ctx, request):
        waiting.set()
        await asyncio.sleep(3600.0)

    async with session([never], sdk_headers, SAFELY_RETRIED) as client:
        call = asyncio.ensure_future(client._request("GET", URL))
        await waiting.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_other_attributes_of_clients_may_come_and_go():
    """Only some of them concern the way of a call."""
    client = noting("one", [])(ScriptedTransport([200]))
    client.note = 1
    del client.note
    response = await client.execute(begin(), REQUEST)

    assert 200 == response.status


async def test_refusal_outside_of_retries():
    """It ends the call, and nothing is retried."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    guarded = CircuitBreakerClient.new_decorator(breaker)
    async with session([200], SAFELY_RETRIED, guarded) as client:
        with pytest.raises(FailFastError) as caught:
            await client.get(URL)

    assert () == RequestLog.of(caught.value).children


async def test_a_replaced_execute_is_seen_and_forgotten():
    """As that of any object, at once."""
    async with session([503, 200, 503, 200], SAFELY_RETRIED) as client:
        retries = unwrap(client, RetryingClient)
        first = await client.get(URL)
        with mock.patch.object(retries, "execute", retries.delegate.execute):
            second = await client.get(URL)
        third = await client.get(URL)

    assert [200, 503, 200] == [each.status for each in (first, second, third)]


async def test_retries_around_retries_made_by_hand():
    """A builder refuses such a chain; by hand the outer ones see an answer."""
    transport = ScriptedTransport([503, 503, 503, 200])
    twice = retrying(SAFELY, max_total_attempts=2)
    response = await twice(twice(transport)).execute(begin(), REQUEST)

    assert (503, 2) == (response.status, len(transport.requests))


async def test_a_budget_of_one_s_own_hears_of_each_success():
    """Also of a first attempt, which needs no context otherwise."""
    heard = []

    class Own(RetryBudget):
        def on_success(self, ctx):
            heard.append(ctx.log.response_status)
            super().on_success(ctx)

    budget = Own(capacity=10)
    retries = retrying(RetryStrategy.failsafe(), limiter=budget)
    async with session([204], retries) as client:
        await client.get(URL)

    assert [204] == heard


async def test_what_fails_around_a_call_is_no_failure_of_its_attempt():
    """The attempt keeps its answer in the log, though nobody had looked at it yet."""

    class Raising(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            raise KeyError

    guarded = CircuitBreakerClient.new_decorator(CircuitBreaker(), Raising())
    async with session([200], SAFELY_RETRIED, guarded) as client:
        with pytest.raises(KeyError) as caught:
            await client.get(URL)
    log = RequestLog.of(caught.value)

    assert KeyError is type(log.response_cause)
    assert [200] == [each.response_status for each in log.children]


async def test_what_fails_around_a_call_that_nobody_has_looked_at(monkeypatch):
    """Its attempt keeps its answer, as that of any other call."""

    class Raising(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            raise KeyError

    async def answer(session, method, url, **options):
        return new_response(REQUEST, 204)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", answer)
    guarded = CircuitBreakerClient.new_decorator(CircuitBreaker(), Raising())
    builder = SessionBuilder().decorator(SAFELY_RETRIED).decorator(guarded)
    async with builder.build() as client:
        with pytest.raises(KeyError) as caught:
            await client.get(URL)
    log = RequestLog.of(caught.value)

    assert KeyError is type(log.response_cause)
    assert [204] == [each.response_status for each in log.children]


async def test_log_of_a_call_that_succeeds_at_once_has_its_attempt():
    """One, made when it is asked for, and the same one from then on."""
    async with session([204], SAFELY_RETRIED) as client:
        log = RequestLog.of(await client.get(URL))
    (attempt,) = log.children

    assert (1, 204, True) == (attempt.attempt, attempt.response_status, attempt.sent)
    assert attempt is log.children[0]
    assert (1, None) == (log.total_attempts, log.stop_reason)
