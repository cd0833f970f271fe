"""Several servers on real sockets: one dies and comes back, or leaves the list."""

import asyncio

import pytest
from live_replicas import Replica, at_a_rate, free_port, running

from aioretry_smithy import (
    EndpointGroup,
    RequestLog,
    RetryConfig,
    RetryingClient,
    SessionBuilder,
    capture_logs,
)

CALLS_A_SECOND = 500


@pytest.mark.long
async def test_nobody_notices_that_a_replica_dies_and_comes_back():
    """With 500 calls a second no GET fails, and few meet the dead one."""
    replicas = [Replica() for _ in range(3)]
    async with running(*replicas):
        group = EndpointGroup.of(*(each.url for each in replicas))
        retrying = RetryingClient.new_decorator(RetryConfig.standard())
        builder = SessionBuilder(group).decorator(retrying)
        async with builder.response_timeout(10.0).build() as session:
            with capture_logs() as logs:

                async def call():
                    async with session.get("/orders") as response:
                        assert 200 == response.status
                        await response.read()

                async def trouble():
                    await asyncio.sleep(2.0)
                    await replicas[1].kill()
                    await asyncio.sleep(4.0)
                    await replicas[1].start()

                troubling = asyncio.create_task(trouble())
                failures = await at_a_rate(CALLS_A_SECOND, 10.0, call)
                await troubling

    refused = [
        attempt
        for log in logs
        for attempt in log.children
        if attempt.response_cause.__class__.__name__ == "ClientConnectorError"
    ]
    known = min(each.started + (each.duration or 0.0) for each in refused)
    # A busy machine may have several under way until the first refusal is heard of.
    later = [each for each in refused if each.started > known]
    assert [] == [RequestLog.of(each).render() for each in failures]
    assert CALLS_A_SECOND < len(logs)
    assert len(later) <= 3
    assert min(each.requests for each in replicas) > 100


@pytest.mark.long
async def test_list_that_changes_under_load_loses_no_call():
    """With 500 calls a second; what was removed gets nothing after the next query."""
    addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    port = free_port(*addresses)
    replicas = {each: Replica(each, port) for each in addresses}
    listed = addresses[:2]

    async def resolver(host, port):
        return [(each, 1.0) for each in listed]

    async with running(*replicas.values()):
        group = EndpointGroup.dns(f"http://orders.test:{port}", resolver=resolver)
        retrying = RetryingClient.new_decorator(RetryConfig.standard())
        builder = SessionBuilder(group).decorator(retrying)
        async with builder.response_timeout(10.0).build() as session:

            async def call():
                async with session.get("/orders") as response:
                    assert 200 == response.status
                    await response.read()

            async def change():
                await asyncio.sleep(2.0)
                listed[:] = addresses[1:]
                await asyncio.sleep(1.5)
                return replicas[addresses[0]].requests

            changing = asyncio.create_task(change())
            failures = await at_a_rate(CALLS_A_SECOND, 6.0, call)
            by_then = await changing

    assert [] == [RequestLog.of(each).render() for each in failures]
    assert 100 < by_then == replicas[addresses[0]].requests
    assert min(each.requests for each in replicas.values()) > 100
