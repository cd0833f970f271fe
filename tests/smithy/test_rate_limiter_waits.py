"""Waits for the rate limiter, also in several threads and event loops."""

import asyncio
from itertools import count

import pytest
from chains import Clock, in_threads, now
from limiters import throttled_limiter

from aioretry_smithy.smithy import ClientRateLimiter
from aioretry_smithy.testing import VirtualTimeLoop


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


class TestTryAcquire:
    """Asking for leave without waiting."""

    def test_first_use_begins_the_measuring(self, limiter, clock):
        """Also where nothing is limited yet."""
        clock.now = 7.0
        assert 0.0 == limiter.try_acquire()
        clock.now = 9.0
        limiter.update(throttled=False)

        assert 0.8 * 1 / 2 == limiter.measured_rate

    def test_after_the_wait_there_is_enough(self, clock):
        """The seconds it returns are the ones that it takes, to the digit."""
        limiter = throttled_limiter(clock, rate=5.6)
        for _ in range(1000):
            wait = limiter.try_acquire()
            clock.now += wait
            assert 0 < wait
            assert 0.0 == limiter.try_acquire()
            assert 0.0 <= limiter.capacity < 1e-9


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

    @pytest.mark.slow
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

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "waiters", [500, pytest.param(2000, marks=pytest.mark.long)]
    )
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


class TestAcquireInTime:
    """Waiting for a token with a deadline."""

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
