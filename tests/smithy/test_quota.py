"""The quota that pays for retries, and the constants of each generation."""

import math
import random
from dataclasses import FrozenInstanceError, asdict, replace
from itertools import count

import pytest
from chains import in_threads, raises_exactly

from aioretry_smithy.smithy import (
    CallError,
    RetryError,
    RetryProfile,
    StandardRetryQuota,
)

ERROR = ConnectionResetError()
THROTTLED = CallError(is_throttling_error=True)
TIMED_OUT = CallError(is_timeout_error=True)
THROTTLED_AND_TIMED_OUT = CallError(is_throttling_error=True, is_timeout_error=True)


@pytest.mark.parametrize(
    ("cost", "profile", "error"),
    [
        (14, RetryProfile.V2_1, ERROR),
        (14, RetryProfile.V2_1, TIMED_OUT),
        (5, RetryProfile.V2_1, THROTTLED),
        (5, RetryProfile.V2_1, THROTTLED_AND_TIMED_OUT),
        (5, RetryProfile.V2_0, ERROR),
        (10, RetryProfile.V2_0, TIMED_OUT),
        (5, RetryProfile.V2_0, THROTTLED_AND_TIMED_OUT),
        (0, RetryProfile(retry_cost=0), ERROR),
    ],
)
def test_price_depends_on_the_error(cost, profile, error):
    """Throttling comes before timeouts, and both before the rest."""
    quota = StandardRetryQuota(profile=profile)

    assert cost == quota.acquire(error=error)
    assert 500 - cost == quota.available_capacity


def test_refusal_takes_nothing_and_says_how_much_is_missing():
    """The rest can still pay for something cheaper."""
    quota = StandardRetryQuota(10)
    said = "Retry quota exceeded: needs 14 tokens, 10 left"
    with raises_exactly(said, RetryError) as caught:
        quota.acquire(error=ERROR)

    assert caught.value.retry_after is None
    assert 10 == quota.available_capacity
    assert 5 == quota.acquire(error=THROTTLED)


@pytest.mark.parametrize(
    ("settings", "released", "left"),
    [
        pytest.param({}, [14], 44 + 14, id="what the retry has cost"),
        pytest.param({"no_retry_increment": 0}, [0], 44, id="no retry, nothing"),
        pytest.param({"no_retry_increment": 1}, [0], 44 + 1, id="no retry, one"),
        pytest.param({"no_retry_increment": 3}, [0], 44 + 3, id="no retry, three"),
        pytest.param({"success_refund": 0}, [14], 44, id="flat, nothing"),
        pytest.param({"success_refund": 1}, [14], 44 + 1, id="flat, one"),
        pytest.param({"success_refund": 20}, [14], 44 + 20, id="flat, more than paid"),
        pytest.param(
            {"success_refund": 20, "no_retry_increment": 3},
            [14, 0],
            44 + 20 + 3,
            id="flat, and a call without a retry",
        ),
        pytest.param({}, [14] * 4, 100, id="all that was paid"),
        pytest.param({}, [14] * 4 + [0], 100, id="full, without a retry"),
        pytest.param({}, [14] * 3 + [50], 100, id="overfull, by a refund"),
    ],
)
def test_success_brings_something_back(settings, released, left):
    """Four retries took 56 of 100; there is never more than at first."""
    quota = StandardRetryQuota(100, profile=RetryProfile(**settings))
    for _ in range(4):
        quota.acquire(error=ERROR)
    for amount in released:
        quota.release(release_amount=amount)

    assert left == quota.available_capacity


def test_constants_are_those_of_the_newest_profile():
    """Under the names of smithy-python, on the class and on each quota."""
    for quota in (StandardRetryQuota, StandardRetryQuota(20)):
        assert (500, 14, 5, 1) == (
            quota.INITIAL_RETRY_TOKENS,
            quota.RETRY_COST,
            quota.THROTTLING_RETRY_COST,
            quota.NO_RETRY_INCREMENT,
        )


def test_constants_of_a_quota_are_those_of_its_profile():
    """They say what it charges; those of the class stay as they are."""
    quota = StandardRetryQuota(profile=RetryProfile(retry_cost=7, throttling_cost=3))

    assert (7, 3, 1) == (
        quota.RETRY_COST,
        quota.THROTTLING_RETRY_COST,
        quota.NO_RETRY_INCREMENT,
    )
    assert 14 == StandardRetryQuota.RETRY_COST


