"""Requests of given costs, and when each of them ends."""

from __future__ import annotations

import asyncio

import aiohttp
from chains import URL, now

from aioretry_smithy import RateLimit


def weight(ctx, request):
    """Return the weight that a request says it has."""
    return float(request.headers.get("weight", 1))


def tokens(rate=1.0, burst=10, **settings):
    return RateLimit(rate, burst=burst, cost=weight, **settings)


async def end_of(client, weight=1, url=URL):
    """Make a call; return its end and what it brought."""
    try:
        async with client.get(url, headers={"weight": f"{weight}"}) as response:
            return now(), response.status
    except (aiohttp.ClientError, TimeoutError) as error:
        return now(), type(error)


async def ends_of(client, *weights):
    return await asyncio.gather(*(end_of(client, each) for each in weights))


def level_of(limit):
    """Return the tokens of a limit; less than 0 is a debt."""
    bucket = limit._line.rule
    return bucket.burst - max(0.0, bucket._full_at - now()) / bucket._interval
