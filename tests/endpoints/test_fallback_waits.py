"""Waits for the lists of two groups, of which one follows the other."""

from __future__ import annotations

import asyncio

import pytest
from chains import now
from group_servers import Servers, dns, of

from aioretry_smithy import (
    DynamicEndpointGroup,
    EmptyEndpointGroupError,
    Endpoint,
    EndpointGroup,
    EndpointSelectionTimeoutError,
)

pytestmark = pytest.mark.usefixtures("shortest_ejections")


async def test_first_list_is_awaited_up_to_the_time_for_that():
    """Once, not by each call anew; then the other group serves."""
    servers = Servers()
    group = dns(4.0, ["10.0.0.1"], selection_timeout=2.0).or_else(of("b"))
    async with servers.session(group) as client:
        await servers.get(client)
        first = now()
        await servers.get(client)
        second = now()
        await asyncio.sleep(3.0)
        await servers.get(client)

    assert (2.0, 2.0) == (first, second)
    assert ["b", "b", "10.0.0.1:80"] == servers.asked


async def test_empty_first_group_is_not_awaited():
    """It had endpoints, and has none now."""
    servers = Servers()
    first = DynamicEndpointGroup(["http://a"])
    async with servers.session(first.or_else(of("b"))) as client:
        await servers.get(client)
        first.set_endpoints([])
        await servers.get(client)
        first.set_endpoints(["http://a2"])
        await servers.get(client)

    assert ["a", "b", "a2"] == servers.asked
    assert 0.0 == now()


async def test_expired_list_of_the_first_group_is_awaited():
    """After a night without calls the first one does not go astray."""
    servers = Servers()
    group = dns(["10.0.0.1"], 0.5, ["10.0.0.2"], refresh=(1.0, 10.0)).or_else(of("b"))
    async with servers.session(group) as client:
        await servers.get(client)
        await asyncio.sleep(100.0)
        await servers.get(client)

    assert ["10.0.0.1:80", "10.0.0.2:80"] == servers.asked


async def test_waiting_call_goes_on_when_either_group_is_filled():
    """At once, in order."""
    servers = Servers()
    first, other = DynamicEndpointGroup(), DynamicEndpointGroup()
    async with servers.session(first.or_else(other)) as client:
        calls = [asyncio.create_task(servers.get(client)) for _ in range(3)]
        await asyncio.sleep(1.0)
        first.set_endpoints(["http://a"])
        assert [200] * 3 == await asyncio.gather(*calls)
        assert 1.0 == now()

    async with servers.session(
        DynamicEndpointGroup(selection_timeout=0.5).or_else(other)
    ) as client:
        call = asyncio.create_task(servers.get(client))
        await asyncio.sleep(2.0)
        other.set_endpoints(["http://b"])
        assert 200 == await call
        assert 3.0 == now()
    assert ["a", "a", "a", "b"] == servers.asked


async def test_call_waits_for_the_other_after_the_first():
    """Each list has its own time; the other is asked for its one only then."""
    servers = Servers()
    group = dns(9.0, ["10.0.0.1"], selection_timeout=1.0).or_else(
        dns(0.7, ["10.0.0.2"], name="other", selection_timeout=1.0)
    )
    async with servers.session(group) as client:
        assert 200 == await servers.get(client)
        assert 1.7 == now()
        await asyncio.sleep(9.0)

    assert ["10.0.0.2:80"] == servers.asked


async def test_call_for_which_no_group_has_an_endpoint_fails():
    """After its time, with what each group knows."""
    servers = Servers()
    group = dns(OSError("no route"), selection_timeout=1.0).or_else(
        DynamicEndpointGroup(selection_timeout=0.5, name="other")
    )
    async with servers.session(group) as client:
        error = await servers.get(client)

    assert isinstance(error, EndpointSelectionTimeoutError)
    assert (
        "endpoint group 'http://orders, else other': no endpoint within 1 s"
        " (OSError: no route)"
    ) == str(error)


async def test_call_fails_at_once_where_none_can_come():
    """All have a weight of 0."""
    none = EndpointGroup.of(Endpoint("http://a", weight=0.0))
    group = none.or_else(EndpointGroup.of(Endpoint("http://b", weight=0.0)))
    servers = Servers()
    async with servers.session(group) as client:
        error = await servers.get(client)

    assert isinstance(error, EmptyEndpointGroupError)
    assert {"a": "weight 0", "b": "weight 0"} == dict(error.endpoints)
    assert 0.0 == now()


async def test_list_too_old_serves_when_the_time_to_wait_is_over():
    """No other group is asked for its one meanwhile."""
    servers = Servers()
    group = dns(
        ["10.0.0.1"], 4.0, ["10.0.0.2"], refresh=(1.0, 10.0), selection_timeout=1.0
    ).or_else(DynamicEndpointGroup(selection_timeout=0.5))
    async with servers.session(group) as client:
        await servers.get(client)
        await asyncio.sleep(100.0)
        for waited in (1.0, 0.0):
            began = now()
            assert 200 == await servers.get(client)
            assert waited == now() - began
        await asyncio.sleep(9.0)


@pytest.mark.parametrize("follows", [False, True])
async def test_list_too_old_serves_until_the_query_has_ended(follows):
    """Calls that come later do not wait for their part."""
    servers = Servers()
    group = dns(["10.0.0.1"], 4.0, ["10.0.0.2"], refresh=(1.0, 10.0))
    if follows:
        group = group.or_else(EndpointGroup.of(Endpoint("http://b", weight=0.0)))
    async with servers.session(group) as client:
        await servers.get(client)
        await asyncio.sleep(100.0)
        times = []
        for _ in range(2):
            await servers.get(client)
            times.append(now())
        await asyncio.sleep(1.0)
        await servers.get(client)

    assert [103.2, 103.2] == times
    assert ["10.0.0.1:80", "10.0.0.1:80", "10.0.0.1:80", "10.0.0.2:80"] == servers.asked


async def test_call_waits_its_time_though_those_before_did():
    """Where there is still none."""
    servers = Servers()
    group = DynamicEndpointGroup().or_else(DynamicEndpointGroup())
    async with servers.session(group) as client:
        for _ in range(2):
            error = await servers.get(client)
            assert isinstance(error, EndpointSelectionTimeoutError)

    # The first one waits for both groups, one after the other.
    assert 3.2 + 3.2 + 3.2 == now()
