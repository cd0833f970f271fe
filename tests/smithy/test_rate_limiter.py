"""The rate limiter of the adaptive mode."""

import asyncio
import copy
import json
import math
import statistics
from itertools import count
from pathlib import Path

import pytest
from chains import Clock, bad_argument, in_threads, now

from aioretry_smithy.smithy import ClientRateLimiter
from aioretry_smithy.smithy.rate_limiter import rate_after_throttling
from aioretry_smithy.testing import VirtualTimeLoop

VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "rate_limiter.json").read_text()
)


@pytest.fixture
def clock():
    """A clock that stands still until the test moves it."""
    return Clock()


@pytest.fixture
def limiter(clock):
    """A rate limiter that nobody has used yet."""
    return ClientRateLimiter(clock=clock)


def slowest_limiter():
    """Return a rate limiter that is empty and grants one attempt in two seconds."""
    limiter = ClientRateLimiter()
    limiter.update(throttled=True)
    return limiter


def throttled_limiter(clock, rate):
    """Return a rate limiter that is empty and grants *rate* attempts a second.

    The clock is at its next half second then.
    """
    limiter = ClientRateLimiter(clock=clock)
    for _ in range(round(rate / 1.12) - 1):
        limiter.update(throttled=False)
    clock.now += 0.5
    limiter.update(throttled=True)
    return limiter


