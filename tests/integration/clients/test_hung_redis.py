"""A Redis that takes connections, and never answers."""

from __future__ import annotations

import asyncio
import contextlib
import time

import aiohttp
import pytest
from chains import URL, chain, retrying

pytest.importorskip("limits")
pytest.importorskip("redis.asyncio")

from redis.asyncio import ConnectionPool, Redis

from aioretry_smithy import RateLimitError, RateLimitingClient
from aioretry_smithy.limits import SharedRateLimit
from aioretry_smithy.redis import SharedCircuitBreakers, SharedRetryBudget

pytestmark = pytest.mark.slow

SECOND = 1.0
SHORT = 0.2
"""Seconds that a call has."""


@pytest.fixture
async def port():
    """The port of the server."""
    connections = []

    async def be_silent(reader, writer):
        connections.append(asyncio.current_task())
        # Until the client hangs up.
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    async with await asyncio.start_server(be_silent, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*connections)


@pytest.fixture
async def pool(port):
    """A pool of connections to it."""
    pool = ConnectionPool(host="127.0.0.1", port=port)
    yield pool
    await pool.disconnect()


class Calls:
    """One short call after another: how long each took, and what it brought."""

    def __init__(self, *decorators, answer=200, cancelled=False, **settings):
        self.session = chain(
            [answer] * 99,
            *decorators,
            timeout=None if cancelled else SHORT,
            **settings,
        ).build()
        self.patience = SHORT if cancelled else None
        self.ends = []

    async def make(self, seconds):
        """Make calls for so long."""
        begun = time.monotonic()
        async with self.session:
            while (before := time.monotonic()) < begun + seconds:
                end = await self.end_of_one()
                # Not more than there are answers for.
                await asyncio.sleep(0.02)
                self.ends.append((before - begun, time.monotonic() - before, end))

    async def end_of_one(self):
        try:
            async with (
                asyncio.timeout(self.patience),
                self.session.get(URL) as response,
            ):
                return response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            return type(error)

    def since(self, second):
        """Return what the calls brought that began after that second."""
        return [end for begun, _, end in self.ends if begun > second]


@pytest.mark.parametrize("cancelled", [False, True], ids=["deadline", "cancelled"])
async def test_calls_that_give_up_sooner_find_out_together(pool, caplog, cancelled):
    """A second after the first question; then no call waits, and a warning says so."""
    calls = {
        policy: Calls(
            RateLimitingClient.new_decorator(
                SharedRateLimit(
                    "async+redis://",
                    "100/second",
                    key=policy,
                    on_storage_error=policy,
                    implementation="redispy",
                    connection_pool=pool,
                )
            ),
            cancelled=cancelled,
        )
        for policy in ("allow", "refuse")
    }
    await asyncio.gather(*(each.make(SECOND + 0.4) for each in calls.values()))

    assert {200} == {*calls["allow"].since(SECOND)}
    assert {RateLimitError} == {*calls["refuse"].since(SECOND)}
    for each in calls.values():
        _, took, first = each.ends[0]

        assert issubclass(first, TimeoutError)
        assert SHORT <= took + 0.01
        assert all(took < SHORT / 2 for at, took, _ in each.ends if at > SECOND)
    messages = sorted(caplog.messages)
    assert ["go through", "are refused"] == [
        next(verb for verb in ("go through", "are refused") if verb in message)
        for message in messages
    ]


async def test_calls_in_flight_go_through_when_the_second_is_over(pool):
    """Whichever key they ask for, and however late they asked."""
    limit = SharedRateLimit(
        "async+redis://",
        "100/second",
        key=lambda ctx, request: request.url.path,
        implementation="redispy",
        connection_pool=pool,
    )
    limiting = RateLimitingClient.new_decorator(limit)
    begun = time.monotonic()
    async with chain([200] * 9, limiting).build() as session:

        async def status(number):
            await asyncio.sleep(number * 0.1)
            async with session.get(f"{URL}/{number}") as response:
                return response.status

        assert [200] * 9 == await asyncio.gather(*map(status, range(9)))

    assert SECOND <= time.monotonic() - begun + 0.01 < SECOND + 0.5


async def test_budgets_and_circuits_find_out_too(pool, caplog):
    """Retries are decided about here, and circuits open here, as the warnings say."""
    redis = Redis(connection_pool=pool)
    budget = SharedRetryBudget(redis, "orders", capacity=99, brake_after=None)
    calls = Calls(retrying(0.0, limiter=budget, max_total_attempts=2), answer=503)
    async with SharedCircuitBreakers(redis):
        await calls.make(SECOND + 0.3)

    assert {503} == {*calls.since(SECOND)}
    assert 2 == len(caplog.messages)
    assert any("circuits open in each process" in each for each in caplog.messages)
    assert any("decides about retries alone" in each for each in caplog.messages)
