"""The constants of each generation."""

import math
from dataclasses import FrozenInstanceError, asdict, replace

import pytest
from chains import bad_argument

from aioretry_smithy.smithy.limiters import RetryProfile

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


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_attempts", 0, "an int >= 1"),
        ("max_attempts", True, "an int >= 1"),
        ("max_attempts", 3.0, "an int >= 1"),
        ("retry_cost", -1, "an int >= 0"),
        ("timeout_cost", None, "an int >= 0"),
        ("throttling_cost", "5", "an int >= 0"),
        ("no_retry_increment", math.nan, "an int >= 0"),
        ("backoff_scale_value", -0.1, "finite and >= 0"),
        ("throttling_backoff_scale_value", math.inf, "finite and >= 0"),
        ("max_backoff", math.nan, "finite and >= 0"),
        ("max_backoff", "20", "finite and >= 0"),
        ("max_added_delay", -1, "finite and >= 0, math.inf, or None"),
        ("max_added_delay", -math.inf, "finite and >= 0, math.inf, or None"),
        ("max_added_delay", math.nan, "finite and >= 0, math.inf, or None"),
        ("max_added_delay", False, "finite and >= 0, math.inf, or None"),
        ("success_refund", -1, "an int >= 0, or None"),
        ("success_refund", True, "an int >= 0, or None"),
        ("success_refund", 0.5, "an int >= 0, or None"),
    ],
)
def test_bad_constant_is_refused(name, value, expected):
    """A profile that cannot be followed is not made."""
    with bad_argument(name, value, expected):
        RetryProfile(**{name: value})


def test_least_constants_are_fine():
    """0 is a cost and a delay; one attempt is an attempt."""
    least = dict.fromkeys(V2_1, 0) | {"max_attempts": 1}

    assert least == asdict(RetryProfile(**least))
