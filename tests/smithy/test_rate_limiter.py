"""The rate limiter of the adaptive mode."""

import asyncio
import json
import sys
import threading
from pathlib import Path

import pytest

from aioretry_smithy.smithy import ClientRateLimiter
from aioretry_smithy.smithy.rate_limiter import (
    RateMeter,
    TokenBucket,
    rate_after_success,
    rate_after_throttling,
    zero_point,
)
from aioretry_smithy.testing import VirtualTimeLoop

VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "rate_limiter.json").read_text()
)


class Clock:
    """A clock moved by hand."""

    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    """A clock that stands still until the test moves it."""
    return Clock()


@pytest.fixture
def limiter(clock):
    """A rate limiter that nobody has used yet."""
    return ClientRateLimiter(clock=clock)


def throttled_limiter(clock, rate):
    """Return a rate limiter that is empty and grants *rate* attempts a second.

    The clock is at its next half second then.
    """
    limiter = ClientRateLimiter(clock=clock)
    answers = round(rate / 1.12)
    for _ in range(answers - 1):
        limiter.update(throttled=False)
    clock.now += 0.5
    limiter.update(throttled=True)
    return limiter


def by_remark(vector):
    return vector["remark"]


class TestFormulas:
    """The CUBIC formulas against the tables of the SDKs."""

    @pytest.mark.parametrize("row", VECTORS["cubic_success"]["rates"])
    def test_rate_rises_after_the_published_table(self, row):
        """Quickly, then slowly around the rate that was too much, then quickly."""
        table = VECTORS["cubic_success"]
        actual = rate_after_success(
            row["at"] - table["throttled_at"], table["max_rate"]
        )

        assert pytest.approx(row["rate"], rel=1e-11) == actual

    def test_throttling_in_between_starts_from_the_reduced_rate(self):
        """The rate that was too much is the one that was calculated last."""
        table = VECTORS["cubic_with_throttling"]
        max_rate, throttled_at, rate = table["max_rate"], table["throttled_at"], None
        expected, actual = [], []
        for step in table["steps"]:
            if step["throttled"]:
                max_rate, throttled_at = rate, step["at"]
                rate = rate_after_throttling(rate)
            else:
                rate = rate_after_success(step["at"] - throttled_at, max_rate)
            expected += [step["rate"], step["max_rate"], step["zero_point"]]
            actual += [rate, max_rate, zero_point(max_rate)]

        assert pytest.approx(expected, rel=1e-11) == actual

    @pytest.mark.parametrize("row", VECTORS["cubic_parameters"])
    def test_parameters_are_those_of_botocore(self, row):
        """The zero point and the reduced rate follow from the rate alone."""
        rate = row["max_rate"]
        expected = row["zero_point"], row["reduced"]

        assert pytest.approx(expected) == (
            zero_point(rate),
            rate_after_throttling(rate),
        )

    @pytest.mark.parametrize("rate", [0.0, 0.1, 7.0, 1e6])
    def test_success_begins_where_throttling_has_left_the_rate(self, rate):
        """There is no step: both formulas meet at the time of the throttling."""
        expected = rate_after_throttling(rate)

        assert pytest.approx(expected) == rate_after_success(0.0, rate)

    @pytest.mark.parametrize(
        "row", VECTORS["cubic_fractions_of_the_zero_point"]["rates"]
    )
    def test_rate_is_back_at_the_zero_point(self, row):
        """The zero point is the time at which the rate is what was too much."""
        max_rate = VECTORS["cubic_fractions_of_the_zero_point"]["max_rate"]
        elapsed = row["fraction"] * zero_point(max_rate)

        assert pytest.approx(row["rate"], rel=1e-5) == rate_after_success(
            elapsed, max_rate
        )


class TestRateMeter:
    """How the rate is measured."""

    @pytest.mark.parametrize("vector", VECTORS["measured_rate"], ids=by_remark)
    def test_rate_is_that_of_the_published_histories(self, vector):
        """Half seconds are counted, and the newest one weighs most."""
        meter = RateMeter(now=0.0)
        rates = []
        for step in vector["steps"]:
            meter.record(step["at"])
            rates.append(meter.rate)

        assert pytest.approx([step["rate"] for step in vector["steps"]]) == rates

    def test_rate_of_one_a_second_settles_at_one(self):
        """The first bucket is forgotten in time."""
        meter = RateMeter(now=0.0)
        for second in range(1, 21):
            meter.record(second)

        assert pytest.approx(1.0) == meter.rate

    def test_buckets_are_those_of_the_clock(self):
        """Measuring that begins within a second begins with that second."""
        meter = RateMeter(now=100.75)
        meter.record(101.0)

        assert 0.8 == meter.rate


