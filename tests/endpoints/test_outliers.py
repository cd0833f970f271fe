"""The settings of when endpoints are left alone.

Of the cases of endpoints.md (f): 83, 87, 91 (void: None stands for none).
"""

from __future__ import annotations

import math

import pytest

from aioretry_smithy import CircuitBreakerRule, OutlierDetection


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("consecutive_failures", 0, "an int >= 1"),
        ("consecutive_failures", 1.0, "an int >= 1"),
        ("connect_failures", 0, "an int >= 1"),
        ("minimum_request_threshold", 0, "an int >= 1"),
        ("counter_sliding_window", 0.0, "finite and > 0"),
        ("ejection_time", 0, "finite and > 0"),
        ("ejection_time", math.nan, "finite and > 0"),
        ("max_ejection_time", math.inf, "finite and > 0"),
        ("max_ejection_time", 4.9, ">= ejection_time, 5.0"),
        ("failure_rate_threshold", -0.1, "from 0 to 1"),
        ("failure_rate_threshold", 1.1, "from 0 to 1"),
        ("max_ejected", math.nan, "from 0 to 1"),
        ("max_ejected", None, "from 0 to 1"),
        ("strategy", "5xx", "a CircuitBreakerStrategy, or None"),
    ],
)
def test_bad_ones_are_refused(name, value, expected):
    """Each with its name, and what is expected."""
    with pytest.raises(ValueError, match=f"^{name}: ") as raised:
        OutlierDetection(**{name: value})

    assert str(raised.value).endswith(f"(expected: {expected})")


def test_ends_of_shares_are_allowed():
    """None may be out, or all but one; a rate of more than nothing, or none."""
    for share in (0, 1):
        OutlierDetection(max_ejected=share, failure_rate_threshold=share)
    OutlierDetection(strategy=CircuitBreakerRule(statuses={418}))


@pytest.mark.parametrize(
    ("share", "most"),
    [
        (0.5, [0, 0, 1, 1, 2, 2, 3, 5]),
        (0.1, [0, 0, 1, 1, 1, 1, 1, 1]),
        (1.0, [0, 0, 1, 2, 3, 4, 5, 9]),
        (0.0, [0, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_how_many_may_be_out(share, most):
    """Case 87: at least one of two or more, never all, none where that is said."""
    detection = OutlierDetection(max_ejected=share)

    assert most == [detection.most_ejected(n) for n in (0, 1, 2, 3, 4, 5, 6, 10)]


def test_how_long_it_is_out():
    """Case 83: doubling up to the most, then up to a quarter more by chance."""
    detection = OutlierDetection()

    assert [5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0] == [
        detection.seconds_out(times, 0.0) for times in (1, 2, 3, 4, 5, 6, 10_000)
    ]
    assert [6.25, 5.625] == [detection.seconds_out(1, dice) for dice in (1.0, 0.5)]
