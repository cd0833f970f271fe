"""The adaptive strategy: the standard one behind a rate limiter."""

import asyncio
import contextlib
from dataclasses import replace
from types import SimpleNamespace

import aiohttp
import pytest
from chains import bad_argument, now
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
COMPUTES_DELAYS = "an object with compute_next_backoff_delay(); see from_backoff()"


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

    async def test_its_own_delay_comes_first(self):
        """A backoff of one's own may delay the first attempt; the leave comes last."""
        slow = SimpleNamespace(compute_next_backoff_delay=lambda retry_attempt: 3.0)
        strategy = AdaptiveRetryStrategy(backoff_strategy=slow)
        drain(strategy.limiter_for())
        token = await acquire(strategy)

        assert (3.0, 0.0) == (now(), token.retry_delay)
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

    async def test_a_renewed_token_is_good_for_one_use(self):
        """It is one of ours, though its delay is over."""
        strategy = new_strategy(max_attempts=5)
        first = await acquire(strategy, "a")
        second = await refresh(strategy, first, UNAVAILABLE)
        third = await refresh(strategy, second, UNAVAILABLE)

        assert (2, "a") == (third.retry_count, third.token_scope)
        with pytest.raises(ValueError, match="not used before"):
            await refresh(strategy, second, UNAVAILABLE)

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

    async def test_a_refusal_takes_no_leave(self):
        """A retry that is not sent needs no token of the rate limiter."""
        strategy, token = await started()
        drain(strategy.limiter_for())
        await asyncio.sleep(2.0)
        with pytest.raises(RetryError):
            await refresh(strategy, token, NOT_FOUND)

        assert 1.0 == strategy.limiter_for().capacity

    @pytest.mark.parametrize("wait", [0.5, 1.5], ids=["backoff", "limiter"])
    async def test_a_cancelled_wait_takes_no_leave(self, wait):
        """Whether it waits for the delay or for the rate limiter."""
        strategy, token = await started()
        task = asyncio.create_task(refresh(strategy, token, THROTTLED))
        await asyncio.sleep(wait)
        task.cancel()
        await asyncio.wait([task])

        assert task.cancelled()
        assert wait * 0.5 == strategy.limiter_for().capacity

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

    async def test_the_hook_of_the_retrying_client_reports_nothing(self):
        """It has its own place for that, and does its own waiting."""
        strategy = new_strategy()
        token = strategy._refresh(strategy._acquire(None), THROTTLED)

        assert (1.0, 0.0) == (token.retry_delay, now())
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

    async def test_a_used_token_is_not_reported_again(self):
        """One attempt is one outcome."""
        strategy, token = await started()
        await strategy.record_success(token=token)
        with pytest.raises(ValueError, match="not used before"):
            await strategy.record_success(token=token)
        await asyncio.sleep(1.0)
        strategy.limiter_for().update(throttled=False)

        assert 0.8 * 2 == strategy.limiter_for().measured_rate


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

    async def test_a_free_refusal_leaves_the_quota_alone(self):
        """A quota that takes nothing gets nothing back."""
        free = replace(RetryProfile.V2_1, throttling_cost=0)
        quota = StandardRetryQuota(500, profile=free)
        quota.acquire(error=UNAVAILABLE)
        strategy, token = await started(fail_fast=True, retry_quota=quota)
        with pytest.raises(RetryError):
            await refresh(strategy, token, THROTTLED)

        assert 486 == quota.available_capacity

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

    def test_rate_limiters_are_kept(self):
        """One scope, one rate limiter."""
        strategy = AdaptiveRetryStrategy()

        assert strategy.limiter_for("a") is strategy.limiter_for("a")
        assert strategy.limiter_for("a") is not strategy.limiter_for("b")

    def test_a_bad_scope_is_refused(self):
        """With a rate limiter for all, too."""
        strategy = AdaptiveRetryStrategy(rate_limiter=ClientRateLimiter())

        with pytest.raises(ValueError, match="token_scope: 5"):
            strategy.limiter_for(5)


NO_LIMITER = "a ClientRateLimiter, or None; call it: ClientRateLimiter()"


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

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("rate_limiter", 5, "a ClientRateLimiter, or None"),
            ("rate_limiter", ClientRateLimiter, NO_LIMITER),
            ("fail_fast", 1, "True or False"),
            ("fail_fast", None, "True or False"),
            ("throttling_backoff_strategy", type(ONE_SECOND), COMPUTES_DELAYS),
        ],
    )
    def test_bad_arguments(self, name, value, expected):
        """A bad argument is named where the strategy is made."""
        with bad_argument(name, value, expected):
            AdaptiveRetryStrategy(**{name: value})

    def test_failing_fast_is_not_waiting(self):
        """Long polling is; both at once is a contradiction."""
        with bad_argument("fail_fast", True, "False with long_polling=True"):
            AdaptiveRetryStrategy(fail_fast=True, long_polling=True)

    def test_repr_shows_what_was_given(self):
        """A rate limiter of one's own and fail_fast are in the repr."""
        limiter = ClientRateLimiter()
        strategy = AdaptiveRetryStrategy(rate_limiter=limiter, fail_fast=True)

        assert repr(strategy).startswith("AdaptiveRetryStrategy(profile=")
        assert repr(strategy).endswith(f", rate_limiter={limiter!r}, fail_fast=True)")
