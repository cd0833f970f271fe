"""Calls that wait for the rate limiter of an adaptive strategy, or for a quota."""

import asyncio
from contextlib import suppress

import pytest
from chains import URL, log_of_cancelled, now, response_of, status_and_log
from chains import retrying_session as session
from token_strategies import SCOPE, THROTTLED, Slow, adaptive, available, standard

from aioretry_smithy import (
    Backoff,
    RequestLog,
    ResponseTimeoutError,
    RetryStopReason,
    capture_logs,
    smithy,
)


async def test_initial_delay_of_a_strategy_of_ours_comes_before_the_rate_limiter():
    """A backoff strategy of one's own may ask for a wait before the first attempt."""
    strategy = smithy.AdaptiveRetryStrategy(backoff_strategy=Slow(), max_attempts=1)
    _, first = await status_and_log(session([THROTTLED], strategy))
    _, second = await status_and_log(session([200], strategy))

    assert (0.5, "backoff") == (first.delay, first.delay_source)
    # One answer in half a second is 1.6 a second, of which 0.7 are left.
    assert pytest.approx(1 / 1.12) == second.delay
    assert "rate_limit" == second.delay_source


def long_polling():
    quota = smithy.StandardRetryQuota(0)
    return standard(retry_quota=quota, long_polling=True)


async def test_long_poll_slows_down_when_the_quota_is_empty():
    """The caller, who will ask again at once, waits the delay of the lost retry."""
    await asyncio.sleep(1.0)
    status, log = await status_and_log(session([503], long_polling()))

    assert (503, 1.5) == (status, now())
    assert (0.5, "backoff") == (log.children[0].delay, log.children[0].delay_source)
    assert RetryStopReason.LIMITER == log.stop_reason


async def test_long_poll_does_not_wait_longer_than_the_deadline():
    """Nor for anything but the quota."""
    strategy = long_polling()
    throttled, _ = await status_and_log(session([THROTTLED], strategy, timeout=2.0))
    unknown, log = await status_and_log(session([404], strategy))

    assert (429, 404, 0.0) == (throttled, unknown, now())
    assert log.children[0].delay is None


async def test_long_poll_that_is_cancelled_has_waited_until_then():
    """The log has the time that passed, and the reason."""
    log = await log_of_cancelled(session([503], long_polling()), 0.25)

    assert (0.25, "cancelled") == (log.children[0].delay, log.stop_reason)


async def test_rate_limiter_holds_up_a_retry_after_the_backoff():
    """The wait for the limiter is in the log, and named for it."""
    strategy = adaptive()
    status, log = await status_and_log(session([THROTTLED, 200], strategy))

    first = log.children[0]
    assert 200 == status
    # Nothing was measured yet, so the rate is the least there is: one in two seconds,
    # of which the backoff took the first half.
    assert (2.0, "rate_limit") == (pytest.approx(first.delay), first.delay_source)
    assert log.duration == first.delay


async def test_rate_limiter_holds_up_a_retry_in_the_last_second_of_the_call():
    """There is time for it as long as the limiter grants it before the end."""
    late = smithy.from_backoff(Backoff.fixed(1.5))
    strategy = smithy.AdaptiveRetryStrategy(throttling_backoff_strategy=late)
    chain = session([THROTTLED, 200], strategy, timeout=2.25)
    status, log = await status_and_log(chain)

    first = log.children[0]
    assert 200 == status
    assert (2.0, "rate_limit") == (pytest.approx(first.delay), first.delay_source)


async def test_no_wait_for_a_rate_that_nothing_limits_is_in_the_log():
    """Neither before the first attempt, nor after it."""
    _, log = await status_and_log(session([200], standard()))

    assert (None, None) == (log.delay, log.delay_source)


async def test_rate_limiter_holds_up_a_first_attempt():
    """The next call to the same server waits for the throttling of one before."""
    strategy = adaptive(max_attempts=1)
    first, second = ([THROTTLED], [200])
    await status_and_log(session(first, strategy))
    status, log = await status_and_log(session(second, strategy))

    assert 200 == status
    assert (2.0, "rate_limit") == (pytest.approx(log.delay), log.delay_source)
    assert log.children[0].delay is None


async def test_rate_limiter_of_one_server_is_not_that_of_another():
    """A host that throttles slows down nobody else."""
    strategy = adaptive(max_attempts=1)
    async with session([THROTTLED, 200], strategy) as client:
        async with client.get("http://localhost/"):
            pass
        async with client.get("http://elsewhere/"):
            pass

    assert 0.0 == now()
    assert strategy.limiter_for(SCOPE).enabled
    assert not strategy.limiter_for("elsewhere:80").enabled


