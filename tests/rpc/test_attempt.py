"""Attempts of a function: cut at their deadline, and nothing of the caller's lost."""

from __future__ import annotations

import asyncio
import sys
import traceback

import pytest
from chains import NOW, Always, now

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitBreakerRpcClient,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetryRule,
    capture_logs,
    client_decorator,
    is_timeout,
    rpc,
)


def retried(strategy=None, attempt_timeout=3.0, **settings):
    """Retry a function whose attempts have so many seconds."""
    strategy = strategy or RetryRule(on_timeout=True, backoff=NOW)
    return RetryingRpcClient.new_decorator(
        strategy, attempt_timeout=attempt_timeout, **settings
    )


def cancelling():
    """Return how many cancellations of the running task are not taken back."""
    return asyncio.current_task().cancelling()


async def hang():
    """Wait for what does not come."""
    await asyncio.Event().wait()


async def test_call_without_delay_is_cut_at_the_deadline():
    """10 s for the call, 3 s an attempt, no delay: cut at 10 in the fourth."""
    started = []

    @rpc(retried(Always()), response_timeout=10.0)
    async def silent():
        started.append(now())
        await hang()

    with pytest.raises(ResponseTimeoutError) as caught:
        await silent()

    log = RequestLog.of(caught.value)
    assert [0.0, 3.0, 6.0, 9.0] == started
    assert "the deadline passed, attempts: 4" == str(caught.value)
    assert 10.0 == now() == log.duration
    assert [3.0, 3.0, 3.0, 1.0] == [child.duration for child in log.children]
    assert repr(log.children[2].response_cause) == repr(caught.value.__cause__)
    assert ("deadline", 0) == (log.stop_reason, cancelling())


async def test_call_with_delay_stops_when_the_next_attempt_would_be_late():
    """With 3 s between attempts it stops at 9 with the outcome of attempt 2."""

    @rpc(retried(Always(Backoff.fixed(3.0))), response_timeout=10.0)
    async def silent():
        await hang()

    with pytest.raises(AttemptTimeoutError, match=r"^attempt 2 had 3\.000 s") as caught:
        await silent()

    log = RequestLog.of(caught.value)
    assert (9.0, 2, "deadline") == (now(), log.total_attempts, log.stop_reason)


async def test_cut_attempt_shows_what_it_was_awaiting():
    """The cause of its error has the frames of the function."""

    @rpc(retried(max_total_attempts=1))
    async def silent():
        await hang()

    with pytest.raises(AttemptTimeoutError) as caught:
        await silent()

    cause = caught.value.__cause__
    frames = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
    assert isinstance(cause, asyncio.CancelledError)
    assert ["silent", "hang", "wait"] == frames[-3:]
    assert is_timeout(caught.value)


async def test_function_that_swallows_its_cancellation_has_returned():
    """The value that it returns is the outcome."""

    @rpc(retried())
    async def stubborn():
        try:
            await hang()
        except asyncio.CancelledError:
            return "in part"

    with capture_logs() as logs:
        result = await stubborn()

    assert ("in part", 3.0, 0) == (result, now(), cancelling())
    assert (1, None) == (logs[0].total_attempts, logs[0].response_cause)


async def test_function_that_fails_when_cancelled_has_failed_with_that():
    """Another exception in the place of the cancellation is the outcome too."""

    @rpc(retried())
    async def angry():
        try:
            await hang()
        except asyncio.CancelledError:
            raise KeyError("half done") from None

    with pytest.raises(KeyError, match="half done") as caught:
        await angry()

    assert (3.0, 0) == (now(), cancelling())
    assert 1 == RequestLog.of(caught.value).total_attempts