class TestUpdate:
    """The rate limiter learns from answers."""

    @pytest.mark.parametrize("row", VECTORS["first_throttling"])
    def test_first_throttling_makes_the_next_attempt_wait(self, limiter, clock, row):
        """The bucket is empty then, whatever was sent before."""
        assert 0.0 == limiter.try_acquire()

        clock.now = row["at"]
        limiter.update(throttled=True)

        assert limiter.enabled
        assert pytest.approx(
            [row[name] for name in ("measured", "fill_rate", "wait")]
        ) == [
            limiter.measured_rate,
            limiter.fill_rate,
            limiter.try_acquire(),
        ]

    @pytest.mark.parametrize("row", VECTORS["first_reduced_rate"])
    def test_first_throttling_reduces_the_measured_rate(self, limiter, clock, row):
        """The published rates are below the least there is, which is then the rate."""
        assert 0.0 == limiter.try_acquire()

        clock.now = row["at"]
        limiter.update(throttled=True)

        actual = rate_after_throttling(limiter.measured_rate)
        assert pytest.approx(row["rate"]) == actual
        assert 0.5 == limiter.fill_rate

    def test_throttling_from_the_start(self, limiter, clock):
        """A question alone takes nothing, however often it is asked."""
        vector = VECTORS["throttled_from_the_start"]
        clock.now = vector["throttled_at"]
        limiter.update(throttled=True)
        actual = []
        for step in vector["steps"]:
            clock.now = step["at"]
            actual += [limiter.try_acquire(), limiter.capacity]

        expected = [
            step[what] for step in vector["steps"] for what in ("wait", "capacity")
        ]
        assert pytest.approx(expected) == actual

    def test_nothing_is_limited_before_the_first_throttling(self, limiter, clock):
        """Other answers, failures too, do not switch it on."""
        for _ in range(100):
            clock.now += 0.1
            limiter.update(throttled=False)

        assert not limiter.enabled
        assert {0.0} == {limiter.try_acquire() for _ in range(1000)}

    def test_it_stays_enabled(self, clock):
        """A server that has throttled once may do so again."""
        limiter = throttled_limiter(clock, rate=5.0)
        for _ in range(1000):
            clock.now += 1.0
            limiter.update(throttled=False)

        assert limiter.enabled

    def test_throttling_again_starts_from_the_lower_rate(self, clock):
        """Answers to what was sent earlier do not raise the rate."""
        limiter = throttled_limiter(clock, rate=112.0)
        before = limiter.fill_rate
        assert before < limiter.measured_rate

        limiter.update(throttled=True)

        assert pytest.approx(0.7 * before) == limiter.fill_rate

    def test_throttling_again_starts_from_what_is_sent(self, clock):
        """Where less is sent than may be, that is already too much."""
        limiter = throttled_limiter(clock, rate=112.0)
        clock.now = 10.0
        limiter.update(throttled=True)

        assert limiter.measured_rate < 112.0
        assert pytest.approx(0.7 * limiter.measured_rate) == limiter.fill_rate

    def test_rate_grows_to_twice_what_is_measured_at_most(self, clock):
        """A rate that nobody needs is not raised for ever."""
        limiter = throttled_limiter(clock, rate=5.0)
        for _ in range(100):
            clock.now += 1.0
            limiter.update(throttled=False)

        assert pytest.approx(1.0) == limiter.measured_rate
        assert pytest.approx(2.0) == limiter.fill_rate

    def test_answers_that_do_not_throttle_raise_rate_and_room(self, clock):
        """Successes and failures alike: neither ever lowers what there may be."""
        limiter = throttled_limiter(clock, rate=112.0)
        rates = [limiter.fill_rate]
        for _ in range(1000):
            clock.now += 0.01
            limiter.update(throttled=False)
            rates.append(limiter.fill_rate)
        clock.now += 2.0

        assert sorted(rates) == rates
        assert rates[0] < rates[-1]
        assert pytest.approx(rates[-1]) == limiter.capacity

    def test_a_lower_rate_holds_fewer_tokens(self, clock):
        """Tokens saved up at the old rate do not make a burst at the new one."""
        limiter = throttled_limiter(clock, rate=112.0)
        clock.now = 100.0
        assert pytest.approx(112.0) == limiter.capacity

        limiter.update(throttled=True)

        assert limiter.fill_rate < 23.0
        assert pytest.approx(limiter.fill_rate) == limiter.capacity

    def test_clock_is_first_read_when_it_is_used(self, limiter, clock):
        """An object made long before does not take the time until then into account."""
        clock.now = 1000.0
        limiter.update(throttled=False)
        clock.now = 1000.5
        limiter.update(throttled=True)

        assert pytest.approx(0.8 * 2 / 0.5) == limiter.measured_rate

    def test_looking_at_it_is_no_use_of_it(self, limiter, clock):
        """Properties tell, and begin nothing."""
        assert (0.0, 0.5) == (limiter.capacity, limiter.fill_rate)
        assert (0.0, False) == (limiter.measured_rate, limiter.enabled)

        clock.now = 1000.0
        limiter.update(throttled=True)

        assert 0.0 == limiter.measured_rate

    def test_throttled_again_and_again(self, limiter, clock):
        """The published case: it comes to life again, and never owes anything."""
        vector = VECTORS["throttled_again_and_again"]
        for _ in range(vector["throttling_answers"]):
            limiter.update(throttled=True)
            clock.now += vector["seconds_between_answers"]
        assert vector["fill_rate"] == limiter.fill_rate
        grants, levels = 0, []
        for _ in range(vector["rounds"]):
            clock.now += vector["seconds_between_rounds"]
            for _ in range(vector["tasks"]):
                if not limiter.try_acquire():
                    grants += 1
                    limiter.update(throttled=False)
                levels.append(limiter.capacity)

        assert grants > vector["grants_more_than"]
        assert 0 <= min(levels)


