"""Time and chance: with a loop and without, in each process."""

import asyncio
import base64
import copy
import pickle
import random
import subprocess
import sys
import time

import pytest

from aioretry_smithy import Backoff, RetryConfig, RetryRule, RetryStrategy
from aioretry_smithy._clock import loop_time, wall_clock
from aioretry_smithy.smithy import (
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    to_backoff,
)


async def test_inside_a_loop_it_is_the_time_of_the_loop():
    """Virtual time drives whatever asks for the time here."""
    await asyncio.sleep(3600.0)

    assert 3600.0 == loop_time()


def test_without_a_loop_it_is_monotonic():
    """Where there is no loop, there still is a clock."""
    before = time.monotonic()

    assert before <= loop_time() <= time.monotonic()


async def test_virtual_clock_moves_the_time_of_day():
    """So dates of servers are as far away as they are for the program."""
    before = wall_clock()
    await asyncio.sleep(3600.0)

    assert 3600.0 == pytest.approx(wall_clock() - before, abs=1e-6)
    assert abs(before - time.time()) < 60.0


def test_time_of_day_is_that_of_the_machine():
    """In a loop of the usual kind, and without one."""

    async def ask():
        return wall_clock()

    before = time.time()
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        inside = runner.run(ask())

    assert before <= inside <= wall_clock() <= time.time()


FULL = ExponentialBackoffJitterType.FULL
DECORRELATED = ExponentialBackoffJitterType.DECORRELATED

BACKOFFS = {
    "default": Backoff.of_default,
    "random": lambda: Backoff.random(1, 2),
    "jitter": lambda: Backoff.fixed(1).with_jitter(0.5).with_max_attempts(100),
    "full jitter": lambda: Backoff.exponential(1, 9).with_full_jitter(),
    "spec": lambda: Backoff.of("fibonacci=1s:9s,jitter=0.5"),
    "dice of Python": lambda: Backoff.fixed(1).with_jitter(0.5, random=random.random),
    "smithy": lambda: to_backoff(ExponentialRetryBackoffStrategy()),
    "smithy, full": lambda: to_backoff(
        ExponentialRetryBackoffStrategy(jitter_type=FULL, random=random.random)
    ),
    "smithy, decorrelated": lambda: to_backoff(
        ExponentialRetryBackoffStrategy(jitter_type=DECORRELATED)
    ),
    "strategy": lambda: RetryStrategy.failsafe().backoff,
    "rule": lambda: RetryRule(backoff=Backoff.random(1, 2), statuses=[503]).backoff,
    "config": lambda: RetryConfig.standard().strategy.backoff,
}
each_backoff = pytest.mark.parametrize("make", BACKOFFS.values(), ids=BACKOFFS)

WORKER = """
import base64, pickle, sys
backoff = pickle.loads(base64.b64decode(sys.argv[1]))
print([backoff.next_delay(3) for _ in range(5)])
"""


def delays(backoff):
    return [backoff.next_delay(3) for _ in range(5)]


@each_backoff
def test_unpickled_copies_do_not_draw_alike(make):
    """Each worker that unpickles a backoff has a jitter of its own."""
    pickled = pickle.dumps(make())
    first, second = pickle.loads(pickled), pickle.loads(pickled)

    assert delays(first) != delays(second)


@each_backoff
def test_unpickled_backoff_is_equal_to_its_origin(make):
    """A copy of either kind says what it is a copy of."""
    backoff = make()

    assert backoff == pickle.loads(pickle.dumps(backoff)) == copy.deepcopy(backoff)


@pytest.mark.slow
def test_processes_do_not_retry_in_step():
    """Two processes that start from one pickle wait for different times."""
    pickled = base64.b64encode(pickle.dumps(Backoff.random(1, 2))).decode()
    command = [sys.executable, "-c", WORKER, pickled]
    first, second = (
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    )

    assert first.startswith("[1.")
    assert first != second


def test_dice_of_the_users_own_are_pickled_as_they_are():
    """Whoever gives a generator of its own wants the numbers of that one."""
    backoff = Backoff.random(1, 2, random=random.Random(1).random)
    pickled = pickle.dumps(backoff)

    assert delays(pickle.loads(pickled)) == delays(pickle.loads(pickled))


def test_jitter_follows_the_seed_of_the_process():
    """A seed makes a run repeatable, as ever."""
    state = random.getstate()
    try:
        drawn = []
        for _ in range(2):
            random.seed(1)
            drawn.append(delays(Backoff.random(1, 2)))
    finally:
        random.setstate(state)

    assert drawn[0] == drawn[1]
