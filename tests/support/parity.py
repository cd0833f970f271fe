"""The same calls of a bare session and of ours, while connections of a pool break."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
from chains import connected, pass_on, retrying
from fault_server import Received
from pool_server import FAULTS, LEFT_TO_CHANCE, RESET, Call, PoolServer

from aioretry_smithy import Backoff, RetryStrategy, SessionBuilder

SOON = Backoff.fixed(0.01)
PATIENCE = 20.0
"""Seconds after which something hangs."""

MOST = 4
"""Requests of one attempt: the first, and three more on connections that were used."""


def standard(url, **arguments):
    """Build what is right for most services."""
    return SessionBuilder.standard(url, **arguments).build()


def plain(url, **arguments):
    """Build a session with retries and nothing else."""
    return connected(url, retrying(RetryStrategy.failsafe(SOON)), **arguments)


def never(url, **arguments):
    """Build a session that retries nothing."""
    return connected(url, retrying(RetryStrategy.never()), **arguments)


def beside_a_decorator(url, **arguments):
    """Build a session with retries around a user's decorator."""
    return connected(url, pass_on, retrying(RetryStrategy.failsafe(SOON)), **arguments)


CHAINS = {
    "standard": standard,
    "retries": plain,
    "retries, beside a decorator": beside_a_decorator,
    "never": never,
}
"""By name: what makes a session for a URL."""

RETRYING = {name: make for name, make in CHAINS.items() if "never" not in name}
NEVER = {name: make for name, make in CHAINS.items() if "never" in name}
BARE = {"bare": aiohttp.ClientSession}


def each(sessions):
    """Run a test with each of these, as the argument ``make``."""
    return pytest.mark.parametrize("make", sessions.values(), ids=sessions)


def in_use(session):
    """Count the connections that a call has."""
    return len(session.connector._acquired)


@dataclass(frozen=True)
class Storm:
    """Calls, and what becomes of the connections meanwhile.

    Attributes:
        fault: A name in ``FAULTS``.
        pool: The calls that find a connection in the pool, and those that do not.
        successes: The calls that succeeded before, on connections of their own.
        method: A method, or several in turn.
    """

    fault: str
    pool: tuple[int, int]
    successes: int
    method: str

    def __str__(self):
        pooled, fresh = self.pool
        calls = f"{pooled} pooled and {fresh} fresh {self.method}"
        return f"{self.fault}: {calls} after {self.successes}"

    @property
    def calls(self):
        """The calls that are under way together."""
        methods = itertools.cycle(self.method.split("-"))
        return [Call(next(methods), number) for number in range(sum(self.pool))]


@dataclass
class Outcome:
    """Which calls were saved, and what the server saw."""

    saved: set[Call]
    requests: list[Received]
    left: int

    def arrivals(self, call):
        """Return the requests of one call."""
        return [request for request in self.requests if request.target == call.path]


async def play(storm, make):
    """Make the calls of a storm with a session, and three more when it is over."""
    async with (
        asyncio.timeout(PATIENCE),
        PoolServer() as server,
        make(server.url) as session,
    ):
        for number in range(storm.successes):
            async with session.get(f"/closing/{number}") as response:
                assert 200 == response.status
        await warm(server, session, storm.pool[0])
        calls = storm.calls
        answered = await FAULTS[storm.fault](server, session, calls)
        if storm.fault not in LEFT_TO_CHANCE:
            after = [Call("GET", 1000 + number) for number in range(3)]
            calls += after
            answered += [await call.send(session) for call in after]
        left = in_use(session)
    saved = {call for call, fine in zip(calls, answered, strict=True) if fine}
    return Outcome(saved, server.requests, left)


async def warm(server, session, count):
    """Fill the pool with as many connections, each of which has answered once."""
    before = server.processed
    with server.holding():
        calls = [
            asyncio.create_task(Call("GET", 2000 + number).send(session))
            for number in range(count)
        ]
        await server.arrived(before + count)
    fine = await asyncio.gather(*calls)

    assert all(fine)


@asynccontextmanager
async def stale_pool(make, count=1, how=RESET, **arguments):
    """Serve a session whose pool has as many connections that break when used.

    Nothing may hang in the block, and at its end no connection may be in use.
    """
    async with (
        asyncio.timeout(PATIENCE),
        PoolServer() as server,
        make(server.url, **arguments) as session,
    ):
        await warm(server, session, count)
        server.requests.clear()
        server.leave_stale(how)
        yield server, session

        assert 0 == in_use(session)


async def status_of(calling):
    """Return the status that a call got, or None if it failed."""
    try:
        async with calling as response:
            await response.read()
            return response.status
    except (aiohttp.ClientError, TimeoutError):
        return None