class TestClock:
    """A clock that does what clocks should not."""

    def test_going_back_it_begins_anew_from_there(self, clock):
        """The rate rises again with what succeeds, in a fresh loop that begins at 0."""
        clock.now = 1000.0
        limiter = throttled_limiter(clock, rate=11.2)
        before = limiter.fill_rate, limiter.measured_rate
        clock.now = 0.0
        limiter.try_acquire()
        assert before == (limiter.fill_rate, limiter.measured_rate)
        for _ in range(500):
            clock.now += 0.01
            limiter.update(throttled=False)

        assert pytest.approx(100.0, rel=0.05) == limiter.measured_rate
        assert limiter.fill_rate > 20.0

    def test_going_back_it_begins_with_any_use(self, clock):
        """Also with an answer; what the old loop has counted is forgotten."""
        clock.now = 1000.0
        limiter = throttled_limiter(clock, rate=11.2)
        for _ in range(100):
            limiter.update(throttled=False)
        clock.now = 3.0
        limiter.update(throttled=True)
        before = limiter.measured_rate
        clock.now = 3.5
        limiter.update(throttled=False)

        assert pytest.approx(0.8 * 2 / 0.5 + 0.2 * before) == limiter.measured_rate

    def test_lagging_a_little_it_stands_still(self, clock):
        """Two loops whose times differ a little neither stop nor hasten each other."""
        limiter = throttled_limiter(clock, rate=11.2)
        clock.now = 0.0
        steady = throttled_limiter(clock, rate=11.2)
        clock.now = start = 10.0
        for turn in range(1, 101):
            clock.now = start + 0.01 * turn
            for each in (limiter, steady):
                each.try_acquire(100.0)
                each.update(throttled=False)
            clock.now -= 0.05
            limiter.try_acquire(100.0)

        clock.now = start + 1.0
        assert steady.capacity == limiter.capacity
        assert steady.fill_rate == limiter.fill_rate
        assert steady.measured_rate == limiter.measured_rate

    @pytest.mark.parametrize(
        "reading", [math.nan, math.inf, -math.inf, None, "1", True]
    )
    def test_it_has_to_return_a_finite_number(self, reading):
        """Said by the first use, not by some calculation."""
        limiter = ClientRateLimiter(clock=lambda: reading)
        with bad_argument("clock", reading, "returns a finite number"):
            limiter.update(throttled=True)

    @pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf])
    def test_a_reading_that_is_none_changes_nothing(self, clock, now):
        """When the clock is right again, all goes on."""
        limiter = throttled_limiter(clock, rate=11.2)
        before = limiter.capacity
        at, clock.now = clock.now, now
        with pytest.raises(ValueError, match="clock"):
            limiter.try_acquire()
        clock.now = at + 0.5

        assert pytest.approx(before + 5.6) == limiter.capacity


class TestExpectedWait:
    """How long one attempt would be held up."""

    def test_nothing_is_expected_before_the_first_throttling(self, limiter):
        """There is nothing to wait for."""
        assert 0.0 == limiter.expected_wait(after=1.0)

    def test_it_is_the_wait_that_is_told(self, clock):
        """Neither asking nor expecting takes anything."""
        limiter = throttled_limiter(clock, rate=5.6)
        clock.now += 0.02
        wait = limiter.try_acquire()

        assert 0.0 < wait
        assert pytest.approx(wait) == limiter.expected_wait()
        assert pytest.approx(wait - 0.05) == limiter.expected_wait(after=0.05)
        assert 0.0 == limiter.expected_wait(after=wait + 1e-9)
        assert 0.0 == limiter.expected_wait(after=1e6)
        assert pytest.approx(wait) == limiter.try_acquire()

    @pytest.mark.parametrize("after", [-1, math.nan, math.inf, True, "1", None])
    def test_bad_after(self, limiter, after):
        """Seconds that are none are refused, also while nothing is limited."""
        with pytest.raises(ValueError, match="after: .* finite and >= 0"):
            limiter.expected_wait(after=after)


