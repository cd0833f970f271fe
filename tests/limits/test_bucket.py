"""Tokens of a bucket that are charged by an estimate, and corrected afterwards."""

from __future__ import annotations

import asyncio

from chains import now

from aioretry_smithy import RateLimit


def bucket_of(rate=1.0, burst=10.0):
    """Return the bucket of a limit."""
    return RateLimit(rate, burst=burst)._line.rule


def level_of(bucket):
    """Return the tokens in a bucket; less than 0 is a debt."""
    return bucket.burst - max(0.0, bucket._full_at - now()) / bucket._interval


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


def test_a_figure_that_is_the_estimate_changes_nothing():
    """Neither a refund nor a debt."""
    bucket = bucket_of()
    charge = bucket.take(0.0, 3.0)
    charge.settle(3.0)

    assert 3.0 == bucket._full_at
