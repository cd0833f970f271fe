"""A budget pays little where a real server did no work, and in full where it did."""

from __future__ import annotations

from contextlib import suppress

import aiohttp
import pytest
from chains import SAFELY, connected, retrying
from fault_server import End, Fault, FaultServer, response

from aioretry_smithy import RetryBudget


async def left(fault, **settings):
    """Return the tokens that are left when a call was retried, with success."""
    budget = RetryBudget(deposit=0.0, unserved_cost=0.1)
    retry = retrying(SAFELY, limiter=budget, **settings)
    async with (
        FaultServer([fault]) as server,
        connected(server.url, retry) as client,
        client.get("/") as answer,
    ):
        assert 200 == answer.status
    return budget.tokens


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "expected"), [(0.2, 9.9), (1.5, 9.0)])
async def test_a_reset(seconds, expected):
    """Soon after the request, or when the server had worked on it."""
    assert expected == await left(Fault(send=(seconds,), end=End.RESET))


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "expected"), [(0.0, 9.9), (1.2, 9.0)])
async def test_a_503(seconds, expected):
    """At once, or late."""
    assert expected == await left(Fault(send=(seconds, response(503))))


async def test_a_body_that_is_cut_costs_a_token():
    """The answer had begun."""
    half = response(200, b"orders")[:-3]

    assert 9.0 == await left(Fault(send=(half,), end=End.RESET), buffer_response=True)


async def test_refused_connections():
    """Nobody listens there any more: of two calls, eight retries and ten failures."""
    async with FaultServer() as gone:
        url = gone.url
    budget = RetryBudget(deposit=0.0, unserved_cost=0.1)
    retry = retrying(0.05, limiter=budget, max_total_attempts=5)
    async with connected(url, retry) as client:
        for _ in range(2):
            with suppress(aiohttp.ClientConnectorError):
                await client.post("/")

    assert (9.2, 1) == (budget.tokens, budget.failures_in_a_row)
