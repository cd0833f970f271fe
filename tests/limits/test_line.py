"""Lines in which requests wait for several limits at once."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from chains import now

from aioretry_smithy import RateLimit, RateLimitError
from aioretry_smithy._limits.rate_gate import Price, TurnTime, pass_all
from aioretry_smithy._limits.rate_rules import Bucket

MANY = 1000


async def turn_of(prices, until=math.inf):
    """Wait for a turn at each limit; return when it was, or the error."""
    try:
        await pass_all(prices, TurnTime(until, math.inf))
    except RateLimitError as error:
        return error
    return now()


@pytest.fixture
def asked(monkeypatch):
    """How often a bucket was asked when a turn would come."""
    counts = []
    forecast = Bucket.forecast

    def counted(self, *arguments):
        counts.append(None)
        return forecast(self, *arguments)

    monkeypatch.setattr(Bucket, "forecast", counted)
    return counts


async def test_a_thousand_requests_cost_as_much_each_as_a_few(asked):
    """To join, to be forecast, to go, and to leave."""
    limits = [RateLimit(10, burst=1), RateLimit(1000, burst=500)]
    chance = random.Random(1)
    tasks = []
    for _ in range(MANY):
        prices = [Price(limits[0], 1.0), Price(limits[1], chance.uniform(1.0, 200.0))]
        tasks.append(asyncio.create_task(turn_of(prices, 10_000.0)))
        if chance.random() < 0.3:
            await asyncio.sleep(0)
            tasks.pop(chance.randrange(len(tasks))).cancel()
    await asyncio.gather(*tasks)

    # Twice before it waits, then when it joins, and when it may go; at both limits.
    assert 12 * MANY >= len(asked)
    assert [0, 0] == [limit.pending for limit in limits]


async def test_many_refunds_while_many_wait_ask_for_the_first_alone(asked):
    """Whose turn comes sooner by each of them."""
    limit = RateLimit(0.001, burst=2 * MANY)
    permits = [
        await pass_all([Price(limit, 1.0)], TurnTime(math.inf, math.inf))
        for _ in range(MANY)
    ]
    tasks = [
        asyncio.create_task(turn_of([Price(limit, float(MANY + 1 + n))]))
        for n in range(10)
    ]
    await asyncio.sleep(0)
    asked.clear()
    for each in permits:
        each.give_back()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    assert 4 * MANY >= len(asked)


async def test_those_who_have_to_be_refused_at_once_are(asked):
    """In the order in which they came, though their timers are all due then."""
    limit = RateLimit.from_headers()
    limit._line.rule.close(0.0, 1.0)
    ends = []

    async def refused(number):
        await turn_of([Price(limit, 1.0)], 5.0)
        ends.append((number, now()))

    tasks = [asyncio.create_task(refused(number)) for number in range(50)]
    await asyncio.sleep(0)
    limit._line.rule.close(0.0, 9.0)
    await asyncio.gather(*tasks)

    assert [(number, 5.0) for number in range(50)] == ends


async def test_who_leaves_a_line_leaves_nothing_in_it():
    """Nor in the line that it has come for."""
    one, two = RateLimit(1), RateLimit(1)
    for limit in (one, two):
        limit._line.try_take(now())
    tasks = [
        asyncio.create_task(turn_of([Price(one, 1.0), Price(two, 1.0)], 100.0))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    assert [0, 0] == [one.pending, two.pending]
    assert [0.0, 0.0] == [one._line._ahead, two._line._ahead]
    assert all(each.cancelled() for each in asyncio.get_running_loop()._scheduled)


async def test_who_is_cancelled_as_its_turn_comes_is_passed_by():
    """It has not left yet, and takes nothing."""
    limit = RateLimit(1)
    limit._line.try_take(now())
    first, second = (asyncio.create_task(turn_of([Price(limit, 1.0)])) for _ in "ab")
    await asyncio.sleep(0)
    limit._line.rule._full_at -= 1.0
    first.cancel()
    limit._line.hurry()

    assert 0.0 == await second
    assert first.cancelled()


async def test_who_is_cancelled_as_its_time_is_up_is_passed_by():
    """It has not left yet, and nobody else is kept from leaving."""
    limit = RateLimit(1)
    limit._line.try_take(now())
    limit._line.rule.take(now(), 100.0)
    price = [Price(limit, 1.0)]
    first = asyncio.create_task(turn_of(price, 200.0))
    await asyncio.sleep(0)
    first.cancel()
    limit._line.expire(200.0)
    await asyncio.wait([first])

    assert first.cancelled()
    assert 0 == limit.pending


async def test_end_of_one_that_is_long_gone_is_no_matter():
    """Others still wait when its time would have been up."""
    limit = RateLimit(1)
    limit._line.try_take(now())
    price = [Price(limit, 1.0)]
    tasks = [asyncio.create_task(turn_of(price, 2.5)) for _ in range(2)]
    tasks += [asyncio.create_task(turn_of(price, 100.0)) for _ in range(3)]

    await asyncio.gather(*tasks)

    assert 5.0 == now()
    assert 0 == limit.pending
