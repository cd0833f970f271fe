"""No schedule of requests exceeds a rate, and none leaves anything behind."""

from __future__ import annotations

import asyncio
import math
import operator
import random
from dataclasses import dataclass

import aiohttp
import pytest
from chains import URL, in_virtual_time, now, pass_on, retrying, session
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aioretry_smithy import (
    HedgingClient,
    RateLimit,
    RateLimitingClient,
    client_decorator,
    new_response,
)
from aioretry_smithy._limits.rate_gate import Price, TurnTime, latest_of, pass_all

pytestmark = pytest.mark.slow

schedules = st.integers(0, 2**64).map(random.Random)

NEAR = 1e-3


@dataclass
class Sent:
    """A request that went out: when, and what it was charged and has cost."""

    number: int
    at: float
    charged: float
    actual: float
    settled_at: float | None = None


class Server:
    """Notes what goes out of each limit, and answers after a while.

    Args:
        chance: Decides what becomes of each request.
        limits: The limits, and the names of the headers with what a request costs.
    """

    def __init__(self, chance, limits):
        self._chance, self._limits = chance, limits
        self.sent = {name: [] for name in limits}

    def decorator(self):
        @client_decorator
        async def serve(delegate, ctx, request):
            chance = self._chance
            for name in request.headers["limits"].split(","):
                charged = float(request.headers[name])
                if charged:
                    wrong = chance.choice([0.0, 0.5, 1.0, 1.0, 3.0])
                    number = int(request.headers["number"])
                    self.sent[name].append(
                        Sent(number, now(), charged, charged * wrong)
                    )
            await asyncio.sleep(chance.choice([0.0, 0.5, 3.0]))
            if chance.random() < 0.2:
                raise aiohttp.ServerDisconnectedError
            return new_response(request, chance.choice([200, 200, 404, 503]))

        return serve

    def settle(self, response, number):
        """Settle what a response came from, as its caller does."""
        for name, limit in self._limits.items():
            mine = [
                each
                for each in self.sent[name]
                if each.number == number and each.settled_at is None
            ]
            # A retry has sent more than one; the last has answered.
            if mine and name in response.request_info.headers["limits"]:
                limit.settle(response, mine[-1].actual)
                mine[-1].settled_at = now()


async def call(chance, server, client, names, number):
    """Make a call, and settle what it has cost, or not."""
    weights = {name: f"{chance.choice([0, 1, 1, 2, 5])}" for name in server.sent}
    headers = {**weights, "number": f"{number}", "limits": ",".join(names)}
    try:
        async with client.get(URL, headers=headers) as response:
            await asyncio.sleep(chance.choice([0.0, 0.5, 2.0]))
            if chance.random() < 0.7:
                server.settle(response, number)
    except (aiohttp.ClientError, TimeoutError):
        pass


def sessions(chance, server, limits):
    """Build sessions, each of which has some of the limits, in any order."""
    names = [*limits]
    for _ in range(3):
        some = chance.sample(names, chance.randint(1, len(names)))
        chain = [
            server.decorator(),
            RateLimitingClient.new_decorator(
                [limits[name] for name in some],
                timeout=chance.choice([None, 0.0, 2.0, 20.0]),
            ),
        ]
        if chance.random() < 0.3:
            chain.append(pass_on)
        if chance.random() < 0.3:
            chain.append(HedgingClient.new_decorator(1.0))
        if chance.random() < 0.5:
            chain.append(retrying(0.5, max_total_attempts=2))
        limit = chance.choice([None, 1.5, 30.0])
        yield some, session(*chain, timeout=limit)


async def check_schedule(chance):
    """Begin calls at random moments, cancel some, and look at what went out."""

    def cost_in(name):
        return lambda ctx, request: float(request.headers[name])

    rates = {name: chance.choice([0.5, 1.0, 4.0]) for name in "abc"}
    limits = {
        name: RateLimit(rate, burst=chance.choice([5, 8]), cost=cost_in(name))
        for name, rate in rates.items()
    }
    server, tasks = Server(chance, limits), []
    clients = [*sessions(chance, server, limits)]
    for number in range(chance.randint(1, 15)):
        names, client = chance.choice(clients)
        work = call(chance, server, client, names, number)
        tasks.append(asyncio.create_task(work))
        await asyncio.sleep(chance.choice([0.0, 0.0, 0.25, 1.0, 6.0]))
        if chance.random() < 0.3:
            chance.choice(tasks).cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for _, client in clients:
        await client.close()
    for name, limit in limits.items():
        check_rate(server.sent[name], rates[name], limit._line.rule.burst)

        assert 0 == limit.pending
        assert 0.0 == limit._line._ahead
    # What is left of the deadlines of calls is no timer of a limit.
    assert all(each.cancelled() for each in asyncio.get_running_loop()._scheduled)

    await asyncio.sleep(1000.0)
    for limit in limits.values():
        assert limit._line.try_take(now()) is not None


