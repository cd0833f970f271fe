"""Tokens come at the fill rate, and go when they are taken."""

import json
from pathlib import Path

import pytest

from aioretry_smithy.smithy import limiters
from aioretry_smithy.smithy.limiters import TokenBucket

VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "rate_limiter.json").read_text()
)


def by_remark(vector):
    return vector["remark"]


@pytest.mark.parametrize("vector", VECTORS["token_bucket"], ids=by_remark)
def test_published_histories(vector, monkeypatch):
    """Each step sets the rate, takes tokens, or looks at what there is."""
    if "min_fill_rate" in vector:
        monkeypatch.setattr(limiters, "_MIN_FILL_RATE", vector["min_fill_rate"])
    bucket = TokenBucket()
    expected, actual = [], []
    for step in vector["steps"]:
        now = step["at"]
        match step:
            case {"set_rate": rate}:
                bucket.change_rate(rate, now)
            case {"take": amount, "wait": wait}:
                expected.append(wait)
                actual.append(bucket.try_take(amount, now))
            case {"level": level}:
                expected.append(level)
                actual.append(bucket.level(now))
            case {"fill_rate": fill_rate}:
                expected.append(fill_rate)
                actual.append(bucket.fill_rate)

    assert pytest.approx(expected, abs=1e-9) == actual


def test_rate_never_falls_below_one_in_two_seconds():
    """However slow the server is, there is an end to the wait."""
    bucket = TokenBucket()
    bucket.change_rate(0.01, now=0.0)

    assert 0.5 == bucket.fill_rate
    assert 2.0 == bucket.try_take(1.0, now=0.0)


def test_a_new_rate_counts_from_now_on():
    """Tokens of the time before came in at the old rate."""
    bucket = TokenBucket()
    bucket.change_rate(2.0, now=0.0)
    bucket.change_rate(100.0, now=0.5)

    assert 1.0 == bucket.level(now=0.5)
    assert pytest.approx(2.0) == bucket.level(now=0.51)


def test_savings_are_not_lost_when_less_is_wanted():
    """Tokens beyond the room for them stay, less what is taken."""
    bucket = TokenBucket()
    bucket.change_rate(1.0, now=0.0)
    bucket.try_take(5.0, now=0.0)
    assert 2.0 == bucket.try_take(5.0, now=3.0)

    assert 0.0 == bucket.try_take(1.0, now=3.0)
    assert 2.0 == bucket.level(now=3.0)
    assert 3.0 == bucket.try_take(5.0, now=3.0)


def test_a_clock_that_goes_back_takes_nothing():
    """A bucket that moves to another loop's clock goes on from there."""
    bucket = TokenBucket()
    bucket.change_rate(1.0, now=1000.0)
    assert 1.0 == bucket.try_take(1.0, now=1000.0)

    assert 1.0 == bucket.try_take(1.0, now=5.0)
    assert 0.5 == bucket.try_take(1.0, now=5.5)


def test_a_wait_too_short_for_the_clock_is_granted():
    """Where adding the wait does not change the time, waiting would not end."""
    bucket = TokenBucket()
    bucket.change_rate(1.0, now=2.0**30 - 1.0)
    now = 2.0**30 - 2.0**-23

    assert 2.0**-23 > 1e-9
    assert 2.0**-23 == bucket.try_take(1.0, now=now)

    bucket.change_rate(4.0, now=now)

    assert 0.0 == bucket.try_take(1.0, now=now)
    assert 0.0 == bucket.level(now)
