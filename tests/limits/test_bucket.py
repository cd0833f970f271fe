"""Tokens of a bucket that are charged by an estimate, and corrected afterwards."""

from __future__ import annotations

import asyncio

import pytest
from chains import in_virtual_time, now
from hypothesis import given, settings
from hypothesis import strategies as st

from aioretry_smithy import RateLimit


def bucket_of(rate=1.0, burst=10.0):
    """Return the bucket of a limit."""
    return RateLimit(rate, burst=burst)._line.rule


def level_of(bucket):
    """Return the tokens in a bucket; less than 0 is a debt."""
    return bucket.burst - max(0.0, bucket._full_at - now()) / bucket._interval


async def test_what_was_too_much_comes_back():
    """At once, and once."""
    bucket = bucket_of()
    charge = bucket.take(now(), 8.0)

    assert 2.0 == level_of(bucket)

    charge.settle(3.0)

    assert 7.0 == level_of(bucket)

    charge.settle(3.0)

    assert 7.0 == level_of(bucket)


async def test_what_was_too_little_is_a_debt():
    """Those that come next wait until it is paid."""
    bucket = bucket_of()
    bucket.take(now(), 4.0).settle(15.0)

    assert -5.0 == level_of(bucket)
    assert 6.0 == bucket.turn(now(), 1.0)


async def test_the_last_figure_counts():
    """Up, down, and up again."""
    bucket = bucket_of()
    charge = bucket.take(now(), 5.0)
    levels = []
    for figure in (9.0, 2.0, 4.0, 0.0, 5.0):
        charge.settle(figure)
        levels.append(level_of(bucket))

    assert [1.0, 8.0, 6.0, 10.0, 5.0] == levels


async def test_a_refund_counts_when_it_comes():
    """It is credited too where the bucket was full in the meantime."""
    bucket = bucket_of()
    charge = bucket.take(now(), 5.0)
    await asyncio.sleep(5.0)
    bucket.take(now(), 10.0)
    charge.settle(0.0)

    assert 5.0 == level_of(bucket)


async def test_a_refund_fills_no_bucket_with_more_than_it_holds():
    """What is over is lost with the next request."""
    bucket = bucket_of()
    charge = bucket.take(now(), 5.0)
    await asyncio.sleep(5.0)
    charge.settle(0.0)

    assert 10.0 == level_of(bucket)

    bucket.take(now(), 1.0)

    assert 9.0 == level_of(bucket)


async def test_a_debt_that_is_forgiven_comes_back():
    """Though the bucket was full when it was told of it."""
    bucket = bucket_of()
    charge = bucket.take(now(), 1.0)
    await asyncio.sleep(20.0)
    charge.settle(9.0)

    assert 2.0 == level_of(bucket)

    bucket.take(now(), 1.0)
    charge.settle(1.0)

    assert 9.0 == level_of(bucket)


@settings(max_examples=10 * settings.default.max_examples)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), max_size=25))
def test_settled_requests_have_cost_what_was_said_at_last(figures):
    """Whatever was estimated, and whatever was said before."""

    async def level():
        bucket = bucket_of()
        charges = [bucket.take(now(), float(estimate)) for estimate, _ in figures]
        for charge, (estimate, actual) in zip(charges, figures, strict=True):
            charge.settle(float(actual + estimate))
            charge.settle(float(actual))
        return level_of(bucket)

    spent = sum(actual for _, actual in figures)
    assert pytest.approx(10.0 - spent) == in_virtual_time(level())
