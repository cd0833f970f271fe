"""A circuit breaker around a function: asked before each call, told the outcome."""

from __future__ import annotations

import asyncio

import pytest

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerRpcClient,
    CircuitBreakerStrategy,
    CircuitState,
    FailFastError,
    RequestLog,
    capture_logs,
    rpc,
)


def guarded(breaker, *others, **settings):
    """Return a function that raises what it is given, or returns it."""

    @rpc(CircuitBreakerRpcClient.new_decorator(breaker, **settings), *others)
    async def call(outcome):
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return call


async def test_what_a_function_returns_is_a_success():
    """None too; it has no status that could say otherwise."""
    breaker = CircuitBreaker()
    call = guarded(breaker)
    results = [await call(outcome) for outcome in (1, None, KeyError)]

    assert [1, None, KeyError] == results
    assert (3, 0) == (breaker.event_count.success, breaker.event_count.failure)


async def test_what_a_function_raises_is_a_failure():
    """Cancellation and mistakes in the code say nothing of the other side."""
    breaker = CircuitBreaker()
    call = guarded(breaker)
    for outcome in (ConnectionResetError(), asyncio.CancelledError(), TypeError()):
        with pytest.raises(type(outcome)):
            await call(outcome)

    assert (0, 1) == (breaker.event_count.success, breaker.event_count.failure)


async def test_open_circuit_refuses_a_call():
    """The function is not called, and the log says that nothing was sent."""
    breaker = CircuitBreaker("reports")
    breaker.enter_state(CircuitState.OPEN)
    with pytest.raises(FailFastError, match="reports") as caught:
        await guarded(breaker)(1)

    assert not RequestLog.of(caught.value).sent


@pytest.mark.parametrize("is_async", [False, True])
async def test_fallback_answers_in_place_of_the_function(is_async):
    """With the arguments of the call, and any result."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)

    def plain(ctx, request):
        return ("kept", request.args, type(ctx.log.response_cause))

    async def later(ctx, request):
        return plain(ctx, request)

    call = guarded(breaker, fallback=later if is_async else plain)
    with capture_logs() as logs:
        result = await call(7)

    assert ("kept", (7,), FailFastError) == result
    assert (None, False) == (logs[0].response_cause, logs[0].sent)


async def test_strategy_of_one_s_own_judges():
    """The caller gets its error, and the returned value is dropped."""

    class Broken(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            raise LookupError

    breaker = CircuitBreaker()
    with pytest.raises(LookupError):
        await guarded(breaker, strategy=Broken())(1)

    assert 0 == breaker.event_count.total
