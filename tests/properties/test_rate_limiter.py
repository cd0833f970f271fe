"""The rate limiter on histories of any kind, against botocore's and on its own."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from botocore.exceptions import CapacityNotAvailableError
from botocore.retries import adaptive, bucket, throttling
from hypothesis import example, given
from hypothesis import strategies as st

from aioretry_smithy.smithy import ClientRateLimiter

pytestmark = pytest.mark.slow

HISTORIES = 1000


class Clock:
    """A clock moved by hand, for both sides; nobody sleeps on it."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now

    def current_time(self):
        return self.now


class Detector:
    """Tells botocore's rate limiter what it was told."""

    def is_throttling_error(self, *, throttled):
        return throttled


@dataclass
class Peer:
    """Botocore's rate limiter, which begins at a given time."""

    limiter: adaptive.ClientRateLimiter
    bucket: bucket.TokenBucket
    meter: adaptive.RateClocker

    @classmethod
    def begin(cls, clock, first_answer_at):
        """Make it now, and its bucket at the time of the first answer.

        Botocore's bucket fills from the beginning, ours from the first answer, as in
        the other SDKs.
        """
        began_at, clock.now = clock.now, first_answer_at
        tokens = bucket.TokenBucket(max_rate=1, clock=clock)
        clock.now = began_at
        meter = adaptive.RateClocker(clock)
        limiter = adaptive.ClientRateLimiter(
            rate_adjustor=throttling.CubicCalculator(
                starting_max_rate=0, start_time=began_at
            ),
            rate_clocker=meter,
            token_bucket=tokens,
            throttling_detector=Detector(),
            clock=clock,
        )
        return cls(limiter, tokens, meter)

    def try_acquire(self):
        """Return the seconds to wait; its own method would wait for them."""
        try:
            self.bucket.acquire(block=False)
        except CapacityNotAvailableError:
            return (1 - self.bucket.available_capacity) / self.bucket.max_rate
        return 0.0


def new_history(seed):
    """Return the time of the beginning, and a list of ``(seconds, answer)``.

    An answer of None is an attempt instead. Busy and quiet times take turns, and so do
    times with much and with little throttling.
    """
    chance = random.Random(seed)
    history = []
    for _ in range(chance.randint(1, 6)):
        longest = 10 ** chance.uniform(-3, 1)
        attempts, throttling = chance.random(), chance.random() ** 3
        for _ in range(chance.randint(1, 40)):
            answer = (
                None if chance.random() < attempts else chance.random() < throttling
            )
            history.append((chance.uniform(0, longest), answer))
    return chance.uniform(0, 10_000), [*history, (chance.random(), True)]


@pytest.mark.parametrize("first", range(0, HISTORIES, 100))
def test_it_does_what_that_of_botocore_does(first):
    """Rates, tokens and waits are the same, answer by answer."""
    for seed in range(first, first + 100):
        began_at, history = new_history(seed)
        expected, actual = replay(began_at, history)

        assert pytest.approx(expected, rel=1e-9, abs=1e-9) == actual, seed


def replay(began_at, history):
    """Let both live through a history and return what was seen of them."""
    clock = Clock(began_at)
    ours = ClientRateLimiter(clock=clock)
    assert 0.0 == ours.try_acquire()
    answered = next(index for index, step in enumerate(history) if step[1] is not None)
    waits = [seconds for seconds, _ in history[: answered + 1]]
    theirs = Peer.begin(clock, sum(waits, start=began_at))
    expected, actual = [], []
    for seconds, answer in history:
        clock.now += seconds
        if answer is not None:
            theirs.limiter.on_receiving_response(throttled=answer)
            ours.update(throttled=answer)
        elif ours.enabled:
            expected.append(theirs.try_acquire())
            actual.append(ours.try_acquire())
        else:
            theirs.limiter.on_sending_request(request=None)
            assert 0.0 == ours.try_acquire()
            continue
        expected += [
            theirs.bucket.max_rate,
            theirs.bucket.available_capacity,
            theirs.meter.measured_rate,
        ]
        actual += [ours.fill_rate, ours.capacity, ours.measured_rate]
    return expected, actual


seconds = st.floats(0, 100) | st.sampled_from([0.0, 0.5, 1.0])
histories = st.lists(st.tuples(seconds, st.none() | st.booleans()), max_size=50)


@given(st.floats(0, 1e9), histories)
@example(2.0**30, [(0.0, True), (2.0, None), (2.0, None)])
def test_nothing_is_ever_owed(began_at, history):
    """There are never fewer tokens than none, nor more than come in a second."""
    clock = Clock(began_at)
    limiter = ClientRateLimiter(clock=clock)
    for elapsed, answer in history:
        clock.now += elapsed
        if answer is None:
            limiter.try_acquire()
        else:
            limiter.update(throttled=answer)

        assert 0.0 <= limiter.capacity <= max(1.0, limiter.fill_rate)
        assert 0.5 <= limiter.fill_rate <= max(0.5, 2 * limiter.measured_rate)


def limiter_after(clock, history):
    """Return a limiter with a history, which has just heard of throttling."""
    limiter = ClientRateLimiter(clock=clock)
    for elapsed, answer in [*history, (0.0, True)]:
        clock.now += elapsed
        limiter.update(throttled=bool(answer))
    return limiter


@given(st.floats(0, 1e6), histories, st.floats(0.25, 100))
def test_after_the_wait_there_is_leave(began_at, history, amount):
    """A caller that waits as told is not sent away again, with any rounding."""
    clock = Clock(began_at)
    limiter = limiter_after(clock, history)
    while not (wait := limiter.try_acquire(amount)):
        pass
    clock.now += wait

    assert 0.0 == limiter.try_acquire(amount)


@given(histories, st.integers(1, 20))
def test_asking_in_vain_costs_nothing(history, times):
    """A refusal leaves everything as it was, however often it is given."""
    clock = Clock(0.0)
    limiter = limiter_after(clock, history)
    while not (wait := limiter.try_acquire()):
        pass
    capacity = limiter.capacity

    assert [wait] * times == [limiter.try_acquire() for _ in range(times)]
    assert capacity == limiter.capacity
