"""The rate limiter of the adaptive mode, its formulas and its tokens."""

import json
from pathlib import Path

import pytest
from chains import Clock
from limiters import throttled_limiter

from aioretry_smithy.smithy import ClientRateLimiter, limiters
from aioretry_smithy.smithy.limiters import (
    RateMeter,
    TokenBucket,
    rate_after_success,
    rate_after_throttling,
    zero_point,
)

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
        ) == [limiter.measured_rate, limiter.fill_rate, limiter.try_acquire()]

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


def test_repr_shows_the_state(clock):
    """People see at a glance whether anything is limited, and how much."""
    assert "<ClientRateLimiter: not enabled>" == repr(ClientRateLimiter(clock=clock))
    limiter = throttled_limiter(clock, rate=5.6)

    assert "<ClientRateLimiter: fill_rate=5.6>" == repr(limiter)


@pytest.mark.parametrize("row", VECTORS["cubic_success"]["rates"])
def test_rate_rises_after_the_published_table(row):
    """Quickly, then slowly around the rate that was too much, then quickly."""
    table = VECTORS["cubic_success"]
    actual = rate_after_success(row["at"] - table["throttled_at"], table["max_rate"])

    assert pytest.approx(row["rate"], rel=1e-11) == actual


def test_throttling_in_between_starts_from_the_reduced_rate():
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
def test_parameters_are_those_of_botocore(row, monkeypatch):
    """The zero point and the reduced rate follow from the rate alone."""
    rate = row["max_rate"]
    if "beta" in row:
        monkeypatch.setattr(limiters, "_BETA", row["beta"])
    expected = row["zero_point"], row["reduced"], row["reduced"]

    assert pytest.approx(expected) == (
        zero_point(rate),
        rate_after_throttling(rate),
        rate_after_success(0.0, rate),
    )


@pytest.mark.parametrize("row", VECTORS["cubic_fractions_of_the_zero_point"]["rates"])
def test_rate_is_back_at_the_zero_point(row):
    """The zero point is the time at which the rate is what was too much."""
    max_rate = VECTORS["cubic_fractions_of_the_zero_point"]["max_rate"]
    elapsed = row["fraction"] * zero_point(max_rate)

    assert pytest.approx(row["rate"], rel=1e-5) == rate_after_success(elapsed, max_rate)


def by_remark(vector):
    return vector["remark"]


@pytest.mark.parametrize("vector", VECTORS["measured_rate"], ids=by_remark)
def test_rate_is_that_of_the_published_histories(vector):
    """Half seconds are counted, and the newest one weighs most."""
    meter = RateMeter(now=0.0)
    rates = []
    for step in vector["steps"]:
        meter.record(step["at"])
        rates.append(meter.rate)

    assert pytest.approx([step["rate"] for step in vector["steps"]]) == rates


def test_buckets_are_those_of_the_clock():
    """Measuring that begins within a second begins with that second."""
    meter = RateMeter(now=100.75)
    meter.record(101.0)

    assert 0.8 == meter.rate


def test_measuring_begins_anew():
    """Earlier requests are forgotten; the rate stays until there is a new one."""
    meter = RateMeter(now=1000.0)
    meter.record(1001.0)
    meter.record(1001.0)
    meter.begin(5.25)
    meter.record(5.3)
    assert 0.8 == meter.rate

    meter.record(6.0)

    assert pytest.approx(0.8 * 2 + 0.2 * 0.8) == meter.rate


@pytest.mark.parametrize("vector", VECTORS["token_bucket"], ids=by_remark)
def test_published_histories(vector, monkeypatch):
    """Each step sets the rate, takes tokens, or looks at what there is."""
    if "min_fill_rate" in vector:
        monkeypatch.setattr(limiters, "_MIN_FILL_RATE", vector["min_fill_rate"])
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


def test_rate_never_falls_below_one_in_two_seconds():
    """However slow the server is, there is an end to the wait."""
    bucket = TokenBucket()
    bucket.change_rate(0.01, now=0.0)

    assert 0.5 == bucket.fill_rate
    assert 2.0 == bucket.try_take(1.0, now=0.0)


def test_a_new_rate_counts_from_now_on():
    """Tokens of the time before came in at the old rate."""
    bucket = TokenBucket()
    bucket.change_rate(2.0, now=0.0)
    bucket.change_rate(100.0, now=0.5)

    assert 1.0 == bucket.level(now=0.5)
    assert pytest.approx(2.0) == bucket.level(now=0.51)


def test_savings_are_not_lost_when_less_is_wanted():
    """Tokens beyond the room for them stay, less what is taken."""
    bucket = TokenBucket()
    bucket.change_rate(1.0, now=0.0)
    bucket.try_take(5.0, now=0.0)
    assert 2.0 == bucket.try_take(5.0, now=3.0)

    assert 0.0 == bucket.try_take(1.0, now=3.0)
    assert 2.0 == bucket.level(now=3.0)
    assert 3.0 == bucket.try_take(5.0, now=3.0)


def test_a_clock_that_goes_back_takes_nothing():
    """A bucket that moves to another loop's clock goes on from there."""
    bucket = TokenBucket()
    bucket.change_rate(1.0, now=1000.0)
    assert 1.0 == bucket.try_take(1.0, now=1000.0)

    assert 1.0 == bucket.try_take(1.0, now=5.0)
    assert 0.5 == bucket.try_take(1.0, now=5.5)


def test_a_wait_too_short_for_the_clock_is_granted():
    """Where adding the wait does not change the time, waiting would not end."""
    bucket = TokenBucket()
    bucket.change_rate(1.0, now=2.0**30 - 1.0)
    now = 2.0**30 - 2.0**-23

    assert 2.0**-23 > 1e-9
    assert 2.0**-23 == bucket.try_take(1.0, now=now)

    bucket.change_rate(4.0, now=now)

    assert 0.0 == bucket.try_take(1.0, now=now)
    assert 0.0 == bucket.level(now)
