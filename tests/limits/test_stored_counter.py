"""A sliding window counter, of storages and in virtual time, and waits for it."""

from __future__ import annotations

import asyncio
import time
from math import floor

import pytest
from chains import in_virtual_time, now
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too

import limits
from limits.aio.storage import MemoryStorage, Storage

from aioretry_smithy.limits import StoredCounter, seconds_until

RATE = limits.parse("10 per 8 seconds")
LENGTH = 8
SOON = 0.001

EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 1.0, 3.0, 7.75, 8.0, 17.0]), st.integers(1, 10)
    ),
    max_size=30,
)
"""The seconds before each turn is asked for, and its cost."""


class Asked(MemoryStorage):
    """Memory that is asked in virtual time too, as any other storage."""

    STORAGE_SCHEME = None

    async def acquire_sliding_window_entry(self, *arguments, **options):
        return await super().acquire_sliding_window_entry(*arguments, **options)

    async def get_sliding_window(self, *arguments, **options):
        return await super().get_sliding_window(*arguments, **options)


async def answers(rate, events):
    """Return when turns were asked for, what they cost, and the answers."""
    found = []
    for seconds, cost in events:
        await asyncio.sleep(seconds)
        found.append((now(), cost, await rate.take("orders", cost)))
    return found


async def end(storage):
    """Wait for the task in which memory forgets."""
    if storage.timer is not None:
        storage.timer.cancel()
        await asyncio.gather(storage.timer, return_exceptions=True)


@given(EVENTS)
def test_no_schedule_spends_more_than_the_counter_permits(events):
    """What a window has; in a stretch that lies across two, what both have."""

    async def play():
        return await answers(StoredCounter(MemoryStorage(), RATE), events)

    taken = [(at, cost) for at, cost, seconds in in_virtual_time(play()) if not seconds]

    def spent(begin, until):
        return sum(cost for at, cost in taken if begin <= at < until)

    for at, _ in taken:
        begin = floor(at / LENGTH) * LENGTH
        before, present = spent(begin - LENGTH, begin), spent(begin, at + 1e-9)
        assert spent(at, at + LENGTH) <= 2 * RATE.amount
        assert spent(begin, begin + LENGTH) <= RATE.amount
        counts = floor(before * (begin + LENGTH - at) / LENGTH)
        assert counts + present <= RATE.amount


@given(EVENTS, st.integers(1, 10))
def test_a_wait_is_as_long_as_it_has_to_be(events, cost):
    """After it there is a turn, unless somebody else has taken it; before it, none."""

    async def play(early):
        rate = StoredCounter(MemoryStorage(), RATE)
        await answers(rate, events)
        seconds = await rate.take("orders", cost)
        if seconds:
            await asyncio.sleep(seconds - early)
            return await rate.take("orders", cost)
        return None

    assert in_virtual_time(play(0.0)) in {0.0, None}
    assert in_virtual_time(play(SOON + 1e-4)) != 0.0


@given(EVENTS)
def test_virtual_time_counts_as_memory_does(events):
    """By the clock of the loop in place of that of the machine."""

    async def play():
        storage = Asked()
        virtual = await answers(StoredCounter(MemoryStorage(), RATE), events)
        begun = now()
        with pytest.MonkeyPatch.context() as patch:
            # The clock of the machine shows a whole number of windows more.
            patch.setattr(time, "time", lambda: 100 * LENGTH + now() - begun)
            asked = await answers(StoredCounter(storage, RATE), events)
            await end(storage)
        shifted = [(at - begun, *rest) for at, *rest in asked]
        assert [pytest.approx(one, abs=1e-6) for one in virtual] == shifted

    in_virtual_time(play())


@pytest.mark.parametrize(
    ("counts", "seconds"),
    [
        ((10, 0, 0.0, 0, 0.0), 0.0),
        ((0, 10, 8.0, 0, 8.0), 7.2),
        ((4, 10, 8.0, 0, 8.0), 4.0),
        ((4, 10, 2.0, 0, 2.0), 0.0),
        ((4, 10, 8.0, 4, 8.0), 7.2),
        ((4, 0, 0.0, 10, 3.0), 7.0),
        ((9, 0, 0.0, 10, 3.0), 3.0),
        ((0, 0, 0.0, 10, 3.0), 10.2),
    ],
)
def test_waits_follow_the_windows(counts, seconds):
    """What was spent before weighs less and less; the present window ends first."""
    most, *rest = counts

    assert SOON + seconds == pytest.approx(seconds_until(most, LENGTH, *rest))


async def test_each_storage_key_and_rate_has_a_counter_of_its_own():
    """In virtual time too."""
    storage = MemoryStorage()
    rates = [StoredCounter(storage, RATE), StoredCounter(storage, RATE)]
    other = StoredCounter(storage, limits.parse("10 per 9 seconds"))

    assert 0.0 == await rates[0].take("orders", 10)
    assert 0.0 < await rates[1].take("orders", 10)
    assert 0.0 == await rates[1].take("others", 10)
    assert 0.0 == await other.take("orders", 10)
    assert 0.0 == await StoredCounter(MemoryStorage(), RATE).take("orders", 10)


async def test_a_look_changes_nothing(monkeypatch):
    """By it a storage is found that was away."""
    monkeypatch.setattr(time, "time", now)
    storage = Asked()
    rate = StoredCounter(storage, RATE)
    await rate.probe("orders")

    assert 0.0 == await rate.take("orders", 10)
    await end(storage)


class Plain(Storage):
    """A storage without any window that moves."""

    STORAGE_SCHEME = None
    base_exceptions = ConnectionError

    async def incr(self, *arguments, **options):
        raise AssertionError

    get = get_expiry = check = reset = clear = incr


def test_a_storage_without_such_a_counter_is_refused():
    """Before anything is asked of it."""
    with pytest.raises(ValueError, match="^storage: .*Plain.* sliding window counter"):
        StoredCounter(Plain(), RATE)
