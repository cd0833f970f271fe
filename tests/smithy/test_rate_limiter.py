"""The rate limiter of the adaptive mode."""

import copy
import json
import math
from pathlib import Path

import pytest
from chains import Clock, bad_argument
from limiters import throttled_limiter

from aioretry_smithy.smithy import ClientRateLimiter
from aioretry_smithy.smithy.limiters import rate_after_throttling

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
