"""The deadline of a call cuts what users wrote, and what that awaits."""

import asyncio
import gc
import weakref
from contextlib import suppress
from contextvars import ContextVar

import aiohttp
import pytest
from chains import NOW, SAFELY, URL, now, pass_on, retrying, session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    CircuitState,
    HedgingClient,
    LoggingClient,
    RequestLog,
    ResponseTimeoutError,
    ResponseTimeoutMode,
    RetryingRpcClient,
    RetryLimiter,
    RetryListener,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
    request_options,
    rpc,
)
from aioretry_smithy.smithy import SimpleRetryStrategy

DEADLINE = 2.0
CUT = 2.01
LONG = 60.0


def cancelling():
    return asyncio.current_task().cancelling()


def waiting(seconds=LONG, *, before=True):
    """Make a user's decorator that waits before or after it sends."""

    @client_decorator
    async def wait(delegate, ctx, request):
        if before:
            await asyncio.sleep(seconds)
        response = await delegate.execute(ctx, request)
        if not before:
            await asyncio.sleep(seconds)
        return response

    return wait


def falling_back():
    breaker = CircuitBreaker("forced")
    breaker.enter_state(CircuitState.FORCED_OPEN)

    async def fallback(ctx, request):
        await asyncio.sleep(LONG)
        return new_response(request, 203)

    return CircuitBreakerClient.new_decorator(breaker, fallback=fallback)


async def failure_of(client, kind=ResponseTimeoutError, **options):
    async with client:
        with pytest.raises(kind) as caught:
            await client.get(URL, **options)
    return caught.value


WITHOUT_AN_ANSWER = {
    "decorator": [waiting()],
    "decorator, after": [waiting(before=False)],
    "decorator inside": [waiting(), retrying(SAFELY)],
    "decorator outside": [retrying(SAFELY), waiting()],
    "decorator in a decorator": [waiting(), pass_on, retrying(SAFELY), pass_on],
    "fallback": [falling_back()],
    "fallback inside": [falling_back(), retrying(SAFELY), pass_on],
    "hedged": [waiting(), HedgingClient.new_decorator(0.5), retrying(SAFELY)],
    "hedged in a decorator": [waiting(), HedgingClient.new_decorator(0.5), pass_on],
}


@pytest.mark.parametrize("chain", WITHOUT_AN_ANSWER.values(), ids=WITHOUT_AN_ANSWER)
async def test_call_ends_at_its_deadline(chain):
    """With the error that says so, a moment after it, and nothing else."""
    logging = LoggingClient.new_decorator()
    with capture_logs() as logs:
        error = await failure_of(session([200] * 9, *chain, logging, timeout=DEADLINE))

    assert ResponseTimeoutError is type(error)
    # What is inside of a task of its own is cut earlier.
    assert now() in {DEADLINE + 0.005, CUT}
    assert 0 == cancelling()
    assert str(logs[0].stop_reason) in {"deadline", "None"}
    assert not [
        each
        for log in logs
        for each in (log, *log.children)
        if isinstance(each.response_cause, asyncio.CancelledError)
        and not each.superseded
    ]


async def test_answer_that_it_makes_of_the_cancellation_is_handed_over():
    """As where it has caught a timeout of its own."""

    @client_decorator
    async def stubborn(delegate, ctx, request):
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            return new_response(request, 203)

    async with session([], stubborn, timeout=DEADLINE) as client:
        response = await client.get(URL)

    assert (203, CUT, 0) == (response.status, now(), cancelling())


