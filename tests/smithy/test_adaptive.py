"""The adaptive strategy: the standard one behind a rate limiter."""

import asyncio
import contextlib
import math
from collections import Counter

import aiohttp
import pytest
from chains import now
from token_strategies import UNAVAILABLE, acquire, drain, refresh

from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    CallError,
    CapacityNotAvailableError,
    ClientRateLimiter,
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    RetryError,
    RetryProfile,
    RetryStrategy,
    StandardRetryQuota,
    StandardRetryStrategy,
)

THROTTLED = CallError("429", fault="client", is_throttling_error=True)
NOT_FOUND = CallError("404", fault="client")
ONE_SECOND = ExponentialRetryBackoffStrategy(
    backoff_scale_value=1.0, jitter_type=ExponentialBackoffJitterType.NONE
)


def new_strategy(**options):
    """Return a strategy that waits 1, 2, 4, ... seconds, whatever the error."""
    delays = dict.fromkeys(
        ["backoff_strategy", "throttling_backoff_strategy"], ONE_SECOND
    )
    return AdaptiveRetryStrategy(**delays | options)


async def started(**options):
    """Return a new strategy, and the token of a call that has begun."""
    strategy = new_strategy(**options)
    return strategy, await acquire(strategy)


class TestInitialToken:
    """The token of the first attempt."""

    async def test_it_comes_at_once_while_nothing_was_throttled(self):
        """Without throttling it is the standard strategy."""
        token = await acquire(AdaptiveRetryStrategy())

        assert (0, 0.0) == (token.retry_count, token.retry_delay)
        assert (0, 0.0) == (token.quota_acquired, now())

    async def test_it_waits_for_the_rate_limiter(self):
        """The first attempt needs a token of the rate limiter like any other."""
        strategy = AdaptiveRetryStrategy()
        drain(strategy.limiter_for())
        token = await acquire(strategy)

        assert 2.0 == now()
        assert 0.0 == token.retry_delay
        assert 0.0 == strategy.limiter_for().capacity


class TestRefresh:
    """The tokens of retries."""

    async def test_it_waits_for_the_backoff_inside(self):
        """The wait is over when the token comes, and the quota has paid."""
        strategy, token = await started()
        token = await refresh(strategy, token, UNAVAILABLE)

        assert (1, 0.0) == (token.retry_count, token.retry_delay)
        assert (14, 1.0) == (token.quota_acquired, now())
        assert 486 == strategy.quota_for().available_capacity

    async def test_it_waits_for_the_rate_limiter_after_the_backoff(self):
        """Leave is taken right before the attempt, not before the delay."""
        strategy, token = await started()
        task = asyncio.create_task(refresh(strategy, token, THROTTLED))
        await asyncio.sleep(1.5)  # the delay is over, there is not yet a token
        assert not task.done()
        assert 0.75 == strategy.limiter_for().capacity

        token = await task

        assert 2.0 == now()
        assert 0.0 == token.retry_delay
        assert 0.0 == strategy.limiter_for().capacity

    @pytest.mark.parametrize(
        ("error", "throttled"),
        [(THROTTLED, True), (UNAVAILABLE, False), (NOT_FOUND, False)],
    )
    async def test_each_failure_is_reported(self, error, throttled):
        """Only throttling switches the rate limiter on; the others are counted."""
        strategy, token = await started()
        await asyncio.sleep(1.0)
        with contextlib.suppress(RetryError):
            await refresh(strategy, token, error)

        assert throttled is strategy.limiter_for().enabled
        assert 0.8 == strategy.limiter_for().measured_rate

    @pytest.mark.parametrize(
        "options",
        [{"max_attempts": 1}, {"retry_quota": StandardRetryQuota(0)}],
        ids=["attempts", "quota"],
    )
    async def test_a_refused_retry_is_reported_all_the_same(self, options):
        """The server has answered; that no retry follows is another matter."""
        strategy, token = await started(**options)
        with pytest.raises(RetryError) as refusal:
            await refresh(strategy, token, THROTTLED)

        assert THROTTLED is refusal.value.__cause__
        assert strategy.limiter_for().enabled
        assert 0.0 == now()

    @pytest.mark.parametrize("wait", [0.5, 1.5], ids=["backoff", "limiter"])
    async def test_a_cancelled_wait_is_paid_back(self, wait):
        """The retry is not made, and nobody has its token."""
        strategy, token = await started()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await refresh(strategy, token, THROTTLED)

        assert (wait, 500) == (now(), strategy.quota_for().available_capacity)

    async def test_a_wait_that_is_thrown_away_stays_paid(self):
        """Garbage is collected anywhere, also by a thread that holds the lock."""
        strategy, token = await started()
        quota = strategy.quota_for()
        waiting = refresh(strategy, token, UNAVAILABLE)
        waiting.send(None)
        with quota._lock:
            waiting.close()

        assert 500 - 14 == quota.available_capacity

    @pytest.mark.parametrize("kind", ["none", "another's", "used"])
    async def test_a_token_that_is_refused_reports_nothing(self, kind):
        """Misuse does not slow the others down."""
        strategy = new_strategy()
        used = await acquire(strategy)
        await strategy.record_success(token=used)
        others = await new_strategy().acquire_initial_retry_token()
        token = {"none": None, "another's": others, "used": used}[kind]
        with pytest.raises(TypeError if token is None else ValueError):
            await refresh(strategy, token, THROTTLED)

        assert not strategy.limiter_for().enabled