class TestTryAcquire:
    """Asking for leave without waiting."""

    def test_first_use_begins_the_measuring(self, limiter, clock):
        """Also where nothing is limited yet."""
        clock.now = 7.0
        assert 0.0 == limiter.try_acquire()
        clock.now = 9.0
        limiter.update(throttled=False)

        assert 0.8 * 1 / 2 == limiter.measured_rate

    def test_what_it_grants_is_taken(self, clock):
        """Within a second there are as many grants as the rate says."""
        limiter = throttled_limiter(clock, rate=112.0)
        clock.now += 1.0
        grants = sum(limiter.try_acquire() == 0.0 for _ in range(1000))

        assert 112 == grants
        assert 0 <= limiter.capacity < 1

    def test_after_the_wait_there_is_enough(self, clock):
        """The seconds it returns are the ones that it takes, to the digit."""
        limiter = throttled_limiter(clock, rate=5.6)
        for _ in range(1000):
            wait = limiter.try_acquire()
            clock.now += wait
            assert 0 < wait
            assert 0.0 == limiter.try_acquire()
            assert 0.0 <= limiter.capacity < 1e-9

    @pytest.mark.parametrize("amount", [0, -1, math.nan, math.inf, True, "1", None])
    def test_bad_amount(self, limiter, amount):
        """An amount is a number above 0, also while nothing is limited."""
        with bad_argument("amount", amount, "finite and > 0"):
            limiter.try_acquire(amount)


