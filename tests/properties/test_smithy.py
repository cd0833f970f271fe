"""Rules that Smithy's strategies keep, with any settings and events."""

import math

from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy.smithy import RetryInfo
from aioretry_smithy.smithy.interfaces import (
    CallError,
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    RetryError,
)
from aioretry_smithy.smithy.limiters import RetryProfile, StandardRetryQuota
from aioretry_smithy.smithy.strategies import StandardRetryStrategy

DEFAULT, NONE, FULL, DECORRELATED = ExponentialBackoffJitterType
LARGEST_CHANCE = math.nextafter(1.0, 0.0)

seconds = st.floats(0, 1e6) | st.floats(0, 1.7e308) | st.integers(0, 10**6)
chances = st.floats(0, LARGEST_CHANCE) | st.just(LARGEST_CHANCE)
attempts = st.integers(1, 200) | st.integers(1, 10**6)
errors = st.builds(
    CallError,
    is_retry_safe=st.sampled_from([True, True, None, False]),
    fault=st.sampled_from(["server", "client", None]),
    is_throttling_error=st.booleans(),
    is_timeout_error=st.booleans(),
    retry_after=st.none() | st.floats(-10, 1e4),
)
profiles = st.sampled_from(
    [RetryProfile.V2_1, RetryProfile.V2_0, RetryProfile.DYNAMODB, RetryProfile.GUIDE]
)


def exponential(scale, longest, jitter_type, chance=0.5):
    return ExponentialRetryBackoffStrategy(
        backoff_scale_value=scale,
        max_backoff=longest,
        jitter_type=jitter_type,
        random=lambda: chance,
    )


@given(
    st.sampled_from([*ExponentialBackoffJitterType]),
    seconds,
    seconds,
    attempts,
    chances,
)
def test_delay_stays_in_the_range_of_its_jitter(kind, scale, longest, n, chance):
    """With any chance a delay is in the range that its formula names."""
    backoff = exponential(scale, longest, kind, chance)
    delay = backoff.compute_next_backoff_delay(n)
    capped = exponential(scale, longest, NONE).compute_next_backoff_delay(n)
    lowest, highest = {
        DEFAULT: (capped / 2, capped),
        NONE: (capped, capped),
        FULL: (0.0, capped),
        DECORRELATED: (min(scale, longest), longest),
    }[kind]

    assert lowest <= delay <= highest
    assert isinstance(delay, float)


@given(seconds, seconds, attempts)
def test_delay_without_jitter_doubles_up_to_the_limit(scale, longest, n):
    """From one retry to the next the delay doubles, or it is the limit."""
    backoff = exponential(scale, longest, NONE)
    delay, following = map(backoff.compute_next_backoff_delay, (n, n + 1))

    assert following == min(2 * delay, longest)


def spent_by_hand(profile, info, left):
    """Reckon what a retry costs, and None where it cannot be paid."""
    if info.is_throttling_error:
        cost = profile.throttling_cost
    elif info.is_timeout_error:
        cost = profile.timeout_cost
    else:
        cost = profile.retry_cost
    return cost if cost <= left else None


@given(
    profiles,
    st.integers(0, 60),
    st.integers(1, 5),
    st.lists(st.lists(errors | st.none(), max_size=6), max_size=12),
)
def test_calls_cost_and_bring_what_the_rules_say(profile, capacity, limit, calls):
    """After any calls the quota holds what a reckoning by hand says.

    Each call is a list of attempts: an error, or None for a success.
    """
    quota = StandardRetryQuota(capacity, profile=profile)
    strategy = StandardRetryStrategy(
        profile=profile, max_attempts=limit, retry_quota=quota
    )
    left = capacity
    for call in calls:
        token, paid = strategy._acquire(None), 0
        for made, error in enumerate(call, 1):
            if error is None:
                drive(strategy.record_success(token=token))
                refund = profile.success_refund
                if refund is None or not paid:
                    refund = paid or profile.no_retry_increment
                left = min(capacity, left + refund)
                break
            info = RetryInfo.of(error)
            allowed = info.allows_retry and made < limit
            cost = spent_by_hand(profile, info, left) if allowed else None
            renewed = renew(strategy, token, error)

            assert (cost is None) == (renewed is None)
            if renewed is None:
                break
            token, paid = renewed, cost
            left -= cost

            assert (made, cost) == (token.retry_count, token.quota_acquired)
        assert left == quota.available_capacity


@given(profiles, errors, st.integers(1, 40))
def test_delay_is_near_what_backoff_and_server_ask_for(profile, error, retry_count):
    """The server is heard up to its limit, and never makes a delay shorter."""
    scale = (
        profile.throttling_backoff_scale_value
        if error.is_throttling_error
        else profile.backoff_scale_value
    )
    backoff = min(scale * 2 ** (retry_count - 1), profile.max_backoff)
    info = RetryInfo.of(error)
    hint = info.retry_after or 0.0
    added = profile.max_added_delay
    longest = profile.max_backoff if added is None else backoff + added
    _, delay = StandardRetryStrategy(profile=profile)._delays(retry_count, error, info)

    assert 0.0 <= delay <= longest
    assert delay >= min(hint, profile.max_backoff if added is None else added)


def renew(strategy, token, error):
    try:
        return strategy._refresh(token, error)
    except RetryError:
        return None


def drive(coroutine):
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")