class TestSuccess:
    """Successes raise the rate, and fill the quota."""

    async def test_it_brings_the_cost_of_the_retry_back(self):
        """The adaptive mode refunds like the standard one."""
        strategy, token = await started()
        token = await refresh(strategy, token, UNAVAILABLE)
        await strategy.record_success(token=token)

        assert 500 == strategy.quota_for().available_capacity

    async def test_it_is_reported(self):
        """Successes raise the rate."""
        strategy, token = await started()
        await asyncio.sleep(1.0)
        await strategy.record_success(token=token)

        assert 0.8 == strategy.limiter_for().measured_rate
        assert not strategy.limiter_for().enabled


class TestFailFast:
    """Refusing in place of waiting."""

    async def test_a_first_attempt_is_refused(self):
        """Nothing was sent, and the error says when to come again."""
        strategy = new_strategy(fail_fast=True)
        drain(strategy.limiter_for())
        with pytest.raises(CapacityNotAvailableError) as refusal:
            await acquire(strategy)

        assert (2.0, 0.0) == (refusal.value.retry_after, now())
        assert isinstance(refusal.value, aiohttp.ClientError)

    async def test_a_first_attempt_takes_its_leave(self):
        """A grant is paid for here too."""
        strategy = new_strategy(fail_fast=True)
        drain(strategy.limiter_for())
        await asyncio.sleep(2.0)
        await acquire(strategy)

        assert 0.0 == strategy.limiter_for().capacity

    async def test_a_retry_is_refused_and_costs_nothing(self):
        """The quota gets back what it has paid."""
        strategy, token = await started(fail_fast=True)
        with pytest.raises(RetryError) as refusal:
            await refresh(strategy, token, THROTTLED)

        assert 2.0 == refusal.value.retry_after
        assert THROTTLED is refusal.value.__cause__
        assert "rate limiter" in str(refusal.value)
        assert 500 == strategy.quota_for().available_capacity
        assert 0.0 == now()

    async def test_a_retry_has_its_leave_before_its_delay(self):
        """Nothing waits inside; the delay is in the token."""
        strategy = new_strategy(fail_fast=True)
        drain(strategy.limiter_for())
        await asyncio.sleep(2.0)
        token = await acquire(strategy)
        await asyncio.sleep(2.0)
        token = await refresh(strategy, token, UNAVAILABLE)

        assert (4.0, 1.0) == (now(), token.retry_delay)
        assert 0.0 == strategy.limiter_for().capacity
        assert 486 == strategy.quota_for().available_capacity


class TestScopes:
    """Which calls share a rate limiter."""

    async def test_each_scope_has_its_own(self):
        """A server that throttles slows down nobody else's calls."""
        strategy = new_strategy()
        drain(strategy.limiter_for("a"))
        await acquire(strategy, "b")
        await acquire(strategy)
        assert 0.0 == now()

        await acquire(strategy, "a")

        assert 2.0 == now()

    async def test_outcomes_go_to_the_scope_of_the_token(self):
        """So do leaves."""
        strategy = new_strategy()
        token = await acquire(strategy, "a")
        token = await refresh(strategy, token, THROTTLED)
        await strategy.record_success(token=token)

        assert strategy.limiter_for("a").enabled
        assert not strategy.limiter_for().enabled

    async def test_refusals_are_those_of_the_scope(self):
        """Failing fast, too, asks the rate limiter of the call and no other one."""
        strategy = new_strategy(fail_fast=True)
        token = await acquire(strategy, "a")
        other = await acquire(strategy, "b")
        drain(strategy.limiter_for("a"))

        assert 1 == (await refresh(strategy, other, UNAVAILABLE)).retry_count
        with pytest.raises(RetryError):
            await refresh(strategy, token, UNAVAILABLE)
        with pytest.raises(CapacityNotAvailableError):
            await acquire(strategy, "a")

    def test_a_given_rate_limiter_is_for_all(self):
        """Also for other strategies that have it."""
        limiter = ClientRateLimiter()
        for _ in range(2):
            strategy = AdaptiveRetryStrategy(rate_limiter=limiter)

            assert limiter is strategy.limiter_for() is strategy.limiter_for("a")


