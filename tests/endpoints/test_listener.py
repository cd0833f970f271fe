"""Listeners of groups of endpoints."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from group_servers import Servers, Told, dns, of

from aioretry_smithy import EndpointGroupListener

pytestmark = pytest.mark.usefixtures("shortest_ejections")


async def test_errors_of_a_listener_break_nothing(caplog):
    """They are logged; the call has its answer, and the endpoint is out."""

    class Broken(EndpointGroupListener):
        def on_endpoints_changed(self, group, endpoints):
            raise RuntimeError("changed")

        def on_ejected(self, group, endpoint, reason, until):
            raise RuntimeError("ejected")

        def on_returned(self, group, endpoint):
            raise RuntimeError("returned")

    servers = Servers(a=503)
    group = of("a", "b", listener=Broken())
    async with servers.session(group) as client:
        answers = [await servers.get(client) for _ in range(2)]
        servers.answers.clear()
        await asyncio.sleep(5.0)
        answers += [await servers.get(client) for _ in range(2)]

    assert [503, 200, 200, 200] == answers
    assert ["a", "b", "a", "a"] == servers.asked
    assert ["changed", "ejected", "returned"] == [
        str(record.exc_info[1]) for record in caplog.records
    ]


async def test_listener_of_each_group_hears_of_that():
    """Where one follows the other."""
    first, other, servers = Told(), Told(), Servers(a=503)
    group = of("a", listener=first).or_else(of("b", listener=other))
    async with servers.session(group) as client:
        for _ in range(2):
            await servers.get(client)

    assert [
        ("changed", "a"),
        ("ejected", "a", "consecutive_failures", 5.0),
    ] == first.events
    assert [("changed", "b")] == other.events


async def test_list_that_comes_to_nobody_is_told_to_nobody():
    """The group is gone when its query ends."""
    told = Told()
    group = dns(1.0, ["10.0.0.1"], listener=told)
    waiting = asyncio.create_task(group.when_ready())
    await asyncio.sleep(0.5)
    waiting.cancel()
    await asyncio.wait([waiting])
    reference = weakref.ref(group)
    del group, waiting
    gc.collect()
    assert None is reference()
    await asyncio.sleep(1.0)

    assert [] == told.events
