"""A resolver that takes its time, and the times of calls that wait for it."""

import asyncio

import aiohttp
import pytest
from aiohttp import TCPConnector
from chains import retrying

from aioretry_smithy import Backoff, RequestLog, RetryStrategy, SessionBuilder

WAIT = 0.1
"""Seconds that resolvers and servers take."""
SAFELY = RetryStrategy.failsafe(Backoff.without_delay())
each_chain = pytest.mark.parametrize(
    "decorators", [(), (retrying(SAFELY),)], ids=["plain", "retrying"]
)


class SlowResolver(aiohttp.abc.AbstractResolver):
    """Knows every host, after a while; fails first as often as it is told."""

    def __init__(self, seconds=WAIT, failures=0):
        self.seconds, self.failures, self.asked = seconds, failures, []

    async def resolve(self, host, port=0, family=0):
        self.asked.append(host)
        await asyncio.sleep(self.seconds)
        if len(self.asked) <= self.failures:
            raise OSError(None, "no such host")
        facts = {"hostname": host, "host": "127.0.0.1", "port": port}
        return [{**facts, "family": 2, "proto": 0, "flags": 0}]

    async def close(self):
        pass


def timed(*decorators, resolver=None, limit=100, **arguments):
    """Build a session whose logs say how long requests wait for a connection."""
    dns = arguments.pop("dns", {})
    connector = TCPConnector(limit=limit, resolver=resolver or SlowResolver(0.0), **dns)
    arguments.setdefault("connector", connector)
    builder = SessionBuilder(**arguments).connection_timings()
    for decorator in decorators:
        builder.decorator(decorator)
    return builder.build()


async def log_of(session, url, **options):
    """Make a call, read its body, and return its log, whatever comes of it."""
    try:
        async with session.get(url, **options) as response:
            await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        return RequestLog.of(error)
    return RequestLog.of(response)
