"""The strategies with plain methods: the same decisions, and a thread that sleeps."""

import asyncio
import inspect
import random
import threading
import time

import pytest
from chains import in_threads
from token_strategies import drain, settled

from aioretry_smithy import smithy
from aioretry_smithy.smithy import (
    CallError,
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    RetryError,
    sync,
)

UNAVAILABLE = CallError("503", fault="server")
THROTTLED = CallError("429", fault="client", is_throttling_error=True)
TIMED_OUT = CallError("504", fault="server", is_timeout_error=True)
HINTED = CallError("503", fault="server", retry_after=3.0)
NOT_FOUND = CallError("404", fault="client")
OUTCOMES = (UNAVAILABLE, THROTTLED, TIMED_OUT, HINTED, NOT_FOUND, None, None, None)

ONE_SECOND = ExponentialRetryBackoffStrategy(
    backoff_scale_value=1.0, jitter_type=ExponentialBackoffJitterType.NONE
)
EACH_MODE = pytest.mark.parametrize(
    "name", ["SimpleRetryStrategy", "StandardRetryStrategy", "AdaptiveRetryStrategy"]
)


class Clock:
    """A time that passes with each sleep."""

    def __init__(self):
        self.time = 0.0
        self.lock = threading.Lock()

    def now(self):
        return self.time

    def sleep(self, seconds):
        with self.lock:
            self.time += seconds


def new_adaptive(clock, **settings):
    """Make a strategy that waits 1, 2, 4, ... seconds, by a clock of its own."""
    return sync.AdaptiveRetryStrategy(
        sleep=clock.sleep,
        clock=clock.now,
        backoff_strategy=ONE_SECOND,
        throttling_backoff_strategy=ONE_SECOND,
        **settings,
    )


def new_pair(name, clock):
    """Make two strategies of the same mode, the one awaited and the other plain."""
    settings = {"backoff_strategy": ONE_SECOND, "max_attempts": 4}
    plain = {}
    if name != "SimpleRetryStrategy":
        settings["throttling_backoff_strategy"] = ONE_SECOND
        plain["sleep"] = clock.sleep
    if name == "AdaptiveRetryStrategy":
        plain["clock"] = clock.now
    return getattr(smithy, name)(**settings), getattr(sync, name)(**settings, **plain)


def refresh(strategy, token, error=UNAVAILABLE):
    return strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)


async def history(strategy, calls, now, sleep):
    """Make calls with given outcomes and return all that can be seen of them."""
    seen = []
    for scope, outcomes in calls:
        token = await settled(strategy.acquire_initial_retry_token(token_scope=scope))
        for outcome in outcomes:
            seen.append((token.retry_count, token.retry_delay, now()))
            await settled(sleep(token.retry_delay + 0.3))
            try:
                if outcome is None:
                    await settled(strategy.record_success(token=token))
                    break
                token = await settled(refresh(strategy, token, outcome))
            except RetryError as refusal:
                seen.append((str(refusal), refusal.retry_after))
                break
        if hasattr(strategy, "quota_for"):
            seen.append(strategy.quota_for(scope).available_capacity)
        if hasattr(strategy, "limiter_for"):
            seen.append(strategy.limiter_for(scope).fill_rate)
    return seen


@EACH_MODE
async def test_plain_and_awaited_decide_alike(name):
    """Tokens, refusals, quotas, rates and the time of each attempt are the same."""
    chance = random.Random(7)
    calls = [(chance.choice("ab"), chance.choices(OUTCOMES, k=5)) for _ in range(100)]
    clock, loop = Clock(), asyncio.get_running_loop()
    awaited, plain = new_pair(name, clock)
    expected = await history(awaited, calls, loop.time, asyncio.sleep)

    assert expected == await history(plain, calls, clock.now, clock.sleep)
    assert clock.now() == loop.time() > 60.0


@EACH_MODE
def test_nothing_is_to_be_awaited(name):
    """All three methods return what they are for."""
    strategy = getattr(sync, name)()
    token = strategy.acquire_initial_retry_token(token_scope="orders")
    assert isinstance(token, smithy.SimpleRetryToken)
    token = refresh(strategy, token)

    assert 1 == token.retry_count
    assert strategy.record_success(token=token) is None


@EACH_MODE
def test_strategy_is_of_the_protocols(name):
    """It fits what asks for a strategy, plain or of any kind."""
    strategy = getattr(sync, name)()

    assert isinstance(strategy, sync.RetryStrategy)
    assert isinstance(strategy, smithy.RetryStrategy)
    assert not isinstance(strategy, getattr(smithy, name))


def test_interrupted_retry_is_paid_back():
    """Ctrl-C while the thread sleeps before a retry that is then not made."""

    def interrupted(seconds):
        raise KeyboardInterrupt

    strategy = sync.AdaptiveRetryStrategy(sleep=interrupted)
    for error in UNAVAILABLE, THROTTLED, TIMED_OUT:
        token = strategy.acquire_initial_retry_token(token_scope=str(error))
        with pytest.raises(KeyboardInterrupt):
            refresh(strategy, token, error)

        assert 500 == strategy.quota_for(str(error)).available_capacity


@pytest.mark.usefixtures("eager_threads")
def test_threads_share_an_adaptive_strategy():
    """All are served, and the quota holds what is left after their last refunds."""
    strategy = new_adaptive(Clock(), max_attempts=20)
    drain(strategy.limiter_for())
    served = []

    def work():
        token = strategy.acquire_initial_retry_token()
        for _ in range(3):
            token = refresh(strategy, token)
        strategy.record_success(token=token)
        served.append(token)

    in_threads(work, 4)

    assert 4 == len(served)
    assert 500 - 4 * 2 * 14 == strategy.quota_for().available_capacity
    assert strategy.limiter_for().capacity >= 0.0


def test_thread_sleeps_by_default():
    """Nothing has to be given for that."""
    for name in "StandardRetryStrategy", "AdaptiveRetryStrategy":
        default = inspect.signature(getattr(sync, name)).parameters["sleep"].default

        assert time.sleep is default is getattr(sync, name)()._sleep


def test_repr_is_that_of_the_awaited_strategy():
    """The settings are the same."""
    for name in sync.__all__:
        if name != "RetryStrategy":
            assert repr(getattr(smithy, name)()) == repr(getattr(sync, name)())
