"""Delays before a hedge: what they are, what they learn, and what they cut."""

import asyncio
import math
import pickle
import runpy
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from chains import URL, after, session
from hypothesis import given
from hypothesis import strategies as st
from races import hedging

from aioretry_smithy import (
    HedgingDelay,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    capture_logs,
)
from aioretry_smithy._hedging.delay import RecentTimes
from aioretry_smithy.testing import VirtualTimeLoop

BAD = [math.nan, math.inf, -1.0, "1", None, True]


@pytest.mark.parametrize("seconds", BAD)
def test_a_fixed_delay_is_a_number_of_seconds(seconds):
    """Finite, and not below 0."""
    with pytest.raises(ValueError, match=r"^seconds: .* \(expected: finite and >= 0\)"):
        HedgingDelay.fixed(seconds)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("quantile", [*BAD, 0, 0.0, 1.0, 95], "> 0 and < 1"),
        ("minimum_samples", [0, 1.0, True, None], "an int >= 1"),
        ("window", [*BAD, 0.0], "finite and > 0"),
        ("floor", BAD, "finite and >= 0"),
    ],
)
def test_a_percentile_says_what_it_expects(name, values, expected):
    """Also of those who mean 0.95 and write 95."""
    messages = []
    for value in values:
        with pytest.raises(ValueError, match="expected") as caught:
            HedgingDelay.percentile(**{name: value})
        messages.append(str(caught.value))

    assert [f"{name}: {each!r} (expected: {expected})" for each in values] == messages


@pytest.mark.parametrize(
    "delay",
    [
        HedgingDelay.fixed(0.5),
        HedgingDelay.percentile(0.9, minimum_samples=1, floor=0.0),
    ],
)
def test_a_delay_is_a_value(delay):
    """Equal to another one with the same settings, and shown as it was made."""
    other = pickle.loads(pickle.dumps(delay))

    assert (delay, hash(delay)) == (other, hash(other))
    assert delay == eval(repr(delay), {"HedgingDelay": HedgingDelay})


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
    QUANTILES, st.lists(st.tuples(st.floats(0.0, 50.0), TIMES), min_size=1, max_size=50)
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


EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "hedging_tail.py"
P95 = HedgingDelay.percentile(0.95)


@pytest.fixture(scope="module")
def example():
    """The functions of the example that measures it."""
    return runpy.run_path(str(EXAMPLE))


def measure(example, delay, calls):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        times, requests = runner.run(example["times_of"](delay, calls))
    return example["quantile"](times, 0.99), example["quantile"](times, 0.999), requests


@pytest.mark.slow
def test_a_twentieth_more_requests_cuts_the_tail(example):
    """Of the slowest hundredth most goes, in a few thousand calls already."""
    slow, _, _ = measure(example, None, 3000)
    quick, _, requests = measure(example, P95, 3000)

    assert quick < 0.25 * slow
    assert 1.03 < requests <= 1.055


@pytest.mark.long
@pytest.mark.release
def test_the_slowest_thousandth_takes_a_tenth(example):
    """For at most 5.5 % more requests: lognormal, with 2 % that take 300 ms longer."""
    _, slow, alone = measure(example, None, 20_000)
    _, quick, requests = measure(example, P95, 20_000)

    assert 1.0 == alone
    assert quick <= 0.1 * slow
    assert requests <= 1.055


class TestOutage:
    """Hedges stop when a server is down, since each costs as much as a retry."""

    async def hedges_in(self, answer, calls):
        """Return how many hedges each of some calls had, one call after the other."""
        budget = RetryBudget(capacity=5.0)
        retries = RetryingClient.new_decorator(RetryStrategy.never(), limiter=budget)
        decorators = hedging(0.05, limiter=budget), retries

        def answers():
            while True:
                yield answer

        with capture_logs() as logs:
            async with session(answers(), *decorators, timeout=1.0) as client:
                for _ in range(calls):
                    with suppress(TimeoutError):
                        await client.get(URL)
        return [log.total_attempts - 1 for log in logs]

    async def test_hedges_stop_within_the_budget(self):
        """After three calls in a row that got nothing, whatever they got."""
        silent = await self.hedges_in(after(9.0, 200), 20)
        failing = await self.hedges_in(503, 20)

        assert [1, 1, 1] + [0] * 17 == silent
        assert [1, 1, 1] + [0] * 17 == failing

    async def test_slow_answers_have_hedges_for_a_tenth_of_the_calls(self):
        """In the long run, as the budget says, when each call would like one."""
        hedges = await self.hedges_in(after(0.5, 200), 120)

        assert 5 + 115 / 10 - 1 <= sum(hedges) <= 5 + 120 / 10
