"""Calls of one process take turns that cost more or less."""

from __future__ import annotations

import asyncio
import math
from itertools import count

import hypothesis
import pytest
from chains import in_virtual_time, now
from hypothesis import strategies as st

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too

import limits
from limits.aio.storage import MemoryStorage

from aioretry_smithy._limits.storage import StorageProbe, Turns
from aioretry_smithy.limits import StoredCounter

LENGTH = 10
RATE = limits.parse(f"10 per {LENGTH} seconds")
SOON = 0.001


class Script:
    """Answers what it is told, and notes what it is asked for."""

    def __init__(self, *answers, latency=0.0):
        self.answers = list(answers)
        self.latency = latency
        self.asked = []
        probe = StorageProbe("orders", "calls go on")
        self.turns = Turns(self, "orders", probe, allow=True)

    async def take(self, key, cost=1):
        self.asked.append((now(), cost))
        await asyncio.sleep(self.latency)
        return self.answers.pop(0)

    async def probe(self, key):
        raise AssertionError

    async def turn(self, cost, latest=math.inf, deadline=math.inf):
        """Wait for a turn; return whether it was given, its wait, and its time."""
        admission = await self.turns.turn(latest, deadline, cost)
        return admission.is_given, admission.seconds, now()

    def soon(self, cost, latest=math.inf, deadline=math.inf):
        return asyncio.create_task(self.turn(cost, latest, deadline))


async def test_a_refused_heavy_call_does_not_hold_up_a_light_one():
    """What the storage said of one cost holds for that and higher ones alone."""
    storage = Script(9.0, 0.0)

    assert (False, 9.0, 0.0) == await storage.turn(8, latest=5.0)
    assert (False, 9.0, 0.0) == await storage.turn(9, latest=5.0)
    assert (True, 0.0, 0.0) == await storage.turn(7, latest=5.0)
    assert [(0.0, 8), (0.0, 7)] == storage.asked


async def test_a_question_of_a_light_call_is_no_wait():
    """Though a heavier one was refused for longer."""
    storage = Script(9.0, 0.0, latency=0.25)
    await storage.turn(8, latest=5.0)

    assert (True, 0.0, 0.5) == await storage.turn(7)


async def test_a_light_call_waits_behind_a_heavy_one():
    """First come, first served; it has waited as long as that slept."""
    storage = Script(3.0, 0.0, 0.0)
    first, second = storage.soon(8), storage.soon(1)

    assert (True, 3.0, 3.0) == await first
    assert (True, 3.0, 3.0) == await second
    assert [(0.0, 8), (3.0, 8), (3.0, 1)] == storage.asked


async def test_one_in_line_that_could_not_wait_so_long_is_refused():
    """Once it is known that the heavy one before it sleeps."""
    storage = Script(3.0, 0.0)
    first, second = storage.soon(8), storage.soon(1, latest=2.0)

    assert (False, 3.0, 0.0) == await second
    assert (False, 3.0, 0.0) == await storage.turn(1, latest=2.0)
    assert (True, 3.0, 3.0) == await first


async def test_one_in_line_is_not_refused_for_a_heavy_one_that_gives_up():
    """Its own turn may come sooner."""
    storage = Script(9.0, 0.0, latency=0.5)
    first, second = storage.soon(8, latest=5.0), storage.soon(1, latest=5.0)

    assert (False, 9.0, 0.5) == await first
    assert (True, 0.0, 1.0) == await second


async def test_a_light_call_goes_when_the_heavy_one_before_it_is_cancelled():
    """And it has waited until then; one that comes later has not."""
    storage = Script(9.0, 0.0, 0.0)
    first, second = storage.soon(8), storage.soon(1)
    await asyncio.sleep(2.0)
    first.cancel()

    assert (True, 2.0, 2.0) == await second
    assert (True, 0.0, 2.0) == await storage.turn(1)


@pytest.mark.parametrize(
    ("costs", "asked"),
    [
        ((8, 3), [(0.0, 8)]),
        ((3, 8), [(0.0, 3), (0.5, 8)]),
    ],
    ids=["enough", "too little"],
)
async def test_a_question_that_is_taken_over_may_have_been_for_less(costs, asked):
    """Then the call asks for what it costs itself."""
    storage = Script(0.0, 0.0, latency=0.5)
    first, second = storage.soon(costs[0], deadline=0.25), storage.soon(costs[1])
    await first

    is_given, *_ = await second
    assert (True, asked) == (is_given, storage.asked)


CALL = st.tuples(
    st.floats(0.0, 25.0),  # when it comes
    st.integers(1, 10),  # what it costs
    st.sampled_from([0.0, 3.0, 8.0, math.inf]),  # how long it may wait
    st.sampled_from([None, None, 0.0, 0.013, 4.0]),  # when it is cancelled
    st.integers(0, 1),  # in which of two processes
)


class Counted:
    """Takes a while to be asked, and notes what was taken."""

    def __init__(self):
        self.rate = StoredCounter(MemoryStorage(), RATE)
        self.taken = []

    async def take(self, key, cost=1):
        await asyncio.sleep(0.01)
        seconds = await self.rate.take(key, cost)
        if not seconds:
            self.taken.append((now(), cost))
        return seconds

    async def probe(self, key):
        raise AssertionError


@hypothesis.given(st.lists(CALL, max_size=20))
def test_no_schedule_takes_too_much_or_waits_too_long(calls):
    """First come, first served in each process; only who is cancelled gets nothing."""
    arrivals = count()

    async def one(processes, came, cost, patience, cancelled, process):
        await asyncio.sleep(came)
        number = next(arrivals)
        turn = processes[process].turn(came + patience, math.inf, cost)
        waiting = asyncio.ensure_future(turn)
        if cancelled is not None:
            asyncio.get_running_loop().call_later(cancelled, waiting.cancel)
        await asyncio.wait([waiting])
        admission = None if waiting.cancelled() else waiting.result()
        return process, number, came, patience, admission, now()

    async def play():
        storage = Counted()
        processes = [
            Turns(storage, "orders", StorageProbe("orders", "-"), allow=True)
            for _ in range(2)
        ]
        ends = await asyncio.gather(*(one(processes, *each) for each in calls))
        assert [0, 0] == [*map(len, processes)]
        return storage.taken, [end for end in ends if end[4] is not None]

    taken, ends = in_virtual_time(play())

    for at, _ in taken:
        stretch = [cost for each, cost in taken if at <= each < at + LENGTH]
        assert sum(stretch) <= 2 * RATE.amount
    for process in range(2):
        served = [end for end in ends if end[0] == process and end[4].is_given]
        assert sorted(served, key=lambda end: end[1]) == sorted(
            served, key=lambda end: end[5]
        )
    for *_, came, patience, admission, end in ends:
        assert end <= came + max(patience, 1.0) + 0.5
        assert admission.is_given or patience < math.inf
        assert admission.seconds <= 2 * LENGTH * len(calls)
