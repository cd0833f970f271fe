"""Limits that find themselves, on a server that is kept busy."""

import asyncio
import random
from statistics import mean

import pytest
from chains import URL, now, session

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    client_decorator,
    new_response,
)

pytestmark = pytest.mark.slow

CALLERS = 100
HALVED_AT, UNTIL = 10.0, 20.0
SECONDS = 0.1


class Workers:
    """A server with so many workers, each busy for about a tenth of a second.

    Args:
        many: The workers: the best limit, with which all are busy and nobody waits.
        line: How many requests may wait for one; more are answered 503.
    """

    def __init__(self, many, line):
        self.many = many
        self._most, self._chance = many + line, random.Random(7)
        self._inside = 0
        self._free = asyncio.Semaphore(many)

    async def serve(self, ctx, request):
        if self._inside >= self._most:
            return new_response(request, 503)
        self._inside += 1
        async with self._free:
            await asyncio.sleep(SECONDS * self._chance.uniform(0.75, 1.25))
        self._inside -= 1
        return new_response(request)

    async def halve(self):
        """Lose every second worker, each when it is free."""
        lost = self.many // 2
        self.many -= lost
        self._most -= lost
        for _ in range(lost):
            await self._free.acquire()


async def limits_seen(limit, workers):
    """Keep a server busy, which loses half of its workers; return limits by time."""

    @client_decorator
    async def server(delegate, ctx, request):
        return await workers.serve(ctx, request)

    limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=None)
    seen = []

    async def call_again_and_again(client):
        while now() < UNTIL:
            async with client.get(URL) as response:
                status = response.status
            seen.append((now(), limit.limit))
            if status == 503:
                await asyncio.sleep(SECONDS)

    async with session(server, limiting) as client, asyncio.TaskGroup() as tasks:
        for _ in range(CALLERS):
            tasks.create_task(call_again_and_again(client))
        await asyncio.sleep(HALVED_AT)
        await workers.halve()
    return seen


def usual(seen, end):
    """Return the limit in the five seconds before."""
    return mean(limit for at, limit in seen if end - 5.0 <= at < end)


@pytest.mark.parametrize(
    ("limit", "workers", "line"),
    [
        (ConcurrencyLimit.aimd, 30, 0),
        (lambda: ConcurrencyLimit.aimd(slow_after=1.25 * SECONDS), 30, 1000),
        (ConcurrencyLimit.gradient, 60, 0),
    ],
    ids=["aimd, refused", "aimd, slow", "gradient, refused"],
)
async def test_limit_settles_near_the_best_one_and_follows_it(limit, workers, line):
    """Within a fifth of what the server can carry out at once, also of half of it."""
    seen = await limits_seen(limit(), Workers(workers, line))

    assert pytest.approx(workers, rel=0.2) == usual(seen, HALVED_AT)
    assert pytest.approx(workers / 2, rel=0.2) == usual(seen, UNTIL)


async def test_gradient_creeps_on_a_server_that_only_queues():
    """Its average follows the slow answers: it needs drops, as the page says."""
    seen = await limits_seen(ConcurrencyLimit.gradient(), Workers(30, 1000))

    assert 2 * 30 < max(limit for _, limit in seen)
