"""Attempts of a function: cut at their deadline, and nothing of the caller's lost."""

import asyncio
import sys
import traceback

import pytest
from chains import NOW, Always, now

from aioretry_smithy import (
    AttemptTimeoutError,
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


def once(*inside, **settings):
    """Decorate a function of one attempt, of three seconds."""
    return rpc(*inside, retried(max_total_attempts=1), **settings)


async def failure_of(call, kind=AttemptTimeoutError):
    """Return what a call raised."""
    with pytest.raises(kind) as caught:
        await call
    return caught.value


async def hang():
    """Wait for what does not come."""
    await asyncio.Event().wait()


async def unreached():
    raise AssertionError


async def test_call_without_delay_is_cut_at_the_deadline():
    """10 s for the call, 3 s an attempt, no delay: cut at 10 in the fourth."""
    silent = rpc(retried(Always()), response_timeout=10.0)(hang)
    error = await failure_of(silent(), ResponseTimeoutError)

    log = RequestLog.of(error)
    starts = [child.started - log.started for child in log.children]
    assert [0.0, 3.0, 6.0, 9.0] == starts
    assert "the deadline passed, attempts: 4" == str(error)
    assert 10.0 == now() == log.duration
    assert [3.0, 3.0, 3.0, 1.0] == [child.duration for child in log.children]
    assert repr(log.children[2].response_cause) == repr(error.__cause__)
    assert ("deadline", 0) == (log.stop_reason, cancelling())


async def test_cut_attempt_shows_what_it_was_awaiting():
    """The cause of its error has the frames of the function."""

    @once()
    async def silent():
        await hang()

    error = await failure_of(silent())

    cause = error.__cause__
    frames = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
    assert isinstance(cause, asyncio.CancelledError)
    assert ["silent", "hang", "wait"] == frames[-3:]
    assert is_timeout(error)


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

    await failure_of(slow_to_go())

    first = [("begins", 0.0), ("has ended", 4.0)]
    assert [*first, ("begins", 4.0), ("has ended", 8.0)] == events


async def test_attempt_is_cut_in_the_middle_of_a_task_group():
    """Its tasks are cancelled, and no group of errors comes of it."""
    ended = []

    async def work(number):
        try:
            await hang()
        finally:
            ended.append(number)

    @once()
    async def parallel():
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(work(number))

    await failure_of(parallel())

    assert ([0, 1, 2], 0) == (sorted(ended), cancelling())


async def test_timeout_of_the_caller_around_a_call_is_the_caller_s():
    """It ends the call, and is a plain ``TimeoutError`` to the caller."""
    silent = rpc(retried())(hang)
    with capture_logs() as logs, pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(4.0):
            await silent()

    assert (TimeoutError, 4.0, 0) == (type(caught.value), now(), cancelling())
    assert (2, "cancelled") == (logs[0].total_attempts, logs[0].stop_reason)


async def test_timeout_of_the_caller_at_the_same_moment_is_the_caller_s():
    """Cancelled from outside as well, the call is cancelled."""
    silent = rpc(retried())(hang)
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

    error = await failure_of(asyncio.wait_for(hasty(), 2.5), TimeoutError)

    assert (TimeoutError, 2.5) == (type(error), now())


async def test_cancelled_in_the_moment_of_the_cut_it_is_cancelled():
    """The cut takes its own cancellation back, not the other one."""
    task = asyncio.create_task(rpc(retried())(hang)())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_at(3.0, task.cancel)
    await failure_of(task, asyncio.CancelledError)

    assert (3.0, 1) == (now(), task.cancelling())


async def test_call_inside_with_the_same_limit_leaves_the_attempt_its_own():
    """Two cuts in one moment: the outer attempt is the one that was too long."""
    inner = rpc(response_timeout=3.0)(hang)
    error = await failure_of(rpc(retried(max_total_attempts=2))(inner)())

    assert "attempt 2 had 3.000 s" == str(error)
    assert (6.0, 0) == (now(), cancelling())


async def test_calls_that_a_task_group_makes_leave_the_attempt_its_limit():
    """Timers are not exact: all calls may have ended just before the cut."""
    inner = rpc(response_timeout=3.0 - 1e-7)(hang)

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

    error = await failure_of(outer())
    await failure_of(outer(failing), ExceptionGroup)

    assert "attempt 2 had 3.000 s" == str(error)
    # Before 3.13 a task group leaves its own cancellation counted.
    left = 0 if sys.version_info >= (3, 13) else 3
    assert (9.0, left) == (round(now(), 3), cancelling())


async def test_function_is_not_called_when_no_time_is_left():
    """A decorator that calls again after the cut gets the error at once."""
    called = []

    class Again(DecoratingClient):
        async def execute(self, ctx, request):
            try:
                return await self.delegate.execute(ctx, request)
            except AttemptTimeoutError:
                return await self.delegate.execute(ctx, request)

    @once(Again)
    async def silent():
        called.append(now())
        await hang()

    error = await failure_of(silent())

    assert "attempt 1 had 3.000 s" == str(error)
    assert ([0.0], 3.0, 0) == (called, now(), cancelling())


def limiting(seconds):
    """Set the limit of what goes through."""

    @client_decorator
    async def limit(delegate, ctx, request):
        ctx.set_response_timeout(seconds)
        return await delegate.execute(ctx, request)

    return limit


@pytest.mark.parametrize("seconds", [1.0, 5.0])
async def test_decorator_may_move_the_deadline_before_the_function_begins(seconds):
    """As before a request is sent."""
    error = await failure_of(once(limiting(seconds))(hang)())

    assert (f"attempt 1 had {seconds}00 s", seconds) == (str(error), now())


@pytest.mark.parametrize(
    "retrying", [(), (retried(attempt_timeout=None, max_total_attempts=1),)]
)
async def test_decorator_may_limit_a_call_that_has_no_limit(retrying):
    """The function is cut then, and cancelled by nobody later."""

    @rpc(limiting(2.0), *retrying)
    async def call(seconds):
        await asyncio.sleep(seconds)
        return now()

    assert 1.0 == await call(1.0)
    await asyncio.sleep(9.0)
    error = await failure_of(call(9.0), ResponseTimeoutError)

    assert str(error).endswith("had 2.000 s")
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

    silent = rpc(again, response_timeout=5.0)(hang)
    error = await failure_of(silent(), ResponseTimeoutError)

    durations = [child.duration for child in RequestLog.of(error).children]
    assert "the call had 5.000 s" == str(error)
    assert ([2.0, 2.0, 1.0], 0) == (durations, cancelling())


async def test_nothing_begins_after_the_limit_that_a_decorator_has_set():
    """It is cut itself then, and no timer is left behind."""

    @client_decorator
    async def slow(delegate, ctx, request):
        ctx.set_response_timeout(2.0)
        await asyncio.sleep(3.0)
        return await delegate.execute(ctx, request)

    error = await failure_of(rpc(slow)(unreached)(), ResponseTimeoutError)
    await asyncio.sleep(1.0)

    assert "the call had 2.000 s" == str(error)
    assert (3.01, 0) == (now(), cancelling())


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

    await failure_of(once(elsewhere)(hang)())

    assert (3.0, 0) == (now(), cancelling())


async def seven():
    return 7


async def test_function_without_a_limit_sets_no_timer(monkeypatch):
    """Nothing is cut, so nothing is watched."""
    monkeypatch.setattr(asyncio.get_running_loop(), "call_at", pytest.fail)

    assert 7 == await rpc(retried(attempt_timeout=None))(seven)()


async def test_limit_outside_of_a_task_is_an_error():
    """There is nothing to cancel there."""

    def step():
        with pytest.raises(RuntimeError, match="runs in a task"):
            rpc(response_timeout=1.0)(seven)().send(None)
        done.set_result(None)

    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(step)
    await done


async def test_closed_coroutine_ends_its_attempt():
    """In any task: nothing is left of it in the other's context."""

    async def begin():
        coroutine = rpc(retried())(asyncio.sleep)(9.0)
        coroutine.send(None)
        return coroutine

    coroutine = await asyncio.create_task(begin())
    coroutine.close()
    with capture_logs() as logs:
        assert 7 == await rpc()(seven)()

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

    fetch = rpc(wait, *decorators, response_timeout=3.0)(unreached)
    log = RequestLog.of(await failure_of(fetch(), ResponseTimeoutError))

    record = log.children[0] if decorators else log
    assert expected is type(record.response_cause)
