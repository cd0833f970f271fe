"""A server that restarts cuts the calls in flight, and none of them is lost."""

from __future__ import annotations

import asyncio

import pytest
from fault_server import OK, End, Fault, FaultServer, answer, response

from aioretry_smithy import SessionBuilder

CLOSING = Fault(send=(response(200, b"", "Connection: close"),), end=End.CLOSE)

broken = pytest.mark.parametrize("end", [End.CLOSE, End.RESET])


async def statuses(client, url, calls):
    """Make so many calls at once."""

    async def status():
        async with client.get(url) as response:
            return response.status

    return await asyncio.gather(*[status() for _ in range(calls)])


def new_session():
    return SessionBuilder.standard(logging=None).build()


@broken
@pytest.mark.parametrize("successes", [0, 1, 8, 9, 20])
async def test_nine_calls_on_new_connections_survive(end, successes):
    """They broke together, which is one failure to budget and circuit breaker."""
    restart = Fault(send=(0.05,), end=end)
    faults = [*[CLOSING] * successes, *[restart] * 9]
    async with FaultServer(faults) as server, new_session() as client:
        for _ in range(successes):
            await statuses(client, server.url, 1)

        assert [200] * 9 == await statuses(client, server.url, 9)


@broken
async def test_four_on_kept_connections_and_six_on_new_ones_survive(end):
    """In whatever order they break."""
    warm, restart = Fault(send=(0.05, OK)), Fault(send=(0.05,), end=end)
    faults = [*[warm] * 4, *[restart] * 10]
    async with FaultServer(faults) as server, new_session() as client:
        await statuses(client, server.url, 4)
        assert 4 == server.connected

        assert [200] * 10 == await statuses(client, server.url, 10)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("calls", [6, 10])
async def test_a_full_budget_pays_for_ten_that_are_throttled(status, calls):
    """The brake stays off and the circuit closed, since the server is well."""
    throttled = answer(status, b"", "Retry-After: 0")
    faults = [throttled] * calls
    async with FaultServer(faults) as server, new_session() as client:
        assert [200] * calls == await statuses(client, server.url, calls)
