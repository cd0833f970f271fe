"""The retrying client and its limiter: when it is asked, told and given back."""

import asyncio
from contextlib import suppress
from functools import partial

import aiohttp
import pytest
from chains import (
    URL,
    after,
    log_of_cancelled,
    now,
    retrying_session,
    silence,
    status_and_log,
)
from limiters import Recording

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RetryLimiter,
    RetryStopReason,
    RetryStrategy,
    new_response,
    smithy,
)

SOON = RetryStrategy.on_server_error_status(Backoff.fixed(0.5))


class Slow(Recording):
    """The same, all methods async."""

    async def release(self, ctx):
        await asyncio.sleep(0)
        super().release(ctx)

    async def on_retry_end(self, ctx):
        await asyncio.sleep(0)
        super().on_retry_end(ctx)

    async def on_success(self, ctx):
        await asyncio.sleep(0)
        super().on_success(ctx)

    async def on_failure(self, ctx, cause):
        await asyncio.sleep(0)
        super().on_failure(ctx, cause)


def session(answers, limiter, strategy=SOON, *inside, **settings):
    """Build a session that gets *answers* and asks *limiter*."""
    return retrying_session(answers, strategy, *inside, limiter=limiter, **settings)


@pytest.mark.parametrize("kind", [Recording, Slow])
@pytest.mark.parametrize("strategy", [SOON, smithy.StandardRetryStrategy()])
async def test_it_hears_of_each_attempt_and_is_asked_for_each_retry(kind, strategy):
    """In this order, plain or async, for both kinds of strategies."""
    limiter = kind()
    await status_and_log(session([503, TimeoutError(), 200], limiter, strategy))

    assert [
        "failure 1 NoneType",
        "acquire 1 NoneType",
        "failure 2 TimeoutError",
        "end 1",
        "acquire 2 TimeoutError",
        "success 3",
        "end 2",
    ] == limiter.heard


async def test_it_is_not_asked_for_what_other_limits_forbid():
    """Attempts, deadline and body come first."""

    async def body():
        yield b"once"

    limiter = Recording()
    await status_and_log(session([503], limiter, max_total_attempts=1))
    await status_and_log(session([503], limiter, timeout=0.25))
    async with session([503], limiter) as client:
        await client.post(URL, data=body())

    assert ["failure 1 NoneType"] * 3 == limiter.heard


async def test_smithy_quota_gets_back_what_the_limiter_refused():
    """The retry was paid for and is not made."""
    strategy = smithy.StandardRetryStrategy()
    await status_and_log(session([503], Recording(permits=0), strategy))

    assert 500 == strategy.quota_for("localhost:80").available_capacity


async def test_deadline_is_looked_at_again_when_asking_took_time():
    """The leave goes back, and the response is handed over in time."""
    limiter = Recording(takes=0.75)
    status, log = await status_and_log(session([503], limiter, timeout=1.0))

    assert (503, 0.75) == (status, now())
    assert RetryStopReason.DEADLINE == log.stop_reason
    assert ["failure 1 NoneType", "acquire 1 NoneType", "release 1"] == limiter.heard


@pytest.mark.parametrize("kind", [Recording, Slow])
@pytest.mark.parametrize(
    ("answers", "after", "end"),
    [
        # Nobody will make that retry.
        ([503], 0.25, "release 1"),
        # The permit is used up, so it does not go back; there is no outcome.
        ([503, silence], 1.0, "end 1"),
    ],
)
async def test_leave_of_a_call_that_is_cancelled(kind, answers, after, end):
    """In a wait it goes back, and in a retry it ends."""
    limiter = kind()
    await log_of_cancelled(session(answers, limiter), after)

    assert ["failure 1 NoneType", "acquire 1 NoneType", end] == limiter.heard


def open_circuit(**settings):
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    return CircuitBreakerClient.new_decorator(breaker, **settings)


async def test_what_a_plain_method_returns_is_nobody_s_business(caplog):
    """A method of one line, as a lambda has it, returns what that line gives."""

    class Counting(RetryLimiter):
        def acquire(self, ctx, cause):
            return True

        def on_success(self, ctx):
            return 1

    status, _ = await status_and_log(session([200], Counting()))

    assert 200 == status
    assert [] == caplog.records


async def test_fallback_of_a_circuit_breaker_neither_pays_nor_counts():
    """Its answer says as little of the server as the refusal that it stands for."""

    async def fallback(ctx, request):
        return new_response(request, 200)

    limiter = Recording()
    inside = open_circuit(fallback=fallback)
    status, _ = await status_and_log(session([], limiter, SOON, inside))

    assert (200, []) == (status, limiter.heard)


class Broken:
    """A strategy of Smithy's kind that fails before the first attempt."""

    def acquire_initial_retry_token(self, *, token_scope=None):
        raise LookupError("bug in the strategy")

    def refresh_retry_token_for_retry(self, *, token_to_renew, error):
        raise AssertionError("nothing failed")

    def record_success(self, *, token):
        raise AssertionError("nothing was sent")