class TestTokenBucket:
    """How tokens come and go."""

    @pytest.mark.parametrize("vector", VECTORS["token_bucket"], ids=by_remark)
    def test_published_histories(self, vector):
        """Each step sets the rate, takes tokens, or looks at what there is."""
        bucket = TokenBucket()
        expected, actual = [], []
        for step in vector["steps"]:
            now = step["at"]
            match step:
                case {"set_rate": rate}:
                    bucket.change_rate(rate, now)
                case {"take": amount, "wait": wait}:
                    expected.append(wait)
                    actual.append(bucket.try_take(amount, now))
                case {"level": level}:
                    expected.append(level)
                    actual.append(bucket.level(now))
                case {"fill_rate": fill_rate}:
                    expected.append(fill_rate)
                    actual.append(bucket.fill_rate)

        assert pytest.approx(expected, abs=1e-9) == actual

    def test_rate_never_falls_below_one_in_two_seconds(self):
        """However slow the server is, there is an end to the wait."""
        bucket = TokenBucket()
        bucket.change_rate(0.01, now=0.0)

        assert 0.5 == bucket.fill_rate
        assert 2.0 == bucket.try_take(1.0, now=0.0)

    def test_a_new_rate_counts_from_now_on(self):
        """What came in before came in at the old rate."""
        bucket = TokenBucket()
        bucket.change_rate(2.0, now=0.0)
        bucket.change_rate(100.0, now=0.5)

        assert 1.0 == bucket.level(now=0.5)
        assert pytest.approx(2.0) == bucket.level(now=0.51)

    def test_savings_are_not_lost_when_somebody_wants_less(self):
        """What is there beyond the room for it stays there, less what is taken."""
        bucket = TokenBucket()
        bucket.change_rate(1.0, now=0.0)
        bucket.try_take(5.0, now=0.0)
        assert 2.0 == bucket.try_take(5.0, now=3.0)

        assert 0.0 == bucket.try_take(1.0, now=3.0)
        assert 2.0 == bucket.level(now=3.0)
        assert 3.0 == bucket.try_take(5.0, now=3.0)

    def test_a_clock_that_goes_back_takes_nothing(self):
        """A bucket that moves to another loop's clock goes on from there."""
        bucket = TokenBucket()
        bucket.change_rate(1.0, now=1000.0)
        assert 1.0 == bucket.try_take(1.0, now=1000.0)

        assert 1.0 == bucket.try_take(1.0, now=5.0)
        assert 0.5 == bucket.try_take(1.0, now=5.5)

    def test_a_wait_too_short_for_the_clock_is_granted(self):
        """Where adding the wait does not change the time, waiting would not end."""
        bucket = TokenBucket()
        bucket.change_rate(1.0, now=2.0**30 - 1.0)
        now = 2.0**30 - 2.0**-23

        assert 2.0**-23 > 1e-9
        assert 2.0**-23 == bucket.try_take(1.0, now=now)

        bucket.change_rate(4.0, now=now)

        assert 0.0 == bucket.try_take(1.0, now=now)
        assert 0.0 == bucket.level(now)


