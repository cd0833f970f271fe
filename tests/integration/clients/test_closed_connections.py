"""A Redis that closes connections, or is started again: it is not away."""

import asyncio
import contextlib

import pytest
from chains import URL, chain, retrying

pytest.importorskip("limits")
pytest.importorskip("redis.asyncio")

from redis.asyncio import ConnectionPool, Redis, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from aioretry_smithy import RateLimitingClient
from aioretry_smithy.limits import SharedRateLimit
from aioretry_smithy.redis import SharedRetryBudget

pytestmark = pytest.mark.slow

IDLE = 2.5
"""Seconds after which a server with a time limit of one has closed a connection."""

CALLS = 4


class Trusting(ConnectionPool):
    """Does not look whether a connection was closed, as older clients do not."""

    async def ensure_connection(self, connection):
        await connection.connect()


@contextlib.asynccontextmanager
async def session_on(path):
    """A session whose rate and retries are decided by Redis, with a budget of it."""
    pools = [
        Trusting(
            connection_class=UnixDomainSocketConnection,
            path=path,
            retry=Retry(NoBackoff(), 0),
        )
        for _ in range(2)
    ]
    limit = SharedRateLimit(
        "async+redis://",
        "100/second",
        key="orders",
        on_storage_error="refuse",
        implementation="redispy",
        connection_pool=pools[0],
    )
    budget = SharedRetryBudget(
        Redis(connection_pool=pools[1]), "orders", capacity=99, brake_after=None
    )
    added = RateLimitingClient.new_decorator(limit), retrying(0.0, limiter=budget)
    async with chain([503, 200] * CALLS, *added).build() as session:
        yield session, budget
        # What it has to report is reported before the connections end.
        await asyncio.sleep(1.1)
    for pool in pools:
        await pool.disconnect()


async def status(session):
    async with session.get(URL) as response:
        return response.status


async def test_idle_connections_that_were_closed_are_made_anew(serve, caplog):
    """With ``timeout 1``: the next question is answered, and nobody is warned."""
    await serve("--timeout", "1")
    async with session_on(serve.path) as (session, budget):
        statuses = []
        for _ in range(3):
            statuses.append(await status(session))
            await asyncio.sleep(IDLE)
        tokens = budget.tokens

    assert ([200] * 3, []) == (statuses, caplog.messages)
    # Each retry was paid for in Redis.
    assert 96.0 <= tokens < 97.0


async def test_server_that_is_started_again_is_not_away(serve, caplog):
    """The first question after it is answered."""
    await serve()
    async with session_on(serve.path) as (session, _):
        statuses = [await status(session)]
        await serve.kill()
        await serve()
        statuses.append(await status(session))

    assert ([200] * 2, []) == (statuses, caplog.messages)


async def test_question_whose_connection_was_killed_is_asked_again(serve, caplog):
    """On another one, in the same second."""
    await serve()
    async with (
        session_on(serve.path) as (session, _),
        contextlib.aclosing(Redis(unix_socket_path=serve.path)) as admin,
    ):
        await status(session)
        await admin.client_pause(30_000, all=False)
        asked = asyncio.create_task(status(session))
        await asyncio.sleep(0.2)
        await admin.client_kill_filter(_type="normal", skipme=True)
        await admin.client_unpause()

        assert 200 == await asked
    assert [] == caplog.messages