async def test_nothing_is_given_back_that_was_not_asked_for():
    """Where a call ends before its first attempt, the limiter hears nothing."""
    limiter = Recording()
    with pytest.raises(LookupError):
        await status_and_log(session([200], limiter, Broken()))

    assert [] == limiter.heard


class Leaves(RetryLimiter):
    """Gives leave always, and notes what becomes of it."""

    def __init__(self):
        self.out = []
        self.back = []

    def acquire(self, ctx, cause):
        self.out.append(ctx)
        return True

    def release(self, ctx):
        self.back.append(ctx)

    def on_retry_end(self, ctx):
        self.back.append(ctx)


class SlowLeaves(Leaves):
    """The same, and waits before and after."""

    async def acquire(self, ctx, cause):
        await asyncio.sleep(0.125)
        return super().acquire(ctx, cause)

    async def release(self, ctx):
        super().release(ctx)
        await asyncio.sleep(0.125)

    async def on_retry_end(self, ctx):
        super().on_retry_end(ctx)
        await asyncio.sleep(0.125)

    async def on_success(self, ctx):
        await asyncio.sleep(0.125)

    async def on_failure(self, ctx, cause):
        await asyncio.sleep(0.125)


class Slowly(RetryStrategy):
    """Takes its time to decide."""

    backoff = Backoff.fixed(0.5)

    async def should_retry(self, ctx, cause):
        await asyncio.sleep(0.125)
        return self.backoff if ctx.log.response_status != 200 else None


class Failing(RetryStrategy):
    """Has a bug that shows at the second attempt."""

    backoff = Backoff.fixed(0.5)

    def should_retry(self, ctx, cause):
        if ctx.attempt == 2:
            raise KeyError("oops")
        return self.backoff


class FailingBackoff(Backoff):
    """Has a bug that shows at the second wait."""

    def next_delay(self, attempt):
        return 0.5 / (2 - attempt)


class Cancelled:
    """Awaits a coroutine, and is cancelled where that waits for the n-th time."""

    def __init__(self, coroutine, at):
        self.coroutine = coroutine
        self.at = at
        self.waits = 0

    def __await__(self):
        go_on = partial(self.coroutine.send, None)
        while True:
            try:
                awaited = go_on()
            except StopIteration:
                return
            self.waits += 1
            if self.waits == self.at:
                asyncio.current_task().cancel()
            try:
                yield awaited
            except BaseException as error:
                go_on = partial(self.coroutine.throw, error)
            else:
                go_on = partial(self.coroutine.send, None)


slowly = partial(after, 0.125)


@pytest.mark.parametrize("kind", [Leaves, SlowLeaves])
@pytest.mark.parametrize(
    "strategy", [lambda: SOON, Slowly, smithy.StandardRetryStrategy]
)
async def test_leave_comes_back_once_wherever_a_call_is_cancelled(kind, strategy):
    """In the answer, in the decision, in the wait, and in the limiter itself."""
    at, is_over = 0, False
    while not is_over:
        at += 1
        limiter = kind()
        answers = [slowly(503), slowly(TimeoutError()), slowly(200)]
        async with session(answers, limiter, strategy()) as client:
            call = Cancelled(client.get(URL), at)
            with suppress(asyncio.CancelledError):
                await call
        is_over = call.waits < at

        assert limiter.out == limiter.back

    assert at > 5
    assert 2 == len(limiter.back)


@pytest.mark.parametrize("kind", [Leaves, SlowLeaves])
@pytest.mark.parametrize(
    ("answers", "strategy", "settings"),
    [
        ([503, 200], SOON, {}),
        ([503, 503], SOON, {"max_total_attempts": 2}),
        ([503, aiohttp.InvalidURL("x")], SOON, {}),
        ([503, KeyError("a bug inside")], SOON, {}),
        ([503, asyncio.CancelledError()], SOON, {}),
        ([503, KeyboardInterrupt()], SOON, {}),
        ([503, 503], Failing(), {}),
        ([503, 503], RetryStrategy.on_server_error_status(FailingBackoff()), {}),
        ([503, silence], SOON, {"timeout": 2.0}),
        ([503, slowly(503), 503], SOON, {"timeout": 1.5}),
        ([503, silence, 200], SOON, {"attempt_timeout": 1.0}),
        ([503, 503, 200], SOON, {"buffer_response": True}),
    ],
)
async def test_leave_comes_back_once_however_a_retry_ends(
    kind, answers, strategy, settings
):
    """Success, failure, a bug of the caller's, a deadline, an interruption."""
    limiter = kind()
    async with session(answers, limiter, strategy, **settings) as client:
        with suppress(BaseException):
            await client.get(URL)

    assert limiter.out
    assert limiter.out == limiter.back


async def test_place_is_free_again_while_a_body_is_read():
    """A response that is kept open keeps no other call from its retry."""
    limiter = RetryLimiter.concurrency(1)
    async with session([503, (200, b"long")] * 2, limiter) as client:
        first = await client.get(URL)
        second = await client.get(URL)

    assert [200, 200] == [first.status, second.status]