async def test_next_attempt_begins_when_the_cut_one_has_cleaned_up():
    """However long that takes; there are never two at once."""
    events = []

    @rpc(retried(max_total_attempts=2))
    async def slow_to_go():
        events.append(("begins", now()))
        try:
            await hang()
        finally:
            await asyncio.sleep(1.0)
            events.append(("has ended", now()))

    with pytest.raises(AttemptTimeoutError):
        await slow_to_go()

    assert [
        ("begins", 0.0),
        ("has ended", 4.0),
        ("begins", 4.0),
        ("has ended", 8.0),
    ] == events


async def test_attempt_is_cut_in_the_middle_of_a_task_group():
    """Its tasks are cancelled, and no group of errors comes of it."""
    ended = []

    async def work(number):
        try:
            await hang()
        finally:
            ended.append(number)

    @rpc(retried(max_total_attempts=1))
    async def parallel():
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(work(number))

    with pytest.raises(AttemptTimeoutError):
        await parallel()

    assert ([0, 1, 2], 0) == (sorted(ended), cancelling())


async def test_timeout_of_the_caller_around_a_call_is_the_caller_s():
    """It ends the call, and is a plain ``TimeoutError`` to the caller."""

    @rpc(retried())
    async def silent():
        await hang()

    with capture_logs() as logs, pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(4.0):
            await silent()

    assert (TimeoutError, 4.0, 0) == (type(caught.value), now(), cancelling())
    assert (2, "cancelled") == (logs[0].total_attempts, logs[0].stop_reason)


async def test_timeout_of_the_caller_at_the_same_moment_is_the_caller_s():
    """Cancelled from outside as well, the call is cancelled."""

    @rpc(retried())
    async def silent():
        await hang()

    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout_at(now() + 3.0):
            await silent()

    assert (TimeoutError, 3.0, 0) == (type(caught.value), now(), cancelling())


async def test_timeout_of_the_function_s_own_is_its_failure():
    """The limit of the attempt has not passed."""

    @rpc(retried())
    async def hasty():
        async with asyncio.timeout(1.0):
            await hang()

    with pytest.raises(TimeoutError) as caught:
        await asyncio.wait_for(hasty(), 2.5)

    assert (TimeoutError, 2.5) == (type(caught.value), now())


