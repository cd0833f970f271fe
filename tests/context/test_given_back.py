"""Places come back, whatever goes wrong once something was returned."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from chains import URL

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    client_decorator,
    decorate,
    new_response,
)


@pytest.mark.parametrize("made", [lambda: None, asyncio.Future], ids=["None", "future"])
async def test_place_is_left_after_what_is_no_response(made):
    """A mock of the session's method returns nothing that could be closed."""
    limit = ConcurrencyLimit.fixed(1)

    async def send(*args, **options):
        return made()

    async with aiohttp.ClientSession() as client:
        client._request = send
        decorate(client, ConcurrencyLimitingClient.new_decorator(limit))
        with pytest.raises(TypeError, match="expected"):
            await client.get(URL)

    assert 0 == limit.in_flight


async def test_place_is_left_where_closing_fails():
    """The error of a strategy goes to the caller, whatever closing raises."""
    limit = ConcurrencyLimit.fixed(1)

    class Broken(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            raise LookupError

    def refuse():
        raise ValueError

    @client_decorator
    async def answer(delegate, ctx, request):
        response = new_response(request, 200)
        response.close = refuse
        return response

    async with aiohttp.ClientSession() as client:
        decorate(
            client,
            answer,
            CircuitBreakerClient.new_decorator(CircuitBreaker("orders"), Broken()),
            ConcurrencyLimitingClient.new_decorator(limit),
        )
        with pytest.raises(LookupError):
            await client.get(URL)

    assert 0 == limit.in_flight