def test_subclass_may_have_other_constants():
    """Timeouts cost what any retry costs, as in smithy-python."""

    class Dear(StandardRetryQuota):
        RETRY_COST = 100
        THROTTLING_RETRY_COST = 50
        NO_RETRY_INCREMENT = 10

    quota = Dear()
    costs = [quota.acquire(error=error) for error in (ERROR, THROTTLED, TIMED_OUT)]
    quota.release(release_amount=0)

    assert [100, 50, 100] == costs
    assert 260 == quota.available_capacity


def test_profile_stands_above_the_constants_of_a_subclass():
    """It is what was asked for last."""

    class Dear(StandardRetryQuota):
        RETRY_COST = 100

    assert 5 == Dear(profile=RetryProfile.V2_0).acquire(error=ERROR)


@pytest.mark.usefixtures("eager_threads")
def test_threads_share_a_quota_to_the_last_token():
    """Eight threads at once neither overdraw it nor lose or make tokens."""
    capacity = 200
    quota = StandardRetryQuota(capacity)
    seeds = count()
    kept, seen = [], []

    def spend():
        chance = random.Random(next(seeds))
        mine = []
        for _ in range(100):
            error = chance.choice([ERROR, THROTTLED])
            if mine and chance.random() < 0.5:
                quota.release(release_amount=mine.pop())
            else:
                try:
                    mine.append(quota.acquire(error=error))
                except RetryError:
                    seen.append(quota.available_capacity)
        kept.append(sum(mine))

    in_threads(spend)

    assert seen, "the quota never ran out"
    assert 0 <= min(seen) <= max(seen) <= capacity
    assert capacity == quota.available_capacity + sum(kept)


V2_1 = {
    "max_attempts": 3,
    "retry_cost": 14,
    "timeout_cost": 14,
    "throttling_cost": 5,
    "no_retry_increment": 1,
    "success_refund": None,
    "backoff_scale_value": 0.05,
    "throttling_backoff_scale_value": 1.0,
    "max_backoff": 20.0,
    "max_added_delay": 5.0,
}
V2_0 = V2_1 | {
    "retry_cost": 5,
    "timeout_cost": 10,
    "backoff_scale_value": 1.0,
    "max_added_delay": None,
}
DYNAMODB = V2_1 | {"max_attempts": 4, "backoff_scale_value": 0.025}
GUIDE = V2_0 | {
    "max_attempts": 5,
    "success_refund": 1,
    "max_added_delay": math.inf,
}


@pytest.mark.parametrize(
    ("constants", "profile"),
    [
        (V2_1, RetryProfile.V2_1),
        (V2_0, RetryProfile.V2_0),
        (DYNAMODB, RetryProfile.DYNAMODB),
        (GUIDE, RetryProfile.GUIDE),
        (V2_1, RetryProfile()),
    ],
)
def test_profile_has_the_published_constants(constants, profile):
    """All constants are those that the SDKs, or the guide's example, use."""
    assert constants == asdict(profile)


def test_profile_of_ones_own_differs_where_it_says_so():
    """A setting that is not replaced stays, and the original does not change."""
    mine = replace(RetryProfile.V2_0, retry_cost=0)

    assert V2_0 | {"retry_cost": 0} == asdict(mine)
    assert V2_0 == asdict(RetryProfile.V2_0)
    with pytest.raises(FrozenInstanceError):
        mine.retry_cost = 1


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("RetryProfile.V2_1", RetryProfile()),
        ("RetryProfile.V2_0", RetryProfile.V2_0),
        ("RetryProfile.DYNAMODB", RetryProfile.DYNAMODB),
        ("RetryProfile.GUIDE", RetryProfile.GUIDE),
        (
            "RetryProfile(max_attempts=9, max_added_delay=None)",
            RetryProfile(max_attempts=9, max_added_delay=None),
        ),
    ],
)
def test_repr_makes_the_profile_again(text, profile):
    """It is short, and nothing that matters is left out."""
    assert text == repr(profile)
    assert profile == eval(text)


def test_least_constants_are_fine():
    """0 is a cost and a delay; one attempt is an attempt."""
    least = dict.fromkeys(V2_1, 0) | {"max_attempts": 1}

    assert least == asdict(RetryProfile(**least))