def check_rate(sent, rate, burst):
    """Check all windows from one request to another.

    What goes out is more than the rate only by what was not known: of requests that
    went out before, and were charged too much; of those inside, charged too little.
    """
    for first, begin in enumerate(sent):
        before = sum(
            max(0.0, each.charged - each.actual)
            for each in sent[:first]
            if each.settled_at is not None and each.settled_at >= begin.at
        )
        actual = unknown = 0.0
        for end in sent[first:]:
            actual += end.actual
            unknown += max(0.0, end.actual - end.charged)
            seconds = end.at - begin.at

            assert actual <= burst + rate * seconds + before + unknown + NEAR


@settings(max_examples=10 * settings.default.max_examples)
@given(schedules)
def test_no_schedule_exceeds_a_rate_but_for_what_was_not_known(chance):
    """With several limits, figures of the callers, retries, hedges, cancellations."""
    in_virtual_time(check_schedule(chance))


@pytest.mark.long
@pytest.mark.release
@settings(
    max_examples=500,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(schedules)
def test_none_of_five_hundred_schedules_exceeds_a_rate(chance):
    """The same, as often as it takes to meet what is rare."""
    in_virtual_time(check_schedule(chance))


async def check_order(chance):
    """Let requests with one limit or two wait; look at when they go."""
    limits = {name: RateLimit(1.0, burst=6) for name in "ab"}
    arrived, gone = {name: [] for name in limits}, {}

    async def ask(number, names):
        @client_decorator
        async def serve(delegate, ctx, request):
            gone[number] = now()
            return new_response(request)

        limiting = RateLimitingClient.new_decorator([limits[name] for name in names])
        async with session(serve, limiting) as client:
            await client.get(URL)

    tasks = []
    for number in range(chance.randint(1, 20)):
        names = chance.choice(["a", "b", "ab", "ba"])
        for name in names:
            arrived[name].append(number)
        tasks.append(asyncio.create_task(ask(number, names)))
        await asyncio.sleep(chance.choice([0.0, 0.0, 0.5, 2.0]))
        if chance.random() < 0.3:
            chance.choice(tasks).cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for name in limits:
        # Of those whose turns come at one moment, one that waited takes a step more.
        times = [gone[each] for each in arrived[name] if each in gone]
        assert sorted(times) == times


@settings(max_examples=10 * settings.default.max_examples)
@given(schedules)
def test_each_limit_serves_in_the_order_of_arrival(chance):
    """Though some wait for another one too, and some leave."""
    in_virtual_time(check_order(chance))


def as_soon_as_it_can(arrivals, buckets):
    """Say when each request goes, one after the other, as each limit serves them.

    Args:
        arrivals: When each comes, and what it costs at which limit.
        buckets: The rate and the burst of each limit.
    """
    levels = {name: (0.0, float(burst)) for name, (_, burst) in buckets.items()}
    ends = []
    for came_at, costs in arrivals:
        at = came_at
        for name, cost in costs.items():
            since, level = levels[name]
            # Full or not, it has what it needs then.
            at = max(at, since, since + (cost - level) / buckets[name][0])
        for name, cost in costs.items():
            since, level = levels[name]
            rate, burst = buckets[name]
            levels[name] = at, min(burst, level + (at - since) * rate) - cost
        ends.append(at)
    return ends


async def check_turns(chance):
    """Let requests wait that all have time; compare with a reckoning beforehand."""
    buckets = {name: (chance.choice([0.5, 1.0, 4.0]), 6) for name in "abc"}
    limits = {
        name: RateLimit(rate, burst=burst) for name, (rate, burst) in buckets.items()
    }
    arrivals, tasks, forecasts = [], [], []

    async def go(costs):
        prices = [Price(limits[name], cost) for name, cost in costs.items()]
        forecasts.append(latest_of(prices)[1])
        await pass_all(prices, TurnTime(math.inf, math.inf))
        return now()

    for _ in range(chance.randint(1, 20)):
        names = chance.sample("abc", chance.randint(1, 3))
        costs = {name: float(chance.choice([1, 1, 2, 5])) for name in names}
        arrivals.append((now(), costs))
        tasks.append(asyncio.create_task(go(costs)))
        await asyncio.sleep(chance.choice([0.0, 0.25, 2.0]))
    ends = await asyncio.gather(*tasks)

    assert pytest.approx(as_soon_as_it_can(arrivals, buckets), abs=NEAR) == ends
    assert all(map(operator.le, forecasts, [end + NEAR for end in ends]))


@settings(max_examples=10 * settings.default.max_examples)
@given(schedules)
def test_each_request_goes_as_soon_as_it_can_and_not_before_its_forecast(chance):
    """So nobody is refused who would have had a turn in time."""
    in_virtual_time(check_turns(chance))