class TestUpdate:
    """What the rate limiter learns from answers."""

    @pytest.mark.parametrize("row", VECTORS["first_throttling"])
    def test_first_throttling_makes_the_next_attempt_wait(self, limiter, clock, row):
        """The bucket is empty then, whatever was sent before."""
        assert 0.0 == limiter.try_acquire()

        clock.now = row["at"]
        limiter.update(throttled=True)

        assert limiter.enabled
        assert pytest.approx(row["measured"]) == limiter.measured_rate
        assert pytest.approx(row["fill_rate"]) == limiter.fill_rate
        assert pytest.approx(row["wait"]) == limiter.try_acquire()

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
        """Who only asks takes nothing, however often."""
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
        expected = (0.0, 0.5, 0.0, False)
        assert expected == (
            limiter.capacity,
            limiter.fill_rate,
            limiter.measured_rate,
            limiter.enabled,
        )

        clock.now = 1000.0
        limiter.update(throttled=True)

        assert 0.0 == limiter.measured_rate


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

    @pytest.mark.parametrize(
        "amount", [0, -1, float("nan"), float("inf"), True, "1", None]
    )
    def test_bad_amount(self, limiter, amount):
        """An amount is a number above 0, also while nothing is limited."""
        message = rf"amount: {amount!r} \(expected: finite and > 0\)"

        with pytest.raises(ValueError, match=message):
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
        limiter = ClientRateLimiter()
        limiter.update(throttled=True)
        await limiter.acquire()
        await limiter.acquire()

        assert 4.0 == asyncio.get_running_loop().time()
        assert 0.0 == limiter.capacity

    async def test_bad_amount(self):
        """A bad argument is not waited for."""
        with pytest.raises(ValueError, match="amount"):
            await ClientRateLimiter().acquire(0)

    async def test_more_than_there_is_room_for_is_saved_up(self):
        """Five at one in two seconds are ten seconds, though there is room for one."""
        limiter = ClientRateLimiter()
        limiter.update(throttled=True)
        await limiter.acquire(5.0)

        assert 10.0 == asyncio.get_running_loop().time()

    async def test_a_rate_that_rises_is_noticed(self):
        """A wait of two seconds is cut short when answers have become frequent."""
        limiter = ClientRateLimiter()
        limiter.update(throttled=True)
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

        assert 3.0 == asyncio.get_running_loop().time()

    async def test_a_rate_that_falls_is_noticed(self):
        """Whoever wakes up looks whether there is enough by now."""
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
        """Nothing is held while somebody waits."""
        limiter = ClientRateLimiter()
        limiter.update(throttled=True)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(limiter.acquire())
            await asyncio.sleep(0.1)
            limiter.update(throttled=True)
            await asyncio.to_thread(limiter.update, throttled=True)

            assert not waiting.done()

    async def test_a_cancelled_waiter_costs_nothing(self):
        """Its token goes to the next one, at the same time."""
        limiter = ClientRateLimiter()
        limiter.update(throttled=True)
        waiters = [asyncio.create_task(limiter.acquire()) for _ in range(10)]
        await asyncio.sleep(1.5)
        for waiter in waiters:
            waiter.cancel()
        await asyncio.gather(*waiters, return_exceptions=True)
        assert 0.75 == limiter.capacity

        await limiter.acquire()

        assert 2.0 == asyncio.get_running_loop().time()

    async def test_a_waiter_cancelled_when_its_token_comes_costs_nothing(self):
        """Also in the very turn of the loop in which it would have been granted."""
        limiter = ClientRateLimiter()
        limiter.update(throttled=True)
        waiter = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(1.0)
        asyncio.get_running_loop().call_at(2.0, waiter.cancel)
        await asyncio.wait([waiter])

        assert waiter.cancelled()
        assert 2.0 == asyncio.get_running_loop().time()
        assert 1.0 == limiter.capacity

    async def test_five_hundred_tasks_share_it(self):
        """Every grant is paid for, none is lost, and nothing is ever owed."""
        rate = 112.0
        loop = asyncio.get_running_loop()
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
                granted_at.append(loop.time())
                levels.append(limiter.capacity)

        tasks = [asyncio.create_task(work()) for _ in range(500)]
        await asyncio.sleep(1.0)
        cancelled = sum(task.cancel() for task in tasks[::5])
        await asyncio.wait(tasks)

        assert cancelled == sum(task.cancelled() for task in tasks) > 50
        assert 3 * (500 - cancelled) <= len(granted_at)
        assert 0 <= min(levels)
        for number, at in enumerate(granted_at, 1):
            # What has come in pays for all grants so far, and no more than one token
            # lies idle while somebody waits.
            income = saved + (at - 0.5) * rate
            assert number <= income + 1e-6
            assert income < number + 1


def test_threads_share_it(clock):
    """Eight threads together get what there is, and not one token more."""
    limiter = throttled_limiter(clock, rate=1120.0)
    clock.now += 1.0
    granted = []

    def work():
        granted.append(sum(not limiter.try_acquire() for _ in range(1000)))

    in_threads(work)

    assert 1120 == sum(granted)
    assert 0 <= limiter.capacity < 1


def test_threads_report_to_it(clock):
    """No answer is lost where eight threads report at once."""
    limiter = ClientRateLimiter(clock=clock)
    limiter.try_acquire()

    def work():
        for _ in range(1000):
            limiter.update(throttled=False)

    in_threads(work)
    clock.now += 0.5
    limiter.update(throttled=False)

    assert pytest.approx(0.8 * 8001 / 0.5) == limiter.measured_rate


def test_two_event_loops_share_it():
    """It is bound to no loop; each waits in its own time."""
    limiter = ClientRateLimiter()

    async def work():
        limiter.update(throttled=True)
        await limiter.acquire()
        return asyncio.get_running_loop().time()

    for _ in range(2):
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            assert 2.0 == runner.run(work())


def in_threads(work):
    """Do the same work in eight threads that change as often as possible."""
    threads = [threading.Thread(target=work) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)


def test_bad_clock():
    """A clock is called, so it has to be callable."""
    message = r"clock: 5 \(expected: a callable that returns seconds\)"

    with pytest.raises(ValueError, match=message):
        ClientRateLimiter(clock=5)


def test_repr_shows_the_state(clock):
    """People see at a glance whether anything is limited, and how much."""
    assert "<ClientRateLimiter: not enabled>" == repr(ClientRateLimiter(clock=clock))
    limiter = throttled_limiter(clock, rate=5.6)

    assert "<ClientRateLimiter: fill_rate=5.6>" == repr(limiter)
