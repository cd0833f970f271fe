"""Limits learn from what is raised for a status as from an answer with it."""

from __future__ import annotations

from contextlib import suppress

import aiohttp
import pytest
from chains import URL, after, now, session
from raised import raised, raising

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RateLimit,
    RateLimitingClient,
)

limiting = ConcurrencyLimitingClient.new_decorator


async def limit_after(answer, *inside):
    """Return an adaptive limit after an answer of two seconds."""
    limit = ConcurrencyLimit.aimd(initial=10)
    async with session([after(2.0, answer)] * 5, *inside, limiting(limit)) as client:
        with suppress(aiohttp.ClientResponseError):
            await client.get(URL)
    assert 0 == limit.in_flight
    return limit.limit


@pytest.mark.parametrize(
    ("status", "expected"), [(404, 10), (500, 10), (429, 9), (503, 9)]
)
async def test_limit_adapts_to_a_raised_status(status, expected):
    """It is cut by overload alone, whichever way the server says so."""
    answer = status, {}, b""

    assert expected == await limit_after(answer) == await limit_after(answer, raising)


async def test_limit_grows_by_a_raised_answer():
    """A 404 is an answer of a server that has room."""
    limit = ConcurrencyLimit.aimd(initial=1)
    async with session([404, 404], raising, limiting(limit)) as client:
        with pytest.raises(aiohttp.ClientResponseError):
            await client.get(URL)

    assert 2 == limit.limit


async def test_refusal_of_a_proxy_is_no_drop():
    """It says nothing of the server's load."""
    cause = raised(503, kind=aiohttp.ClientHttpProxyError)

    assert 10 == await limit_after(cause)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"Retry-After": "8"}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "8"}),
    ],
)
async def test_rate_hears_of_a_raised_reset(status, headers):
    """Requests are kept back until then, and perhaps a little longer."""
    limit = RateLimit.from_headers()
    rate = RateLimitingClient.new_decorator(limit)
    async with session([(status, headers, b""), 200], raising, rate) as client:
        with pytest.raises(aiohttp.ClientResponseError):
            await client.get(URL)
        await client.get(URL)

    assert 8.0 <= now() <= 9.0