async def test_decorator_that_waits_again_is_cut_again():
    """It has caught the error of what is further in."""

    @client_decorator
    async def patient(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        except ResponseTimeoutError:
            await asyncio.sleep(LONG)
            raise

    await failure_of(session([], waiting(), patient, timeout=DEADLINE))

    assert CUT + 0.01 == pytest.approx(now())


@pytest.mark.parametrize("after", [1.0, DEADLINE, CUT, CUT + 0.5])
async def test_cancellation_from_outside_stays_one(after):
    """Before the cut, in the very moment, and while something is cleaned up."""

    @client_decorator
    async def cleaning(delegate, ctx, request):
        try:
            await asyncio.sleep(LONG)
        finally:
            await asyncio.sleep(1.0)

    async with session([], cleaning, pass_on, timeout=DEADLINE) as client:
        call = asyncio.ensure_future(client.get(URL))
        asyncio.get_running_loop().call_at(after, call.cancel, "enough")
        with pytest.raises(asyncio.CancelledError):
            await call

    assert call.cancelled()


class Waiting(RetryStrategy):
    async def should_retry(self, ctx, cause):
        await asyncio.sleep(LONG)
        return NOW


class WaitingLimiter(RetryLimiter):
    """Waits in the methods of these names."""

    def __init__(self, *names):
        self.names = names

    async def acquire(self, ctx, cause):
        await self._wait("acquire")
        return True

    async def on_success(self, ctx):
        await self._wait("on_success")

    async def on_failure(self, ctx, cause):
        await self._wait("on_failure")

    async def _wait(self, name):
        if name in self.names:
            await asyncio.sleep(LONG)


class WaitingJudge(CircuitBreakerStrategy):
    async def should_report_as_success(self, ctx, cause):
        await asyncio.sleep(LONG)
        return True


class WaitingTokens(SimpleRetryStrategy):
    async def refresh_retry_token_for_retry(self, *, token_to_renew, error):
        await asyncio.sleep(LONG)


def limited(*names):
    return retrying(SAFELY, limiter=WaitingLimiter(*names))


def judged():
    breaker = CircuitBreaker("judged")
    return CircuitBreakerClient.new_decorator(breaker, WaitingJudge())


WITH_AN_ANSWER = {
    "strategy": (503, "deadline", [retrying(Waiting())]),
    "strategy in a decorator": (503, "deadline", [retrying(Waiting()), pass_on]),
    "acquire": (503, "deadline", [limited("acquire")]),
    "on_success": (200, "None", [limited("on_success")]),
    "on_success in a decorator": (200, "None", [limited("on_success"), pass_on]),
    "on_failure": (503, "deadline", [limited("on_failure")]),
    "breaker's strategy": (200, "None", [judged(), retrying(SAFELY)]),
    "Smithy's strategy": (503, "deadline", [retrying(WaitingTokens())]),
}


@pytest.mark.parametrize(
    ("status", "reason", "chain"), WITH_AN_ANSWER.values(), ids=WITH_AN_ANSWER
)
async def test_answer_that_is_there_is_handed_over(status, reason, chain):
    """What was asked or told of it loses nobody a response."""
    answers = [(status, b"whole")] * 2
    async with session(answers, *chain, timeout=DEADLINE) as client:
        response = await client.get(URL)
        body = await response.read()

    assert (status, b"whole", CUT, 0) == (response.status, body, now(), cancelling())
    assert reason == str(RequestLog.of(response).stop_reason)


async def test_initial_token_is_not_waited_for_longer():
    """There is no answer yet."""

    class Slow(SimpleRetryStrategy):
        async def acquire_initial_retry_token(self, *, token_scope=None):
            await asyncio.sleep(LONG)

    error = await failure_of(session([], retrying(Slow()), timeout=DEADLINE))

    assert (CUT, 0) == (now(), cancelling())
    assert "the deadline passed, attempts: 0" == str(error)


async def test_trial_whose_verdict_does_not_come_gives_its_permit_back():
    """The next request is the trial."""
    breaker = CircuitBreaker("judged")
    breaker.enter_state(CircuitState.HALF_OPEN)
    inside = CircuitBreakerClient.new_decorator(breaker, WaitingJudge())
    async with session([200, 200], inside, timeout=DEADLINE) as client:
        await client.get(URL)
        await client.get(URL)

    assert 2 * CUT == now()


async def test_function_of_raise_for_status_is_cut():
    """The response is closed."""

    async def refuse(response):
        await asyncio.sleep(LONG)

    error = await failure_of(
        session([200], retrying(SAFELY), timeout=DEADLINE), raise_for_status=refuse
    )

    assert (CUT, 0) == (now(), cancelling())
    assert "the call had 2.000 s" == str(error)


async def test_code_around_is_cut_after_what_a_listener_took():
    """The deadline has passed meanwhile."""

    class Slow(RetryListener):
        async def on_retry(self, ctx, cause, delay):
            await asyncio.sleep(DEADLINE + 1.0)

    @client_decorator
    async def patient(delegate, ctx, request):
        with suppress(ResponseTimeoutError):
            await delegate.execute(ctx, request)
        return await asyncio.sleep(LONG)

    retries = retrying(SAFELY, listeners=[Slow()])
    await failure_of(session([503, 200], retries, patient, timeout=DEADLINE))

    assert CUT + 1.0 == pytest.approx(now())
    assert 0 == cancelling()


async def test_timer_of_code_that_has_ended_keeps_no_context_variable():
    """It is cancelled, and the event loop has it until it would have been due."""
    variable = ContextVar("variable")

    class Value:
        pass

    async def call():
        value = Value()
        variable.set(value)
        await client.get(URL)
        return weakref.ref(value)

    async with session([200], pass_on, timeout=DEADLINE) as client:
        reference = await asyncio.create_task(call())
        # The turn that hears of the end of a task has the task.
        await asyncio.sleep(0)
        gc.collect()

        assert None is reference()


async def test_call_outside_of_a_task_is_refused_as_without_a_chain():
    """There would be nothing to cancel; what has a timeout says so."""
    loop = asyncio.get_running_loop()
    async with session([200], pass_on, timeout=DEADLINE) as client:
        refused = loop.create_future()

        def drive():
            try:
                client.get(URL).send(None)
            except RuntimeError as error:
                refused.set_result(str(error))

        loop.call_soon(drive)

        assert "Timeout should be used inside a task" == await refused


async def test_deadline_that_is_moved_is_followed():
    """Later, earlier, or away."""
    seconds = iter([5.0, 1.0, None])

    @client_decorator
    async def moving(delegate, ctx, request):
        moved = next(seconds)
        if moved is None:
            ctx.clear_response_timeout()
            await asyncio.sleep(LONG)
            return await delegate.execute(ctx, request)
        ctx.set_response_timeout(moved)
        return await asyncio.sleep(LONG)

    async with session([200], moving, timeout=DEADLINE) as client:
        for moment in (5.01, 5.01 + 1.01):
            with pytest.raises(ResponseTimeoutError):
                await client.get(URL)
            assert moment == pytest.approx(now())
        assert 200 == (await client.get(URL)).status


async def test_block_sets_the_deadline_of_a_function_with_decorators():
    """They stand outside of the attempts, which have a limit of their own."""

    async def done():
        return 1

    retries = RetryingRpcClient.new_decorator(SAFELY)
    function = rpc(retries, waiting(), idempotent=True)(done)
    with (
        request_options(response_timeout=DEADLINE),
        pytest.raises(ResponseTimeoutError) as caught,
    ):
        await function()

    assert (CUT, 0) == (now(), cancelling())
    assert "the call had 2.000 s" == str(caught.value)


async def test_no_timer_is_left():
    """Whatever came of the call."""
    client = session([200, 503], pass_on, timeout=DEADLINE)
    async with client:
        await client.get(URL)
        await client.get(URL)
    loop = asyncio.get_running_loop()

    assert [] == [each for each in loop._scheduled if not each.cancelled()]


async def test_stand_in_for_aiohttp_without_a_limit_is_cut(monkeypatch):
    """Inside of a user's decorator; the attempt names the limit."""

    async def hang(self, method, url, **options):
        await asyncio.sleep(LONG)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", hang)
    builder = SessionBuilder().decorator(pass_on).decorator(retrying(SAFELY))
    with capture_logs() as logs:
        error = await failure_of(builder.response_timeout(DEADLINE).build())

    assert (CUT, 0) == (now(), cancelling())
    assert "the deadline passed, attempts: 1" == str(error)
    assert ResponseTimeoutError is type(logs[0].children[0].response_cause)


async def test_wait_for_a_retry_in_a_decorator_ends_at_a_deadline_that_was_moved():
    """The retrying client takes the cancellation back, and says that time is up."""

    @client_decorator
    async def hurry(delegate, ctx, request):
        loop = asyncio.get_running_loop()
        loop.call_at(1.0, ctx.set_response_timeout, 1.0)
        return await delegate.execute(ctx, request)

    chain = [retrying(RetryStrategy.failsafe(Backoff.fixed(LONG))), hurry]
    async with session([503], *chain, timeout=2 * LONG) as client:
        with capture_logs() as logs, pytest.raises(ResponseTimeoutError):
            await client.get(URL)

    assert (CUT, 0) == (now(), cancelling())
    assert "deadline" == logs[0].stop_reason


async def test_attempts_of_a_function_in_a_decorator_end_at_their_own_deadline():
    """The decorator around them is not cut before they say so."""
    retries = RetryingRpcClient.new_decorator(SAFELY)

    @rpc(retries, pass_on, response_timeout=DEADLINE, idempotent=True)
    async def function():
        await asyncio.sleep(LONG)

    with pytest.raises(ResponseTimeoutError):
        await function()

    assert (DEADLINE, 0) == (now(), cancelling())


async def test_function_does_not_begin_after_a_deadline_that_a_decorator_sets():
    """There was none when the attempt began."""

    @client_decorator
    async def too_late(delegate, ctx, request):
        await asyncio.sleep(DEADLINE)
        ctx.set_response_timeout(1.0, ResponseTimeoutMode.SET_FROM_START)
        return await delegate.execute(ctx, request)

    @rpc(too_late)
    async def function():
        raise AssertionError

    with pytest.raises(ResponseTimeoutError):
        await function()
