"""The quantile of the times that recent requests took."""

from __future__ import annotations

import asyncio
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import HedgingDelay
from aioretry_smithy._hedging.delay import RecentTimes
from aioretry_smithy.testing import VirtualTimeLoop

WINDOW = 60.0
TIMES = st.floats(1e-6, 1e9)
QUANTILES = st.floats(0.001, 0.999)


def recent(quantile=0.95, minimum_samples=1, floor=0.0):
    settings = HedgingDelay.percentile(
        quantile, minimum_samples=minimum_samples, window=WINDOW, floor=floor
    )
    return RecentTimes(settings)


def in_virtual_time(test):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(test())


def true_quantile(quantile, times):
    return sorted(times)[math.ceil(quantile * len(times)) - 1]


def is_near(exact, found):
    """Say whether a quantile is as near as is promised, apart from rounding."""
    return exact * (1 - 1e-9) <= found < exact * 1.05 * (1 + 1e-9)


@given(QUANTILES, st.lists(TIMES, min_size=1, max_size=200))
def test_it_is_never_shorter_and_less_than_a_twentieth_longer(quantile, times):
    """However long the times are: no bucket is the last one."""

    async def find():
        found = recent(quantile)
        for each in times:
            found.note(each)
        return found.delay()

    assert is_near(true_quantile(quantile, times), in_virtual_time(find))


@given(
    QUANTILES,
    st.lists(st.tuples(st.floats(0.0, 50.0), TIMES), min_size=1, max_size=50),
)
def test_the_last_one_to_two_windows_count(quantile, steps):
    """A window lasts a minute; the first begins with the object."""

    async def find():
        times, noted = recent(quantile), []
        clock = asyncio.get_running_loop().time
        ends, past, now = WINDOW, [], []
        for pause, each in steps:
            await asyncio.sleep(pause)
            if clock() >= ends:
                past, now, ends = now, [], ends + WINDOW
            times.note(each)
            now.append(each)
            noted.append((true_quantile(quantile, past + now), times.delay()))
        return noted

    assert all(is_near(*pair) for pair in in_virtual_time(find))


async def test_there_is_none_before_there_are_enough_times():
    """One too few is too few."""
    times = recent(minimum_samples=3)
    times.note(1.0)
    times.note(1.0)

    assert times.delay() is None
    times.note(1.0)
    assert is_near(1.0, times.delay())


async def test_it_is_forgotten_after_two_windows():
    """A host that nobody called for so long is a new one."""
    times = recent()
    times.note(1.0)
    await asyncio.sleep(2 * WINDOW)

    assert times.delay() is None
    times.note(2.0)
    await asyncio.sleep(1.5 * WINDOW)
    assert is_near(2.0, times.delay())


async def test_it_is_never_below_the_floor():
    """Even where answers take no time at all, which is no time for a logarithm."""
    times = recent(floor=0.25)
    times.note(0.0)

    assert 0.25 == times.delay()


async def test_many_times_are_looked_at_less_often():
    """When a hundredth more has come: the quantile is off by no more than that."""
    times = recent(0.995)
    for _ in range(1000):
        times.note(1.0)
    before = times.delay()
    for _ in range(10):
        times.note(100.0)

    assert before == times.delay()
    times.note(100.0)
    assert is_near(100.0, times.delay())


async def test_the_next_window_begins_where_one_ends():
    """What comes in that moment is in the next one."""
    times = recent()
    times.note(1.0)
    await asyncio.sleep(WINDOW)
    times.note(2.0)
    await asyncio.sleep(WINDOW)
    times.note(0.5)

    assert is_near(2.0, times.delay())


async def test_it_is_small():
    """A host with a thousand answers of all lengths takes some kilobytes."""
    times = recent()
    for number in range(1000):
        times.note(0.001 * 1.01**number)

    assert 300 > len(times._now)
    assert 20_000 > sys.getsizeof(times._now)


@pytest.mark.parametrize("seconds", [1e-9, 1e9])
async def test_no_time_is_too_short_or_too_long(seconds):
    """The shortest stand for those that no clock tells apart."""
    times = recent()
    times.note(seconds)

    assert is_near(max(seconds, 1e-6), times.delay())
