"""Tokens of a bucket that are charged by an estimate, and corrected afterwards."""

from __future__ import annotations

import asyncio
import random

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


async def test_a_refund_fills_no_bucket_twice():
    """What was full in the meantime has lost those tokens already."""
    bucket = bucket_of()
    charge = bucket.take(now(), 5.0)
    await asyncio.sleep(5.0)
    bucket.take(now(), 10.0)
    charge.settle(0.0)

    assert 0.0 == level_of(bucket)


async def test_a_refund_is_what_the_bucket_had_room_for():
    """It was all but full, so most of the tokens would have been lost."""
    bucket = bucket_of()
    charge = bucket.take(now(), 5.0)
    await asyncio.sleep(3.0)
    bucket.take(now(), 8.0)
    charge.settle(0.0)

    assert 2.0 == level_of(bucket)


async def test_room_that_one_refund_has_filled_is_not_there_for_another():
    """Neither for an older request, nor for a younger one."""
    bucket = bucket_of()
    charges = [bucket.take(now(), 3.0) for _ in range(3)]
    await asyncio.sleep(5.0)
    bucket.take(now(), 6.0)
    for charge in (charges[1], charges[2], charges[0]):
        charge.settle(0.0)

    # There was room for four, so five are lost.
    assert 4.0 == level_of(bucket)


async def test_a_refund_of_a_late_request_knows_no_room_before_it():
    """The bucket was full before it, not since."""
    bucket = bucket_of()
    first = bucket.take(now(), 2.0)
    await asyncio.sleep(2.0)
    second = bucket.take(now(), 7.0)
    await asyncio.sleep(1.0)
    second.settle(1.0)
    first.settle(0.0)

    assert 10.0 == level_of(bucket)


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


async def test_a_debt_that_was_paid_does_not_come_back():
    """The bucket was full since, and what came then is spent."""
    bucket = bucket_of()
    charge = bucket.take(now(), 1.0)
    charge.settle(9.0)
    await asyncio.sleep(20.0)
    bucket.take(now(), 10.0)
    charge.settle(1.0)

    assert 0.0 == level_of(bucket)


async def test_a_debt_that_is_forgiven_hides_no_room_that_was_lost():
    """Later requests have less of it than earlier ones then."""
    bucket = bucket_of()
    first = bucket.take(now(), 9.0)
    await asyncio.sleep(4.0)
    second = bucket.take(now(), 1.0)
    await asyncio.sleep(5.0)
    third = bucket.take(now(), 2.0)
    second.settle(20.0)
    second.settle(0.5)
    await asyncio.sleep(5.0)
    bucket.take(now(), 5.0)
    for charge in first, third:
        charge.settle(0.0)

    assert 5.0 == level_of(bucket)


async def test_a_request_that_nobody_remembers_leaves_nothing():
    """The bucket forgets those whose response is gone."""
    bucket = bucket_of(burst=100.0)
    kept = [bucket.take(now(), 1.0) for _ in range(3)]
    for _ in range(50):
        bucket.take(now(), 1.0)
    del kept[1:]
    bucket.take(now(), 1.0)

    assert [kept[0]._account] == [*bucket._accounts.values()][:1]
    assert 3 >= len(bucket._accounts)

    await asyncio.sleep(200.0)
    bucket.try_take(now())

    assert not bucket._accounts

    kept[0].settle(0.0)

    assert 99.0 == level_of(bucket)


class Tank:
    """A bucket in which each request is charged at once what it costs in the end."""

    def __init__(self, burst):
        self.burst = self.level = burst
        self.at = 0.0

    def take(self, moment, tokens):
        self.level = min(self.burst, self.level + moment - self.at) - tokens
        self.at = moment


async def check_history(chance, *, with_debts):
    """Charge and settle at random; compare with a bucket that knew all beforehand.

    With debts, requests may cost more than was estimated, and wrong figures come first.
    """
    bucket, known, open_charges = bucket_of(), Tank(10.0), []
    for _ in range(chance.randint(1, 25)):
        await asyncio.sleep(chance.choice([0.0, 0.5, 2.0, 6.0]))
        estimate = chance.randint(0, 6)
        high = 12 if with_debts else estimate
        actual = chance.randint(0, high)
        known.take(now(), actual)
        open_charges.append((bucket.take(now(), float(estimate)), actual))
        while open_charges and chance.random() < 0.5:
            which = chance.randrange(len(open_charges))
            charge, figure = open_charges.pop(which)
            charge.settle(chance.randint(0, 12) if with_debts else figure)
            if with_debts:
                # The first figure was wrong, and another one comes soon or late.
                open_charges.append((charge, figure))
    for charge, figure in open_charges:
        charge.settle(figure)
    known.take(now(), 0.0)
    return level_of(bucket), known.level


@settings(max_examples=10 * settings.default.max_examples)
@given(st.integers(0, 2**32).map(random.Random))
def test_refunds_lead_to_what_was_known_beforehand(chance):
    """Whenever they come, and in whatever order."""
    level, known = in_virtual_time(check_history(chance, with_debts=False))

    assert pytest.approx(known, abs=1e-6) == level


@settings(max_examples=10 * settings.default.max_examples)
@given(st.integers(0, 2**32).map(random.Random))
def test_no_history_fills_a_bucket_with_more_than_there_is(chance):
    """A debt that comes late finds tokens lost that were not spent."""
    level, known = in_virtual_time(check_history(chance, with_debts=True))

    assert level <= known + 1e-6
