"""Requests have their turn at a rate."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from chains import impatient, now
from hypothesis import given, settings
from hypothesis import strategies as st

from aioretry_smithy import RateLimit
from aioretry_smithy._clock import loop_time
from aioretry_smithy._limits.rate_limit import wait_in
from aioretry_smithy.testing import VirtualTimeLoop


async def turn_of(limit, until=math.inf):
    """Get a turn as a client does; return when that was, or None."""
    if limit._line.try_take(loop_time()) or await wait_in([(limit._line, 1.0)], until):
        return now()
    return None


async def turns(limit, many):
    return await asyncio.gather(*(turn_of(limit) for _ in range(many)))


async def test_a_burst_goes_out_at_once_and_the_rest_at_the_rate():
    """By default as many as go out in the time that was given."""
    assert [0, 0, 0.5, 1.0, 1.5] == await turns(RateLimit(2), 5)
    assert 0 == len(asyncio.all_tasks()) - 1


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (RateLimit(1, per=10.0), [0, 10, 20]),
        (RateLimit(0.5), [0, 2, 4]),
        (RateLimit(4, burst=1), [0, 0.25, 0.5]),
        (RateLimit(4, burst=1.5), [0, 0.125, 0.375]),
        (RateLimit(1, burst=3), [0, 0, 0]),
    ],
    ids=repr,
)
async def test_settings_mean_what_they_say(limit, expected):
    """Rates below one a second, and bursts of any size."""
    assert expected == await turns(limit, 3)


async def test_a_pause_fills_the_bucket_and_no_more():
    """Two are saved up, however long it is."""
    limit = RateLimit(2)
    await turns(limit, 3)
    await asyncio.sleep(100.0)

    assert [100.5, 100.5, 101.0] == await turns(limit, 3)


async def test_a_cancelled_request_takes_nothing():
    """The requests behind it move up, and no timer is left without them."""
    limit = RateLimit(1)
    waiters = [asyncio.create_task(turn_of(limit)) for _ in range(4)]
    await asyncio.sleep(0.5)
    waiters[1].cancel()
    await asyncio.sleep(0.75)
    last = waiters.pop()
    last.cancel()
    await asyncio.sleep(0)

    assert [0, 1.0] == [waiters[0].result(), waiters[2].result()]
    assert 0 == limit.pending
    assert all(timer.cancelled() for timer in asyncio.get_running_loop()._scheduled)


async def test_a_turn_that_comes_with_a_cancellation_goes_to_the_next():
    """Which then need not wait for another."""
    limit = RateLimit(1)
    limit._line.try_take(loop_time())
    first, second = (asyncio.create_task(turn_of(limit)) for _ in range(2))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_at(1.0, first.cancel)

    assert 1.0 == await second
    assert first.cancelled()


async def test_a_turn_of_a_request_that_is_cancelled_then_is_not_lost():
    """Nobody waits behind it, and the next one to come has it."""
    limit = RateLimit(1)
    limit._line.try_take(loop_time())
    waiter = asyncio.create_task(turn_of(limit))
    await asyncio.sleep(0)
    limit._line.rule._full_at -= 1.0
    limit._line.hurry()
    waiter.cancel()
    await asyncio.sleep(0)

    assert waiter.cancelled()
    assert limit._line.try_take(loop_time())


async def test_a_request_that_cannot_wait_is_let_go():
    """Where its turn moves away while it waits."""
    limit = RateLimit.from_headers()
    limit._line.rule.close(0.0, 1.0)
    waiter = asyncio.create_task(turn_of(limit, 2.0))
    await asyncio.sleep(0)
    limit._line.rule.close(0.0, 5.0)

    assert None is await waiter
    assert 2.0 == now()


def test_it_shows_its_settings():
    """As they were written."""
    assert "RateLimit(10, 1.0)" == repr(RateLimit(10))
    assert "RateLimit(10, 60, burst=5)" == repr(RateLimit(10, 60, burst=5))
    assert "RateLimit.from_headers()" == repr(RateLimit.from_headers())


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("requests", {"requests": 0}),
        ("requests", {"requests": "5"}),
        ("per", {"requests": 1, "per": 0}),
        ("per", {"requests": 1, "per": math.inf}),
        ("per", {"requests": 1e-300, "per": 1e300}),
        ("per", {"requests": 1, "per": 1e300, "burst": 1e10}),
        ("burst", {"requests": 1, "burst": 0.5}),
        ("burst", {"requests": 1, "burst": "5"}),
    ],
)
def test_bad_arguments_are_refused(argument, options):
    """The error names the argument."""
    with pytest.raises(ValueError, match=f"^{argument}: "):
        RateLimit(**options)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32).map(random.Random))
def test_no_schedule_exceeds_the_rate_in_any_window(chance):
    """Requests go out in the order of arrival, though any may come and leave."""
    rate, burst = chance.choice([1, 3, 7]), chance.choice([1, 2, 5])
    limit = RateLimit(rate, burst=burst)
    granted = []

    async def call(number):
        await turn_of(limit)
        granted.append((number, now()))

    calls = map(call, range(chance.randint(1, 20)))
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(impatient(chance, calls, pauses=[0.0, 0.1, 1.3], cancelled=0.3))

    times = [at for _, at in granted]
    assert sorted(granted) == granted
    assert 0 == limit.pending
    for first, begun in enumerate(times):
        for last in range(first, len(times)):
            most = burst + rate * (times[last] - begun)

            assert last - first + 1 <= most + 1e-3