class TestAcquire:
    """Waiting for leave, in virtual time."""

    async def test_before_the_first_throttling_nobody_waits(self):
        """There is not even a turn of the loop."""
        coroutine = ClientRateLimiter().acquire()

        with pytest.raises(StopIteration):
            coroutine.send(None)

    async def test_it_waits_until_there_is_a_token(self):
        """The time is that of the running loop."""
        limiter = slowest_limiter()
        await limiter.acquire()
        await limiter.acquire()

        assert 4.0 == now()
        assert 0.0 == limiter.capacity

    async def test_bad_amount(self):
        """A bad argument is not waited for."""
        with pytest.raises(ValueError, match="amount"):
            await ClientRateLimiter().acquire(0)

    async def test_more_than_there_is_room_for_is_saved_up(self):
        """Five at one in two seconds are ten seconds, though there is room for one."""
        limiter = slowest_limiter()
        await limiter.acquire(5.0)

        assert 10.0 == now()

    async def test_a_rate_that_rises_is_noticed(self):
        """A wait of two seconds is cut short when answers have become frequent."""
        limiter = slowest_limiter()
        await limiter.acquire()
        assert 2.0 == limiter.try_acquire()
        async with asyncio.TaskGroup() as group:
            group.create_task(limiter.acquire())
            await asyncio.sleep(0.25)
            for _ in range(100):
                limiter.update(throttled=False)
            await asyncio.sleep(0.25)
            limiter.update(throttled=False)
            assert limiter.fill_rate > 2.0

        assert 3.0 == now()

    async def test_a_rate_that_falls_is_noticed(self):
        """A call that wakes up looks whether there is enough by now."""
        limiter = ClientRateLimiter()
        loop = asyncio.get_running_loop()
        await limiter.acquire()  # the measuring begins
        await asyncio.sleep(0.5)
        limiter.update(throttled=True)
        assert pytest.approx(1 / 1.12) == limiter.try_acquire()
        async with asyncio.TaskGroup() as group:
            group.create_task(limiter.acquire())
            await asyncio.sleep(0.25)
            limiter.update(throttled=True)

        # A quarter of a second at the one rate, the rest at the other one.
        assert pytest.approx(0.75 + (1 - 0.25 * 1.12) / (0.7 * 1.12)) == loop.time()

    async def test_a_waiter_does_not_keep_others_from_reporting(self):
        """No lock is held while a call waits."""
        limiter = slowest_limiter()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(limiter.acquire())
            await asyncio.sleep(0.1)
            limiter.update(throttled=True)
            await asyncio.to_thread(limiter.update, throttled=True)

            assert not waiting.done()

    async def test_a_cancelled_waiter_costs_nothing(self):
        """Its token goes to the next one, at the same time."""
        limiter = slowest_limiter()
        waiters = [asyncio.create_task(limiter.acquire()) for _ in range(10)]
        await asyncio.sleep(1.5)
        for waiter in waiters:
            waiter.cancel()
        await asyncio.gather(*waiters, return_exceptions=True)
        assert 0.75 == limiter.capacity

        await limiter.acquire()

        assert 2.0 == now()

    async def test_a_waiter_cancelled_when_its_token_comes_costs_nothing(self):
        """Also in the very turn of the loop in which it would have been granted."""
        limiter = slowest_limiter()
        waiter = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(1.0)
        asyncio.get_running_loop().call_at(2.0, waiter.cancel)
        await asyncio.wait([waiter])

        assert waiter.cancelled()
        assert 2.0 == now()
        assert 1.0 == limiter.capacity

    async def test_five_hundred_tasks_share_it(self):
        """Every grant is paid for, none is lost, and nothing is ever owed."""
        rate = 112.0
        limiter = ClientRateLimiter()
        limiter.try_acquire()
        for _ in range(99):
            limiter.update(throttled=False)
        await asyncio.sleep(0.5)
        limiter.update(throttled=True)
        assert pytest.approx(rate) == limiter.fill_rate
        saved = limiter.capacity
        granted_at, levels = [], []

        async def work():
            for _ in range(3):
                await limiter.acquire()
                granted_at.append(now())
                levels.append(limiter.capacity)

        tasks = [asyncio.create_task(work()) for _ in range(500)]
        await asyncio.sleep(1.0)
        cancelled = sum(task.cancel() for task in tasks[::5])
        await asyncio.wait(tasks)

        assert cancelled == sum(task.cancelled() for task in tasks) > 50
        assert 3 * (500 - cancelled) <= len(granted_at)
        assert 0 <= min(levels)
        for number, at in enumerate(granted_at, 1):
            # What has come in pays for all grants so far, and no more than a few tokens
            # lie idle while a call waits, though every fifth one has left.
            income = saved + (at - 0.5) * rate
            assert number <= income + 1e-6
            assert income < number + 5

    @pytest.mark.parametrize("waiters", [500, pytest.param(2000, marks=pytest.mark.long)])
    async def test_many_waiters_look_seldom(self, waiters):
        """The cost of a grant does not grow with the number of calls that wait."""
        limiter = await busy_limiter(LookCounter(), rate=112.0)
        grants = count()

        async def work():
            while True:
                await limiter.acquire()
                next(grants)

        await run_for(10.0, [work() for _ in range(waiters)])

        granted = next(grants)
        assert pytest.approx(1120, abs=5) == granted
        # Each looks once a second, and a few times more when its turn is near.
        assert limiter.looks < 10 * waiters + 30 * granted

    @pytest.mark.parametrize("load", [0.5, 0.9, 0.98])
    async def test_nobody_waits_much_longer_than_others(self, load):
        """At a steady overload the queue grows, and nobody is passed over."""
        limiter = await busy_limiter(ClientRateLimiter(), rate=11.2)
        waits = []

        async def wait():
            began = now()
            await limiter.acquire()
            waits.append(now() - began)

        async with asyncio.TaskGroup() as group:
            for _ in range(300):
                group.create_task(wait())
                await asyncio.sleep(load / 11.2)

        assert max(waits) < 4 * statistics.median(waits)

    async def test_those_who_come_first_are_served_first(self):
        """No call is served much before others that came long before it."""
        limiter = await busy_limiter(ClientRateLimiter(), rate=112.0)
        order = []

        async def wait(number):
            await limiter.acquire()
            order.append(number)

        await asyncio.gather(*(wait(number) for number in range(500)))

        assert max(abs(place - number) for place, number in enumerate(order)) < 50

    @pytest.mark.parametrize("left", [slice(0, 400), slice(100, 500), slice(1, 500, 2)])
    async def test_cancelled_waiters_do_not_hold_up_the_others(self, left):
        """Wherever they stood, the others go on as if they had not been there."""
        limiter = await busy_limiter(ClientRateLimiter(), rate=112.0)
        tasks = [asyncio.create_task(limiter.acquire()) for _ in range(500)]
        await asyncio.sleep(0.25)
        for task in tasks[left]:
            task.cancel()
        began = now()
        waiting = sum(not (task.done() or task.cancelling()) for task in tasks)
        await asyncio.wait(tasks)

        assert waiting / 112.0 - 0.1 <= now() - began < waiting / 112.0 + 0.5

    async def test_cancelled_waiters_are_forgotten(self):
        """Also while the first one in the line goes on waiting for very much."""
        limiter = await busy_limiter(ClientRateLimiter(), rate=112.0)
        first = asyncio.create_task(limiter.acquire(1e6))
        await asyncio.sleep(0)
        await run_for(1.0, [limiter.acquire(1e6) for _ in range(100)])

        assert not first.done()
        assert 1 == len(limiter._line)
        first.cancel()

    async def test_amounts_beyond_all_numbers_hold_up_nobody(self):
        """While they wait others get what there is, and when they have left."""
        limiter = await busy_limiter(ClientRateLimiter(), rate=112.0)
        tasks = [asyncio.create_task(limiter.acquire(1.7e308)) for _ in range(3)]
        await asyncio.sleep(0)
        began = now()
        await limiter.acquire()
        tasks[0].cancel()
        await limiter.acquire()
        for task in tasks:
            task.cancel()
        await limiter.acquire()

        assert now() - began < 3.0

    async def test_large_amounts_come_through_next_to_small_ones(self):
        """The last of all is served when there has been enough for all."""
        limiter = await busy_limiter(ClientRateLimiter(), rate=11.2)
        began = now()
        amounts = [5.0 if number % 5 == 0 else 1.0 for number in range(50)]
        await asyncio.gather(*(limiter.acquire(amount) for amount in amounts))

        seconds = now() - began
        assert sum(amounts) / 11.2 - 0.2 < seconds < sum(amounts) / 11.2 + 0.2


