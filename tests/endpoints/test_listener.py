"""Listeners of groups of endpoints."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from chains import bad_argument, refused
from group_servers import Servers, Told, dns, of

from aioretry_smithy import (
    DynamicEndpointGroup,
    EndpointGroup,
    EndpointGroupListener,
    OutlierDetection,
)

pytestmark = pytest.mark.usefixtures("shortest_ejections")


async def test_listener_hears_of_ejections_and_returns():
    """Each time, with the new time after a failed trial."""
    told, servers = Told(), Servers(a=503)
    group = of("a", "b", listener=told)
    async with servers.session(group) as client:
        await servers.get(client)
        await asyncio.sleep(5.0)
        await servers.get(client)
        await asyncio.sleep(10.0)
        servers.answers.clear()
        await servers.get(client)

    assert [
        ("changed", "a", "b"),
        ("ejected", "a", "consecutive_failures", 5.0),
        ("ejected", "a", "trial_failed", 15.0),
        ("returned", "a"),
    ] == told.events


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (refused(), "connect_failures"),
        (503, "failure_rate"),
        ((503, {"Retry-After": "7"}, ""), "retry_after"),
    ],
)
async def test_listener_hears_why(answer, reason):
    """Of a connection, a rate, or a server that asks for it."""
    told, servers = Told(), Servers(a=answer)
    detection = OutlierDetection(
        consecutive_failures=9, minimum_request_threshold=2, failure_rate_threshold=0.1
    )
    async with servers.session(
        of("a", "b", listener=told, outlier_detection=detection)
    ) as client:
        for _ in range(2):
            await servers.get(client)

    assert ["changed", "ejected"] == [event for event, *_ in told.events]
    assert reason == told.events[1][2]


async def test_listener_hears_of_changes_alone():
    """A list that says the same is none."""
    told = Told()
    group = DynamicEndpointGroup(["http://a"], listener=told)
    await group.when_ready()
    for hosts in ("a", "ab", "ab", "ba", ""):
        group.set_endpoints([f"http://{host}" for host in hosts])

    assert [
        ("changed", "a"),
        ("changed", "a", "b"),
        ("changed", "b", "a"),
        ("changed",),
    ] == told.events


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


async def test_listener_that_overrides_nothing_hears_all():
    """It does nothing."""
    servers = Servers(a=503)
    async with servers.session(
        of("a", "b", listener=EndpointGroupListener())
    ) as client:
        await servers.get(client)
        servers.answers.clear()
        await asyncio.sleep(5.0)
        assert 200 == await servers.get(client)


async def test_listener_may_use_the_group():
    """What comes of that is told afterwards."""
    seen = []

    class Using(EndpointGroupListener):
        def on_endpoints_changed(self, group, endpoints):
            seen.append((len(group.endpoints), len(endpoints)))
            if len(endpoints) == 1:
                group.set_endpoints(["http://a", "http://b"])

    group = DynamicEndpointGroup(["http://a"], listener=Using())
    await group.when_ready()

    assert [(1, 1), (2, 2)] == seen


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


def test_listener_is_one():
    """Anything else is refused."""
    with bad_argument("listener", 7, "an EndpointGroupListener, or None"):
        EndpointGroup.of("http://a", listener=7)
