"""Requests have their turn at a rate, and stand in line for it."""

import asyncio
import math
import random

import pytest
from chains import now

from aioretry_smithy import RateLimit, RateLimitError
from aioretry_smithy._clock import loop_time
from aioretry_smithy._limits.rate_gate import Price, TurnTime, pass_all
from aioretry_smithy._limits.rate_limit import wait_in
from aioretry_smithy._limits.rate_rules import Bucket
from aioretry_smithy.testing import VirtualTimeLoop


async def turn_of(limit, until=math.inf):
    """Get a turn as a client does; return when that was, or None."""
    if limit._line.try_take(loop_time()) or await wait_in([(limit._line, 1.0)], until):
        return now()
    return None


async def turns(limit, many):
    return await asyncio.gather(*(turn_of(limit) for _ in range(many)))


async def test_a_burst_goes_out_at_once_and_the_rest_at_the_rate():
    """By default as many as go out in the time that was given."""
    assert [0, 0, 0.5, 1.0, 1.5] == await turns(RateLimit(2), 5)
    assert 0 == len(asyncio.all_tasks()) - 1


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (RateLimit(1, per=10.0), [0, 10, 20]),
        (RateLimit(0.5), [0, 2, 4]),
        (RateLimit(4, burst=1), [0, 0.25, 0.5]),
        (RateLimit(4, burst=1.5), [0, 0.125, 0.375]),
        (RateLimit(1, burst=3), [0, 0, 0]),
    ],
    ids=repr,
)
async def test_settings_mean_what_they_say(limit, expected):
    """Rates below one a second, and bursts of any size."""
    assert expected == await turns(limit, 3)


async def test_a_pause_fills_the_bucket_and_no_more():
    """Two are saved up, however long it is."""
    limit = RateLimit(2)
    await turns(limit, 3)
    await asyncio.sleep(100.0)

    assert [100.5, 100.5, 101.0] == await turns(limit, 3)


async def test_a_turn_of_a_request_that_is_cancelled_then_is_not_lost():
    """Nobody waits behind it, and the next one to come has it."""
    limit = RateLimit(1)
    limit._line.try_take(loop_time())
    waiter = asyncio.create_task(turn_of(limit))
    await asyncio.sleep(0)
    limit._line.rule._full_at -= 1.0
    limit._line.hurry()
    waiter.cancel()
    await asyncio.sleep(0)

    assert waiter.cancelled()
    assert limit._line.try_take(loop_time())


async def test_a_request_that_has_its_turn_and_is_cancelled_has_left_once():
    """Those that come later are told no turn that is too early."""
    limit = RateLimit(1)
    limit._line.try_take(loop_time())
    first, *others = (asyncio.create_task(turn_of(limit)) for _ in range(3))
    await asyncio.sleep(0)
    limit._line.rule._full_at -= 1.0
    limit._line.hurry()
    first.cancel()
    await asyncio.wait([first])

    assert 1 == limit.pending
    assert 1.0 == limit._line._ahead
    await asyncio.gather(*others)


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("requests", {"requests": 0}),
        ("requests", {"requests": "5"}),
        ("per", {"requests": 1, "per": 0}),
        ("per", {"requests": 1, "per": math.inf}),
        ("per", {"requests": 1e-300, "per": 1e300}),
        ("per", {"requests": 1, "per": 1e300, "burst": 1e10}),
        ("burst", {"requests": 1, "burst": 0.5}),
        ("burst", {"requests": 1, "burst": "5"}),
    ],
)
def test_bad_arguments_are_refused(argument, options):
    """The error names the argument."""
    with pytest.raises(ValueError, match=f"^{argument}: "):
        RateLimit(**options)


MANY = 1000


async def turn_at_all(prices, until=math.inf):
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
        tasks.append(asyncio.create_task(turn_at_all(prices, 10_000.0)))
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
        asyncio.create_task(turn_at_all([Price(limit, float(MANY + 1 + n))]))
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
        await turn_at_all([Price(limit, 1.0)], 5.0)
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
        asyncio.create_task(turn_at_all([Price(one, 1.0), Price(two, 1.0)], 100.0))
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
    first, second = (
        asyncio.create_task(turn_at_all([Price(limit, 1.0)])) for _ in "ab"
    )
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
    first = asyncio.create_task(turn_at_all(price, 200.0))
    await asyncio.sleep(0)
    first.cancel()
    limit._line.expire(200.0)
    await asyncio.wait([first])

    assert first.cancelled()
    assert 0 == limit.pending


def waiting_in(line, loop, number=1):
    """Let requests wait in an event loop that runs no more then."""

    async def wait():
        line.rule.take(loop.time(), 1.0)
        calls = [wait_in([(line, 1.0)], math.inf) for _ in range(number)]
        tasks = [loop.create_task(call) for call in calls]
        await asyncio.sleep(0)
        return tasks

    return loop.run_until_complete(wait())


def thrown_away(task):
    """Throw away a request of a closed loop, as the garbage collector does."""
    task._log_destroy_pending = False
    task.get_coro().close()


def test_requests_of_a_closed_loop_are_thrown_away_in_silence():
    """No loop runs then, in which the next one might be admitted."""
    line, closed = RateLimit(1)._line, VirtualTimeLoop()
    tasks = waiting_in(line, closed, number=3)
    closed.close()

    for task in tasks:
        thrown_away(task)

    assert line.first is None


def test_those_of_a_closed_loop_leave_those_of_another_alone():
    """The others have taken their place in the line."""
    line, closed, loop = RateLimit(1)._line, VirtualTimeLoop(), VirtualTimeLoop()
    [lost] = waiting_in(line, closed)
    closed.close()
    line.forget_lost()
    [waiting] = waiting_in(line, loop)

    thrown_away(lost)

    assert 1 == len(line)
    assert 1 == len(loop.run_until_complete(waiting))
    loop.close()


async def test_end_of_one_that_is_long_gone_is_no_matter():
    """Others still wait when its time would have been up."""
    limit = RateLimit(1)
    limit._line.try_take(now())
    price = [Price(limit, 1.0)]
    tasks = [asyncio.create_task(turn_at_all(price, 2.5)) for _ in range(2)]
    tasks += [asyncio.create_task(turn_at_all(price, 100.0)) for _ in range(3)]

    await asyncio.gather(*tasks)

    assert 5.0 == now()
    assert 0 == limit.pending


def bucket_of(rate=1.0, burst=10.0):
    """Return the bucket of a limit."""
    return RateLimit(rate, burst=burst)._line.rule


def tokens_in(bucket):
    """Return the tokens in a bucket; less than 0 is a debt."""
    return bucket.burst - max(0.0, bucket._full_at - now()) / bucket._interval


async def test_a_debt_that_is_forgiven_comes_back():
    """Though the bucket was full when it was told of it."""
    bucket = bucket_of()
    charge = bucket.take(now(), 1.0)
    await asyncio.sleep(20.0)
    charge.settle(9.0)

    assert 2.0 == tokens_in(bucket)

    bucket.take(now(), 1.0)
    charge.settle(1.0)

    assert 9.0 == tokens_in(bucket)


def test_a_figure_that_is_the_estimate_changes_nothing():
    """Neither a refund nor a debt."""
    bucket = bucket_of()
    charge = bucket.take(0.0, 3.0)
    charge.settle(3.0)

    assert 3.0 == bucket._full_at