class TestAcquireInTime:
    """Waiting for a token with a deadline."""

    async def test_granted_at_once_it_does_not_look_at_the_clock(self):
        """Neither a place nor a timer, and what is left is not even asked for."""
        coroutine = ClientRateLimiter()._acquire(1.0, None)

        with pytest.raises(StopIteration) as stopped:
            coroutine.send(None)
        assert stopped.value.value is True

    @pytest.mark.parametrize(("seconds", "granted_at"), [(2.0, None), (2.25, 2.0)])
    async def test_it_gives_up_at_once_where_there_is_no_time(
        self, seconds, granted_at
    ):
        """A call with two seconds left does not wait two seconds."""
        granted = await slowest_limiter()._acquire(1.0, lambda: seconds - now())

        assert (granted_at is not None) is granted
        assert (granted_at or 0.0) == now()

    async def test_it_gives_up_when_others_were_faster(self):
        """With nothing taken, and in time."""
        limiter = slowest_limiter()
        async with asyncio.TaskGroup() as group:
            late = group.create_task(limiter._acquire(1.0, lambda: 3.5 - now()))
            await asyncio.sleep(1.75)
            assert 0.0 == limiter.try_acquire(0.75)

        assert late.result() is False
        assert (2.0, 0.25) == (now(), limiter.capacity)

    async def test_nobody_in_a_long_line_sleeps_beyond_his_time(self):
        """A call without a turn before the end of its time gives up before that."""
        limiter = await busy_limiter(ClientRateLimiter(), rate=112.0)
        end = now() + 2.1
        outcomes = []

        async def wait():
            granted = await limiter._acquire(1.0, lambda: end - now())
            outcomes.append((granted, now() < end))

        await asyncio.gather(*(wait() for _ in range(500)))

        assert all(in_time for _, in_time in outcomes)
        assert pytest.approx(2.1 * 112, abs=20) == sum(each for each, _ in outcomes)

    async def test_call_that_gives_up_leaves_the_line(self):
        """The next one does not wait for what is not wanted any more."""
        limiter = slowest_limiter()
        assert not await limiter._acquire(1.0, lambda: 1.0)
        await limiter.acquire()

        assert 2.0 == now()


class LookCounter(ClientRateLimiter):
    """A rate limiter that knows how often it was asked."""

    looks = 0

    def try_acquire(self, amount=1.0):
        self.looks += 1
        return super().try_acquire(amount)


