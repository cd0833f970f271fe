"""A Redis that takes connections, and never answers."""

import asyncio
import socket
import statistics
import time

import aiohttp
import pytest
from chains import URL, chain

pytest.importorskip("limits")
pytest.importorskip("redis.asyncio")

from redis.asyncio import ConnectionPool
from until import until

from aioretry_smithy import RateLimitError, RateLimitingClient
from aioretry_smithy.limits import SharedRateLimit

pytestmark = pytest.mark.slow

SECOND = 1.0
SHORT = 0.2
"""Seconds that a call has."""

IN_A_ROW = 9
"""Calls that are made when it is known that Redis is away."""

TICK = 0.02
"""Seconds by which a clock may be early."""


@pytest.fixture
def port():
    """The port of the server: the kernel takes connections, and nobody reads."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
async def pool(port):
    """A pool of connections to it."""
    pool = ConnectionPool(host="127.0.0.1", port=port)
    yield pool
    # A question that was asked last goes on for its second.
    await until(lambda: {asyncio.current_task()} == asyncio.all_tasks())
    await pool.disconnect()


class Calls:
    """One short call after another.

    Attributes:
        early: What the calls brought that began before it was known that Redis is away.
        ends: What those brought that began afterwards.
        seconds: How long each of these took.
        known_after: Seconds from the first call on until it was known.
    """

    def __init__(self, *decorators, answer=200, cancelled=False, **settings):
        self.session = chain(
            [answer] * 99, *decorators, timeout=None if cancelled else SHORT, **settings
        ).build()
        self.patience = SHORT if cancelled else None
        self.early, self.ends, self.seconds = [], [], []
        self.known_after = None

    async def make(self, is_known):
        """Make calls until it is known that Redis is away, and some more."""
        begun = time.monotonic()
        async with self.session:
            # Four times as many as take a second.
            while not is_known() and len(self.early) < 20:
                self.early.append(await self.end_of_one())
            self.known_after = time.monotonic() - begun
            for _ in range(IN_A_ROW):
                before = time.monotonic()
                self.ends.append(await self.end_of_one())
                self.seconds.append(time.monotonic() - before)

    async def end_of_one(self):
        try:
            async with (
                asyncio.timeout(self.patience),
                self.session.get(URL) as response,
            ):
                return response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            return type(error)


def warned_of(caplog, what):
    """Return a function that says whether a warning has these words."""
    return lambda: any(what in message for message in caplog.messages)


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
    await asyncio.gather(
        calls["allow"].make(warned_of(caplog, "go through")),
        calls["refuse"].make(warned_of(caplog, "are refused")),
    )

    assert [200] * IN_A_ROW == calls["allow"].ends
    assert [RateLimitError] * IN_A_ROW == calls["refuse"].ends
    for each in calls.values():
        assert issubclass(each.early[0], TimeoutError)
        assert SECOND <= each.known_after + TICK
        assert statistics.median(each.seconds) < SHORT / 2
    assert 2 == len(caplog.messages)