async def test_rate_limiter_that_grants_too_late_ends_the_call_at_once():
    """Before a first attempt there is no response to hand over."""
    strategy = adaptive(max_attempts=1)
    await status_and_log(session([THROTTLED], strategy))
    with capture_logs() as logs, pytest.raises(ResponseTimeoutError):
        await response_of(session([], strategy, timeout=1.0))

    assert 0.0 == now()
    assert RetryStopReason.DEADLINE == logs[0].stop_reason


async def test_rate_limiter_that_would_grant_a_retry_too_late_ends_the_call_at_once():
    """With the response, which would be given up for an attempt that cannot be made."""
    strategy = adaptive()
    status, log = await status_and_log(session([THROTTLED], strategy, timeout=1.5))

    assert (429, 0.0, 500) == (status, now(), available(strategy))
    assert RetryStopReason.DEADLINE == log.stop_reason


async def test_rate_limiter_that_others_were_faster_at_may_end_the_call_late():
    """Other calls may take the tokens that were to come in time."""
    strategy = adaptive()
    limiter = strategy.limiter_for(SCOPE)

    async def overtake():
        await asyncio.sleep(1.75)
        await limiter.acquire(0.75)

    with capture_logs() as logs:
        async with (
            session([THROTTLED], strategy, timeout=2.25) as client,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(overtake())
            with pytest.raises(ResponseTimeoutError):
                await client.get(URL)

    assert RetryStopReason.DEADLINE == logs[0].stop_reason
    assert "rate_limit" == logs[0].children[0].delay_source


async def test_cancelled_wait_for_the_limiter_takes_nothing():
    """The next one in line does not wait longer for it."""
    strategy = adaptive(max_attempts=1)
    await status_and_log(session([THROTTLED], strategy))
    log = await log_of_cancelled(session([], strategy), 1.25)
    await status_and_log(session([200], strategy))

    assert (1.25, "cancelled") == (log.delay, log.stop_reason)
    assert pytest.approx(2.0) == now()


async def test_failing_fast_refuses_a_first_attempt_without_capacity():
    """With an exception that says when to come back; nothing was sent."""
    strategy = adaptive(max_attempts=1, fail_fast=True)
    await status_and_log(session([THROTTLED], strategy))
    with pytest.raises(smithy.CapacityNotAvailableError) as caught:
        await response_of(session([], strategy))

    assert pytest.approx(2.0) == caught.value.retry_after
    assert RetryStopReason.LIMITER == RequestLog.of(caught.value).stop_reason


async def test_failing_fast_ends_a_retry_without_capacity():
    """With the last response; the retry that was not sent is not paid for."""
    strategy = adaptive(fail_fast=True)
    status, log = await status_and_log(session([THROTTLED], strategy))

    assert (429, 0.0, 500) == (status, now(), available(strategy))
    assert RetryStopReason.LIMITER == log.stop_reason


@pytest.mark.parametrize("fail_fast", [False, True])
async def test_limiter_grants_each_attempt_once(fail_fast):
    """Failing fast it is asked when a retry is decided, otherwise after the backoff."""
    granted = []

    class Counting(smithy.ClientRateLimiter):
        def try_acquire(self, amount=1.0):
            wait = super().try_acquire(amount)
            if not wait:
                granted.append(now())
            return wait

    strategy = adaptive(rate_limiter=Counting(), fail_fast=fail_fast)
    status, _ = await status_and_log(session([503, 200], strategy))

    assert (200, [0.0, 0.0 if fail_fast else 0.5]) == (status, granted)


async def test_failing_fast_asks_before_an_initial_delay():
    """A delay is no leave."""
    strategy = smithy.AdaptiveRetryStrategy(
        backoff_strategy=Slow(), max_attempts=1, fail_fast=True
    )
    limiter = strategy.limiter_for(SCOPE)
    limiter.update(throttled=True)
    with pytest.raises(smithy.CapacityNotAvailableError):
        await response_of(session([], strategy))

    assert 0.0 == now()


@pytest.mark.parametrize("answer", [200, 404, lambda *_: asyncio.sleep(9)])
async def test_every_attempt_is_measured(answer):
    """Also the one that nobody retries and the one that the deadline cuts."""
    strategy = adaptive()
    limiter = strategy.limiter_for(SCOPE)
    limiter.try_acquire()
    await asyncio.sleep(1.0)
    async with session([answer], strategy, timeout=1.0) as client:
        with suppress(ResponseTimeoutError):
            await client.get(URL)

    assert 0.0 < limiter.measured_rate
    assert not limiter.enabled