class TestSettings:
    """Settings of a strategy."""

    def test_it_is_a_standard_strategy(self):
        """It fits wherever one does, and has all of its settings."""
        quota = StandardRetryQuota(7)
        strategy = new_strategy(
            profile=RetryProfile.V2_0,
            max_attempts=7,
            retry_quota=quota,
            long_polling=True,
        )

        assert isinstance(strategy, StandardRetryStrategy)
        assert isinstance(strategy, RetryStrategy)
        assert (RetryProfile.V2_0, 7) == (strategy.profile, strategy.max_attempts)
        assert (True, False) == (strategy.long_polling, strategy.fail_fast)
        assert ONE_SECOND is strategy.backoff_strategy
        assert ONE_SECOND is strategy.throttling_backoff_strategy
        assert quota is strategy.quota_for("a")

    def test_defaults_are_those_of_the_standard_strategy(self):
        """Adaptive is standard, and a rate limiter."""
        standard, adaptive = StandardRetryStrategy(), AdaptiveRetryStrategy()

        assert repr(standard).replace("Standard", "Adaptive", 1) == repr(adaptive)

    def test_repr_shows_what_was_given(self):
        """A rate limiter of one's own and fail_fast are in the repr."""
        limiter = ClientRateLimiter()
        strategy = AdaptiveRetryStrategy(rate_limiter=limiter, fail_fast=True)

        assert repr(strategy).startswith("AdaptiveRetryStrategy(profile=")
        assert repr(strategy).endswith(f", rate_limiter={limiter!r}, fail_fast=True)")


class Server:
    """Admits so many requests a second, evenly; the rate may change with time."""

    def __init__(self, rate_at):
        self.rate_at = rate_at
        self.level = 1.0
        self.asked_at = 0.0
        self.requests = []

    def admits(self, time):
        self.requests.append(time)
        rate = self.rate_at(time)
        income = (time - self.asked_at) * rate
        self.level = min(max(1.0, rate / 10), self.level + income)
        self.asked_at = time
        if self.level < 1.0:
            return False
        self.level -= 1.0
        return True

    def requests_per_second(self, since, until):
        counts = Counter(math.floor(time) for time in self.requests)
        return [counts[second] for second in range(since, until)]


async def call(strategy, server, latency):
    """Make one call in a loop as a user of a bare strategy would write it."""
    token = await acquire(strategy)
    while True:
        await asyncio.sleep(token.retry_delay)
        await asyncio.sleep(latency)
        if server.admits(now()):
            await strategy.record_success(token=token)
            return
        try:
            token = await refresh(strategy, token, THROTTLED)
        except RetryError:
            return


async def let_work(server, seconds, workers=10, latency=0.01):
    """Let workers make calls to *server* one after the other."""
    strategy = AdaptiveRetryStrategy(max_attempts=4)

    async def work():
        while now() < seconds:
            await call(strategy, server, latency)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())


class TestAgainstAServer:
    """The rate follows a server in virtual time, in the limits of the SDKs' tests."""

    async def test_ten_workers_settle_at_what_the_server_admits(self):
        """Twenty a second, where without the rate limiter it would be a thousand."""
        server = Server(lambda time: 20.0)
        await let_work(server, seconds=15)
        rates = server.requests_per_second(5, 15)

        assert all(10 <= rate <= 30 for rate in rates)
        assert 15 <= sum(rates) / len(rates) <= 22

    async def test_they_follow_a_server_that_slows_down(self):
        """From hundreds down to ten a second."""
        server = Server(lambda time: 10_000.0 if time < 3 else 10.0)
        await let_work(server, seconds=15)
        (before,) = server.requests_per_second(2, 3)
        rates = server.requests_per_second(10, 15)

        assert before > 500
        assert all(3 <= rate <= 20 for rate in rates)

    async def test_they_follow_a_server_that_recovers(self):
        """Throttling that is over is forgotten in time."""
        server = Server(lambda time: 20.0 if 2 <= time < 4 else 10_000.0)
        await let_work(server, seconds=15)

        assert server.requests_per_second(14, 15)[0] > 100
