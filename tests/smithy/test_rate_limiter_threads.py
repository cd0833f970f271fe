"""One rate limiter in several threads and event loops."""

import asyncio

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
