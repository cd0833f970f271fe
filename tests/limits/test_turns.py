"""Calls of one process take turns at a rate of many processes."""

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

from aioretry_smithy._limits.rate_limit import Admission
from aioretry_smithy._limits.storage import StorageProbe, Turns
from aioretry_smithy.limits import StoredCounter

AT_ONCE = Admission(is_given=True, seconds=0.0)
LOST = ConnectionError("no route")


def given(seconds):
    return Admission(is_given=True, seconds=seconds)


def refused(seconds):
    return Admission(is_given=False, seconds=seconds)


class Storage:
    """Answers what it is told: seconds until there may be a turn, or an exception."""

    def __init__(self, *answers, latency=0.0, allow=True):
        self.answers = list(answers)
        self.latency = latency
        self.asked = []
        self.busy = 0
        self.store = StorageProbe("orders", "calls go on")
        self.turns = Turns(self, "orders", self.store, allow=allow)

    async def take(self, key, cost=1):
        self.asked.append(now())
        self.busy += 1

        assert 1 == self.busy

        try:
            await asyncio.sleep(self.latency)
        finally:
            self.busy -= 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def probe(self, key):
        await self.take(key)

    async def turn(self, latest=math.inf, deadline=math.inf):
        """Wait for a turn; return it, and its time."""
        return await self.turns.turn(latest, deadline), now()

    def soon(self, latest=math.inf, deadline=math.inf):
        return asyncio.create_task(self.turn(latest, deadline))


async def test_what_it_takes_to_ask_is_no_wait():
    """A turn that is there at once has no seconds."""
    storage = Storage(0.0, latency=0.5)

    assert (AT_ONCE, 0.5) == await storage.turn()


async def test_a_call_sleeps_until_there_is_more():
    """Then it asks again, as often as another process was faster."""
    storage = Storage(2.0, 1.0, 0.0)

    assert (given(3.0), 3.0) == await storage.turn()
    assert [0.0, 2.0, 3.0] == storage.asked


