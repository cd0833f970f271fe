"""Clients with the adaptive strategy beside a server that admits so many requests."""

import asyncio
import math
from collections import Counter

from chains import now
from token_strategies import acquire, refresh

from aioretry_smithy.smithy import AdaptiveRetryStrategy, CallError, RetryError

THROTTLED = CallError("429", fault="client", is_throttling_error=True)


class Server:
    """Admits so many requests a second, evenly; the rate may change with time."""

    def __init__(self, rate_at):
        self.rate_at = rate_at
        self.level = 1.0
        self.asked_at = 0.0
        self.requests = []

    def admits(self, time):
        self.requests.append(time)
        rate = self.rate_at(time)
        income = (time - self.asked_at) * rate
        self.level = min(max(1.0, rate / 10), self.level + income)
        self.asked_at = time
        if self.level < 1.0:
            return False
        self.level -= 1.0
        return True

    def requests_per_second(self, since, until):
        counts = Counter(math.floor(time) for time in self.requests)
        return [counts[second] for second in range(since, until)]


async def call(strategy, server, latency):
    """Make one call in a loop as a user of a bare strategy would write it."""
    token = await acquire(strategy)
    while True:
        await asyncio.sleep(token.retry_delay)
        await asyncio.sleep(latency)
        if server.admits(now()):
            await strategy.record_success(token=token)
            return
        try:
            token = await refresh(strategy, token, THROTTLED)
        except RetryError:
            return


async def let_work(server, seconds, workers=10, latency=0.01):
    """Let workers make calls to *server* one after the other."""
    strategy = AdaptiveRetryStrategy(max_attempts=4)

    async def work():
        while now() < seconds:
            await call(strategy, server, latency)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())


class TestAgainstAServer:
    """The rate follows a server in virtual time, in the limits of the SDKs' tests."""

    async def test_ten_workers_settle_at_what_the_server_admits(self):
        """Twenty a second, where without the rate limiter it would be a thousand."""
        server = Server(lambda time: 20.0)
        await let_work(server, seconds=15)
        rates = server.requests_per_second(5, 15)

        assert all(10 <= rate <= 30 for rate in rates)
        assert 15 <= sum(rates) / len(rates) <= 22

    async def test_they_follow_a_server_that_slows_down(self):
        """From hundreds down to ten a second."""
        server = Server(lambda time: 10_000.0 if time < 3 else 10.0)
        await let_work(server, seconds=15)
        (before,) = server.requests_per_second(2, 3)
        rates = server.requests_per_second(10, 15)

        assert before > 500
        assert all(3 <= rate <= 20 for rate in rates)

    async def test_they_follow_a_server_that_recovers(self):
        """Throttling that is over is forgotten in time."""
        server = Server(lambda time: 20.0 if 2 <= time < 4 else 10_000.0)
        await let_work(server, seconds=15)

        assert server.requests_per_second(14, 15)[0] > 100
