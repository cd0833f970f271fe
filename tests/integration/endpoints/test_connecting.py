"""Endpoints to which no connection comes about in time."""

import asyncio

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver

from aioretry_smithy import EndpointGroup, RetryingClient, RetryStrategy, SessionBuilder


class HungResolver(AbstractResolver):
    """Never answers."""

    async def resolve(self, host, port=0, family=0):
        await asyncio.sleep(3600.0)

    async def close(self):
        """Nothing is open."""


async def reasons_after(*, response_timeout=None, attempt_timeout=None):
    """Return why endpoints are out after a call that never had a connection."""
    group = EndpointGroup.of("http://a.test", "http://b.test")
    once = RetryingClient.new_decorator(
        RetryStrategy.never(), attempt_timeout=attempt_timeout
    )
    connector = aiohttp.TCPConnector(resolver=HungResolver())
    builder = SessionBuilder(group, connector=connector).decorator(once)
    async with builder.response_timeout(response_timeout).build() as session:
        with pytest.raises(TimeoutError):
            await session.get("/orders")
    return {state.reason for state in group.states.values()}


async def test_attempt_without_a_connection_ejects_at_once():
    """An attempt has the time that an endpoint may take: nobody is there."""
    assert {None, "connect_failures"} == await reasons_after(attempt_timeout=0.05)


async def test_deadline_without_a_connection_ejects_nobody():
    """What is left of a call's time may be too short for any endpoint."""
    assert {None} == await reasons_after(response_timeout=0.05)
