"""Delays before a hedge."""

from __future__ import annotations

import math
import pickle

import pytest

from aioretry_smithy import HedgingDelay

BAD = [math.nan, math.inf, -1.0, "1", None, True]


@pytest.mark.parametrize("seconds", BAD)
def test_a_fixed_delay_is_a_number_of_seconds(seconds):
    """Finite, and not below 0."""
    with pytest.raises(ValueError, match=r"^seconds: .* \(expected: finite and >= 0\)"):
        HedgingDelay.fixed(seconds)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("quantile", [*BAD, 0, 0.0, 1.0, 95], "> 0 and < 1"),
        ("minimum_samples", [0, 1.0, True, None], "an int >= 1"),
        ("window", [*BAD, 0.0], "finite and > 0"),
        ("floor", BAD, "finite and >= 0"),
    ],
)
def test_a_percentile_says_what_it_expects(name, values, expected):
    """Also of those who mean 0.95 and write 95."""
    messages = []
    for value in values:
        with pytest.raises(ValueError, match="expected") as caught:
            HedgingDelay.percentile(**{name: value})
        messages.append(str(caught.value))

    assert [f"{name}: {each!r} (expected: {expected})" for each in values] == messages


@pytest.mark.parametrize(
    "delay",
    [
        HedgingDelay.fixed(0.5),
        HedgingDelay.percentile(0.9, minimum_samples=1, floor=0.0),
    ],
)
def test_a_delay_is_a_value(delay):
    """Equal to another one with the same settings, and shown as it was made."""
    other = pickle.loads(pickle.dumps(delay))

    assert (delay, hash(delay)) == (other, hash(other))
    assert delay == eval(repr(delay), {"HedgingDelay": HedgingDelay})


def test_the_defaults_are_those_of_the_page():
    """One request in twenty, of the last minute or two."""
    shown = "HedgingDelay.percentile(0.95, minimum_samples=100, window=60.0, "

    assert f"{shown}floor=0.001)" == repr(HedgingDelay.percentile())