async def test_cancelled_call_is_cancelled_at_once():
    """From outside, it is neither retried nor swallowed."""

    @rpc(retried())
    async def silent():
        await hang()

    with capture_logs() as logs:
        task = asyncio.create_task(silent())
        await asyncio.sleep(1.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert (1.0, "cancelled", True) == (
        now(),
        logs[0].stop_reason,
        logs[0].is_complete,
    )


async def test_cancelled_in_the_moment_of_the_cut_it_is_cancelled():
    """The cut takes its own cancellation back, not the other one."""

    @rpc(retried())
    async def silent():
        await hang()

    loop = asyncio.get_running_loop()
    task = asyncio.create_task(silent())
    await asyncio.sleep(0)
    loop.call_at(3.0, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (3.0, 1) == (now(), task.cancelling())


async def test_call_inside_with_the_same_limit_leaves_the_attempt_its_own():
    """Two cuts in one moment: the outer attempt is the one that was too long."""

    @rpc(response_timeout=3.0)
    async def inner():
        await hang()

    @rpc(retried(max_total_attempts=2))
    async def outer():
        await inner()

    with pytest.raises(AttemptTimeoutError, match=r"^attempt 2 had 3\.000 s"):
        await outer()

    assert (6.0, 0) == (now(), cancelling())


async def test_calls_that_a_task_group_makes_leave_the_attempt_its_limit():
    """Timers are not exact: all calls may have ended just before the cut."""

    @rpc(response_timeout=3.0 - 1e-7)
    async def inner():
        await hang()

    async def failing():
        try:
            await hang()
        finally:
            raise ValueError

    @rpc(retried(max_total_attempts=2))
    async def outer(*further):
        async with asyncio.TaskGroup() as tasks:
            for call in inner, inner, *further:
                tasks.create_task(call())

    with pytest.raises(AttemptTimeoutError, match=r"^attempt 2 had 3\.000 s"):
        await outer()
    with pytest.raises(ExceptionGroup):
        await outer(failing)

    # Before 3.13 a task group leaves its own cancellation counted.
    left = 0 if sys.version_info >= (3, 13) else 3
    assert (9.0, left) == (round(now(), 3), cancelling())


async def test_time_limit_covers_the_decorators_further_in():
    """One that waits before the function is cut too."""

    @client_decorator
    async def waiting(delegate, ctx, request):
        await asyncio.sleep(9.0)
        return await delegate.execute(ctx, request)

    @rpc(waiting, retried(max_total_attempts=1))
    async def unreached():
        raise AssertionError

    with pytest.raises(
        AttemptTimeoutError, match=r"^attempt 1 had 3\.000 s$"
    ) as caught:
        await unreached()

    (attempt,) = RequestLog.of(caught.value).children
    assert 3.0 == now()
    assert repr(caught.value) == repr(attempt.response_cause)


async def test_circuit_breaker_inside_counts_what_was_cut():
    """It sees the timeout, not a cancellation."""
    breaker = CircuitBreaker()

    @rpc(
        CircuitBreakerRpcClient.new_decorator(breaker),
        retried(max_total_attempts=2),
    )
    async def silent():
        await hang()

    with pytest.raises(AttemptTimeoutError):
        await silent()

    assert 2 == breaker.event_count.failure


async def test_function_is_not_called_when_no_time_is_left():
    """A decorator that calls again after the cut gets the error at once."""
    called = []

    class Again(DecoratingClient):
        async def execute(self, ctx, request):
            try:
                return await self.delegate.execute(ctx, request)
            except AttemptTimeoutError:
                return await self.delegate.execute(ctx, request)

    @rpc(Again, retried(max_total_attempts=1))
    async def silent():
        called.append(now())
        await hang()

    with pytest.raises(AttemptTimeoutError, match=r"^attempt 1 had 3\.000 s$"):
        await silent()

    assert ([0.0], 3.0, 0) == (called, now(), cancelling())


@pytest.mark.parametrize(("seconds", "ends"), [(1.0, 1.0), (5.0, 5.0)])
async def test_decorator_may_move_the_deadline_before_the_function_begins(
    seconds, ends
):
    """As before a request is sent."""

    @client_decorator
    async def moving(delegate, ctx, request):
        ctx.set_response_timeout(seconds)
        return await delegate.execute(ctx, request)

    @rpc(moving, retried(max_total_attempts=1))
    async def silent():
        await hang()

    with pytest.raises(AttemptTimeoutError, match=rf"^attempt 1 had {ends}00 s$"):
        await silent()

    assert ends == now()


@pytest.mark.parametrize(
    "retrying", [(), (retried(attempt_timeout=None, max_total_attempts=1),)]
)
async def test_decorator_may_limit_a_call_that_has_no_limit(retrying):
    """The function is cut then, and cancelled by nobody later."""

    @client_decorator
    async def limiting(delegate, ctx, request):
        ctx.set_response_timeout(2.0)
        return await delegate.execute(ctx, request)

    @rpc(limiting, *retrying)
    async def call(seconds):
        await asyncio.sleep(seconds)
        return now()

    assert 1.0 == await call(1.0)
    await asyncio.sleep(9.0)
    with pytest.raises(ResponseTimeoutError, match=r"had 2\.000 s$"):
        await call(9.0)

    assert (12.0, 0) == (now(), cancelling())


async def test_attempts_of_a_retrying_decorator_of_one_s_own_are_cut():
    """Each at the limit that it was given, the last one at that of the call."""

    @client_decorator
    async def again(delegate, ctx, request):
        while True:
            attempt = ctx.derive(request, timeout=2.0)
            try:
                return await delegate.execute(attempt, request)
            except AttemptTimeoutError:
                continue

    @rpc(again, response_timeout=5.0)
    async def silent():
        await hang()

    with pytest.raises(ResponseTimeoutError, match="the call had 5") as caught:
        await silent()

    durations = [child.duration for child in RequestLog.of(caught.value).children]
    assert ([2.0, 2.0, 1.0], 0) == (durations, cancelling())


async def test_nothing_begins_after_the_limit_that_a_decorator_has_set():
    """It has used the time up itself, and no timer is left behind."""

    @client_decorator
    async def slow(delegate, ctx, request):
        ctx.set_response_timeout(2.0)
        await asyncio.sleep(3.0)
        return await delegate.execute(ctx, request)

    @rpc(slow)
    async def call():
        raise AssertionError

    with pytest.raises(ResponseTimeoutError, match=r"^the call had 2\.000 s$"):
        await call()
    await asyncio.sleep(1.0)

    assert (4.0, 0) == (now(), cancelling())


async def test_decorator_may_lift_the_limit_of_an_attempt():
    """Then nothing cuts it."""

    @client_decorator
    async def lifting(delegate, ctx, request):
        ctx.clear_response_timeout()
        return await delegate.execute(ctx, request)

    @rpc(lifting, retried())
    async def slow():
        await asyncio.sleep(9.0)
        return now()

    assert 9.0 == await slow()


async def test_task_of_a_decorator_s_own_is_cancelled_with_the_attempt():
    """The cut reaches the function through the task that waits for it."""

    @client_decorator
    async def elsewhere(delegate, ctx, request):
        return await asyncio.create_task(delegate.execute(ctx, request))

    @rpc(elsewhere, retried(max_total_attempts=1))
    async def silent():
        await hang()

    with pytest.raises(AttemptTimeoutError):
        await silent()

    assert (3.0, 0) == (now(), cancelling())


async def test_function_without_a_limit_sets_no_timer():
    """Nothing is cut, so nothing is watched."""
    loop = asyncio.get_running_loop()
    timers = []
    call_at = loop.call_at
    loop.call_at = lambda *arguments, **others: (
        timers.append(arguments) or call_at(*arguments, **others)
    )

    @rpc(retried(attempt_timeout=None))
    async def quick():
        return 7

    assert 7 == await quick()
    assert [] == timers


async def test_limit_outside_of_a_task_is_an_error():
    """There is nothing to cancel there."""

    @rpc(response_timeout=1.0)
    async def quick():
        return 7

    def step():
        with pytest.raises(RuntimeError, match="runs in a task"):
            quick().send(None)
        done.set_result(None)

    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(step)
    await done


async def test_closed_coroutine_ends_its_attempt():
    """In any task: nothing is left of it in the other's context."""

    @rpc(retried())
    async def hang():
        await asyncio.sleep(9.0)

    async def begin():
        coroutine = hang()
        coroutine.send(None)
        return coroutine

    coroutine = await asyncio.create_task(begin())
    coroutine.close()

    @rpc()
    async def quick():
        return 7

    with capture_logs() as logs:
        assert 7 == await quick()
    assert [None] == [log.parent for log in logs]


@pytest.mark.parametrize(
    ("decorators", "expected"),
    [
        ((), ResponseTimeoutError),
        ((retried(attempt_timeout=2.0),), AttemptTimeoutError),
    ],
    ids=["call", "attempt"],
)
async def test_limit_that_cuts_a_decorator_is_in_the_log(decorators, expected):
    """The log has the error of the caller, not the cancellation that it was."""

    @client_decorator
    async def wait(delegate, ctx, request):
        await hang()

    @rpc(wait, *decorators, response_timeout=3.0)
    async def fetch():
        raise AssertionError

    with capture_logs() as logs, pytest.raises(ResponseTimeoutError):
        await fetch()

    record = logs[0].children[0] if decorators else logs[0]
    assert expected is type(record.response_cause)
