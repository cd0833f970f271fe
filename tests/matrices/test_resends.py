"""What breaks on a connection that was used before is sent again, within limits."""

from __future__ import annotations

import aiohttp
import pytest
from chains import connected
from pairs import each_pair
from parity import CHAINS, NEVER, RETRYING, SOON, each, retrying, stale_pool, status_of
from pool_server import BREAKS, RESET

from aioretry_smithy import (
    IDEMPOTENT_METHODS,
    RequestLog,
    RetryStrategy,
    is_unprocessed,
    request_options,
)

BROKEN = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)


# Which requests


HARMLESS = [(method, {}, None) for method in sorted(IDEMPOTENT_METHODS)]
HARMLESS += [("POST", {"Idempotency-Key": "7"}, None), ("POST", {}, True)]


@each(NEVER)
@pytest.mark.parametrize(("method", "headers", "idempotent"), HARMLESS)
async def test_harmless_request_is_sent_again(method, headers, idempotent, make):
    """Also where nothing is retried; by its method, a key or an option."""
    async with stale_pool(make) as (server, session):
        with request_options(idempotent=idempotent):
            call = session.request(method, "/x", data=b"body", headers=headers)
            status = await status_of(call)

    assert 200 == status
    assert [b"body", b"body"] == server.bodies


@each_pair(method=["POST", "PATCH", "LOCK"], how=BREAKS, chain=CHAINS)
async def test_other_request_is_not_sent_again(method, how, chain):
    """The server may have done what it asked for."""
    async with stale_pool(CHAINS[chain], how=BREAKS[how]) as (server, session):
        with pytest.raises(BROKEN):
            await session.request(method, "/x", data=b"once")

    assert [b"once"] == server.bodies


@each(CHAINS)
async def test_request_that_is_said_not_to_be_idempotent_is_sent_once(make):
    """A GET may do something."""
    async with stale_pool(make) as (server, session):
        with request_options(idempotent=False), pytest.raises(BROKEN):
            await session.get("/x")

    assert 1 == len(server.to("/x"))


@each(CHAINS)
async def test_request_is_sent_again_where_retries_are_off(make, monkeypatch):
    """No call of a suite is lost either that bare aiohttp would have saved."""
    monkeypatch.setenv("AIORETRY_SMITHY_NO_RETRIES", "1")
    async with stale_pool(make) as (server, session):
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 2 == len(server.to("/x"))


# How often


@each(NEVER)
@pytest.mark.parametrize(("stale", "expected"), [(1, 200), (3, 200), (4, None)])
async def test_request_is_sent_again_three_times_at_most(stale, expected, make):
    """Then the break is the outcome of the attempt."""
    async with stale_pool(make, stale) as (server, session):
        status = await status_of(session.get("/x"))

    assert expected == status
    assert min(4, stale + 1) == len(server.to("/x"))


@each(RETRYING)
@pytest.mark.parametrize(("stale", "counts"), [(5, "000011"), (10, "00001111222")])
async def test_stale_connections_do_not_cost_the_call(stale, counts, make):
    """Each attempt uses up four of them; the next goes on, with its number."""
    async with stale_pool(make, stale) as (server, session):
        status = await status_of(session.get("/x"))

    told = [request.header("armeria-retry-count") for request in server.to("/x")]
    assert 200 == status
    assert [*counts] == [count.decode() or "0" for count in told]


# Which connections


@each(NEVER)
async def test_fresh_connection_that_breaks_after_a_stale_one_counts(make):
    """A server that breaks all connections gets no third request."""
    async with stale_pool(make) as (server, session):
        server.scripts["/x"] = [RESET, RESET]
        with pytest.raises(BROKEN):
            await session.get("/x")

    assert [2, 1] == [request.place for request in server.to("/x")]


@each(NEVER)
async def test_connection_that_is_never_reused_cannot_be_stale(make):
    """``force_close`` makes each one fresh."""
    connector = aiohttp.TCPConnector(force_close=True)
    async with stale_pool(make, 2, connector=connector) as (server, session):
        server.scripts["/x"] = [RESET]
        status = await status_of(session.get("/x"))

    assert status is None
    assert 1 == len(server.to("/x"))


async def test_server_may_have_seen_what_is_refused_when_it_is_sent_again():
    """The first request arrived, so the call was not unprocessed."""
    strategy = RetryStrategy.on_unprocessed(SOON)
    make = lambda url: connected(url, retrying(strategy))  # noqa: E731
    async with stale_pool(make) as (server, session), server.closed_port():
        with pytest.raises(aiohttp.ClientConnectorError) as e:
            await session.get("/x")

    log = RequestLog.of(e.value)
    assert not is_unprocessed(e.value)
    assert ("no_retry", 2) == (log.stop_reason, log.total_attempts)
    assert log.sent