async def test_one_call_asks_at_a_time_in_order_of_arrival():
    """Calls behind it have not waited for a turn, only for their question."""
    storage = Storage(0.0, 0.0, 0.0, latency=0.1)
    calls = [storage.soon() for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert 3 == len(storage.turns)
    ends = await asyncio.gather(*calls)
    assert [AT_ONCE] * 3 == [turn for turn, _ in ends]
    assert [0.1, 0.2, 0.3] == [round(end, 9) for _, end in ends]
    assert 0 == len(storage.turns)


async def test_those_behind_a_sleeper_have_waited_too():
    """Only the first one asks while nothing is left."""
    storage = Storage(2.0, 0.0, 0.0)
    first = storage.soon()
    await asyncio.sleep(0.5)
    second = storage.soon()

    assert (given(2.0), 2.0) == await first
    assert (given(1.5), 2.0) == await second
    assert [0.0, 2.0, 2.0] == storage.asked


async def test_a_turn_that_comes_too_late_is_refused_once_it_is_known():
    """To those in line as well, and at once to all that come afterwards."""
    storage = Storage(9.0, latency=0.5)
    calls = [storage.soon(latest=5.0), storage.soon(deadline=9.5), storage.soon()]
    await asyncio.sleep(0.75)

    assert (refused(9.0), 0.5) == calls[0].result()
    assert (refused(9.0), 0.5) == calls[1].result()
    assert (refused(8.75), 0.75) == await storage.turn(latest=5.0)
    assert [0.0] == storage.asked
    calls[2].cancel()


async def test_a_turn_at_the_last_moment_is_in_time_and_at_the_deadline_is_not():
    """There would be no time left for the answer."""
    in_time, too_late = Storage(2.0, 0.0), Storage(2.0)

    assert (given(2.0), 2.0) == await in_time.turn(latest=2.0)
    assert (refused(2.0), 2.0) == await too_late.turn(deadline=4.0)


async def test_a_call_that_may_not_wait_may_ask():
    """Behind another one as well."""
    storage = Storage(0.0, 0.0, 2.0, latency=0.3)
    calls = [storage.soon(latest=0.0) for _ in range(3)]
    ends = await asyncio.gather(*calls)

    assert [AT_ONCE, AT_ONCE, refused(2.0)] == [turn for turn, _ in ends]


async def test_a_call_gives_up_at_its_deadline():
    """Which says nothing of the storage; the question goes on to its second's end."""
    storage = Storage(0.0, latency=0.5)
    turn, end = await storage.turn(deadline=0.2)

    assert (False, 0.2) == (turn.is_given, end)
    await asyncio.sleep(1.0)
    assert not storage.store.is_down


async def test_the_question_of_a_call_that_gave_up_is_taken_over():
    """The turn that it brings is not lost; there is one question at a time."""
    storage = Storage(0.0, 0.0, latency=0.5)
    calls = [storage.soon(deadline=0.2), storage.soon()]
    await asyncio.sleep(0.3)
    calls.append(storage.soon())

    turns = await asyncio.gather(*calls)

    assert [False, True, True] == [turn.is_given for turn, _ in turns]
    assert [0.2, 0.5, 1.0] == [end for _, end in turns]
    assert [0.0, 0.5] == storage.asked


async def test_an_answer_that_nobody_waited_for_is_no_turn_of_a_later_call():
    """The window has gone on since."""
    storage = Storage(0.0, 0.0, latency=0.5)
    await storage.turn(deadline=0.2)
    await asyncio.sleep(9.0)

    assert (AT_ONCE, 9.7) == await storage.turn()
    assert [0.0, 9.2] == storage.asked


async def test_a_call_in_line_gives_up_at_its_deadline():
    """While the one before it still asks."""
    storage = Storage(0.0, latency=0.5)
    first, second = storage.soon(), storage.soon(deadline=0.2)

    assert (refused(0.0), 0.2) == await second
    assert (AT_ONCE, 0.5) == await first


class TestAway:
    """Calls go on while the storage is away."""

    async def test_calls_go_through(self):
        """Calls in line go at once, and those that come later do not ask."""
        storage = Storage(LOST, latency=0.3)
        calls = [storage.soon() for _ in range(3)]

        assert [(AT_ONCE, 0.6)] * 3 == await asyncio.gather(*calls)
        assert (AT_ONCE, 0.6) == await storage.turn()
        assert [0.0, 0.3] == storage.asked

    async def test_calls_can_be_refused_instead(self):
        """For a second, until it is looked for again."""
        storage = Storage(LOST, latency=0.3, allow=False)

        assert (refused(1.0), 0.6) == await storage.turn()
        assert (refused(1.0), 0.6) == await storage.turn()

    async def test_a_call_without_time_left_does_not_go(self):
        """Its deadline is when the storage is found away."""
        turn, end = await Storage(0.0, latency=60.0).turn(deadline=1.0)

        assert (False, 1.0) == (turn.is_given, end)

    @pytest.mark.parametrize("allow", [True, False])
    async def test_no_call_needs_the_patience_to_find_out(self, allow):
        """The second begins with the first question, whoever waits for its answer."""
        storage = Storage(0.0, latency=60.0, allow=allow)
        for number in range(1, 5):
            turn, _ = await storage.turn(deadline=number * 0.24)
            assert not turn.is_given

        assert (allow, 1.0) == ((await storage.turn(deadline=1.1))[0].is_given, now())
        assert [0.0] == storage.asked


class TestCancellation:
    """A call that is cancelled keeps no other from a turn."""

    @pytest.mark.parametrize("moment", range(12))
    @pytest.mark.parametrize("cancelled", range(3))
    async def test_the_others_get_their_turns(self, cancelled, moment):
        """Any of them may be cancelled, at any moment."""
        answers = [0.5, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0]
        storage = Storage(*answers)
        calls = [storage.soon() for _ in range(3)]
        for _ in range(moment):
            await asyncio.sleep(0 if moment < 8 else 0.125)
        calls[cancelled].cancel()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        others = [*ends[:cancelled], *ends[cancelled + 1 :]]

        assert [True, True] == [turn.is_given for turn, _ in others]
        assert 0 == len(storage.turns)


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
    [((8, 3), [(0.0, 8)]), ((3, 8), [(0.0, 3), (0.5, 8)])],
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