async def busy_limiter(limiter, rate):
    """Bring a rate limiter to *rate* grants a second, and leave nothing to take."""
    limiter.try_acquire()
    for _ in range(round(rate / 1.12) - 1):
        limiter.update(throttled=False)
    await asyncio.sleep(0.5)
    limiter.update(throttled=True)
    while not limiter.try_acquire():
        pass
    return limiter


async def run_for(seconds, coroutines):
    """Let coroutines run for so long, and cancel them."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@pytest.mark.usefixtures("eager_threads")
def test_threads_share_it(clock):
    """Eight threads together get what there is, and not one token more."""
    limiter = throttled_limiter(clock, rate=112.0)
    clock.now += 1.0
    granted = []
    in_threads(
        lambda: granted.append(sum(not limiter.try_acquire() for _ in range(100)))
    )

    assert 112 == sum(granted)
    assert 0 <= limiter.capacity < 1


@pytest.mark.usefixtures("eager_threads")
def test_threads_report_to_it(clock):
    """No answer is lost where eight threads report at once."""
    limiter = ClientRateLimiter(clock=clock)
    limiter.try_acquire()

    def work():
        for _ in range(100):
            limiter.update(throttled=False)

    in_threads(work)
    clock.now += 0.5
    limiter.update(throttled=False)

    assert pytest.approx(0.8 * 801 / 0.5) == limiter.measured_rate


def in_a_loop_of_its_own(function):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(function())


def test_two_event_loops_share_it():
    """It is bound to no loop; each waits in its own time."""
    limiter = ClientRateLimiter()

    async def work():
        limiter.update(throttled=True)
        await limiter.acquire()
        return now()

    assert [2.0, 2.0] == [in_a_loop_of_its_own(work) for _ in range(2)]


def test_second_loop_raises_the_rate_again():
    """A rate limiter of a module outlives the loops of a test suite."""
    limiter = ClientRateLimiter()

    async def be_throttled():
        limiter.try_acquire()
        await asyncio.sleep(1000.0)
        limiter.update(throttled=True)

    async def succeed():
        limiter.update(throttled=True)
        for _ in range(1000):
            await asyncio.sleep(0.01)
            limiter.update(throttled=False)

    in_a_loop_of_its_own(be_throttled)
    in_a_loop_of_its_own(succeed)

    assert limiter.fill_rate > 50.0
    assert pytest.approx(100.0, rel=0.05) == limiter.measured_rate


def test_waiters_of_a_loop_that_is_gone_hold_up_nobody():
    """Their places are given up, also if nobody ever ends them."""
    clock = Clock()
    limiter = ClientRateLimiter(clock=clock)
    limiter.update(throttled=True)
    abandoned = [limiter.acquire() for _ in range(100)]
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loop = runner.get_loop()
        # Begun, and never continued.
        asyncio._set_running_loop(loop)
        for coroutine in abandoned:
            coroutine.send(None)
        asyncio._set_running_loop(None)
        loop.call_soon(loop.stop)
        loop.run_forever()
    clock.now = 10.0
    assert 0.0 == limiter.try_acquire()

    async def wait():
        task = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        clock.now += 2.0
        await asyncio.sleep(1.0)
        assert task.done()

    in_a_loop_of_its_own(wait)
    for coroutine in abandoned:
        coroutine.close()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_is_the_rate_limiter_itself(limiter, duplicate):
    """Two in place of one would let twice as much through."""
    assert limiter is duplicate(limiter)


def test_bad_clock():
    """A clock is called, so it has to be callable."""
    with bad_argument("clock", 5, "a callable that returns seconds"):
        ClientRateLimiter(clock=5)


def test_repr_shows_the_state(clock):
    """People see at a glance whether anything is limited, and how much."""
    assert "<ClientRateLimiter: not enabled>" == repr(ClientRateLimiter(clock=clock))
    limiter = throttled_limiter(clock, rate=5.6)

    assert "<ClientRateLimiter: fill_rate=5.6>" == repr(limiter)
