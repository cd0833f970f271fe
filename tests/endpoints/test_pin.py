"""Calls of a block of code that go to one endpoint."""

import asyncio

import pytest
from chains import now
from group_servers import Servers, dns, of
from yarl import URL

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    EndpointGroupError,
    HedgingClient,
    request_options,
)


@pytest.mark.parametrize("pin", ["http://b", URL("http://B:80/"), Endpoint("http://b")])
async def test_calls_of_a_block_go_to_one_endpoint(pin):
    """Named by its URL, or as it is."""
    servers = Servers()
    async with servers.session(of("a", "b")) as client:
        with request_options(endpoint=pin):
            for _ in range(2):
                await servers.get(client)
        await servers.get(client)

    assert ["b", "b", "a"] == servers.asked


async def test_hedges_stay_on_it():
    """As retries do."""
    servers = Servers()

    async def slow(ctx, request):
        await asyncio.sleep(1.0)
        return 200

    servers.answers["a"] = slow
    group = of("a", "b")
    async with servers.session(group, HedgingClient.new_decorator(0.25)) as client:
        with request_options(endpoint="http://a"):
            await servers.get(client)

    assert ["a", "a"] == servers.asked
    assert [0, 0] == [each.in_flight for each in group.states.values()]


async def test_inner_blocks_keep_it():
    """Unless they name another one."""
    servers = Servers()
    async with servers.session(of("a", "b")) as client:
        with request_options(endpoint="http://b"):
            with request_options(response_timeout=3.0):
                await servers.get(client)
            with request_options(endpoint="http://a"):
                await servers.get(client)
            await servers.get(client)

    assert ["b", "a", "b"] == servers.asked


async def test_other_sessions_ignore_it():
    """Those without a group, and URLs of other origins."""
    servers = Servers()
    async with (
        servers.session("http://plain") as plain,
        servers.session(of("a", "b")) as client,
    ):
        with request_options(endpoint="http://b"):
            await servers.get(plain)
            await servers.get(client, "http://stranger/")

    assert ["plain", "stranger"] == servers.asked


async def test_endpoint_behind_a_name_is_named_by_its_address():
    """As a URL, or as logs show it with the scheme before it."""
    servers = Servers()
    group = EndpointGroup.of(
        Endpoint("http://orders:81", address="10.0.0.1"),
        Endpoint("http://orders:81", address="10.0.0.2"),
        Endpoint("http://orders:81", address="fd00::1"),
    )
    pins = (
        "http://10.0.0.2:81",
        "http://[fd00::1]:81",
        Endpoint("http://orders:81", address="10.0.0.1"),
    )
    wrong = (
        "http://10.0.0.2:82",
        "https://10.0.0.2:81",
        "http://orders:81",
        Endpoint("http://orders:81", address="10.0.0.9"),
    )
    async with servers.session(group) as client:
        for pin in pins:
            with request_options(endpoint=pin):
                assert 200 == await servers.get(client)
        for pin in wrong:
            with request_options(endpoint=pin):
                assert ValueError is type(await servers.get(client))

    assert ["10.0.0.2:81", "[fd00::1]:81", "10.0.0.1:81"] == servers.asked


async def test_endpoint_that_has_left_is_no_mistake():
    """Nothing is sent, and nothing is sent elsewhere."""
    servers = Servers()
    group = DynamicEndpointGroup(["http://a", "http://b"])
    async with servers.session(group) as client:
        with request_options(endpoint="http://b"):
            await servers.get(client)
            group.set_endpoints(["http://a"])
            error = await servers.get(client)

    assert EndpointGroupError is type(error)
    assert (
        "endpoint group '" + group.name + "': request_options(endpoint='b'), which has"
        " left: a (well)"
    ) == str(error)
    assert ["b"] == servers.asked


async def test_endpoint_of_any_of_several_groups_may_be_named():
    """Also of one that does not serve now, and that has no list yet."""
    servers = Servers()
    group = of("a").or_else(dns(1.0, ["10.0.0.1"]))
    async with servers.session(group) as client:
        for pin in ("http://a", "http://10.0.0.1", "http://c"):
            with request_options(endpoint=pin):
                await servers.get(client)

    assert ["a", "10.0.0.1:80"] == servers.asked
    assert 1.0 == now()


async def test_query_that_is_due_is_begun():
    """A pin is a use of the list as well."""
    servers = Servers()
    async with servers.session(dns(["10.0.0.1"], ["10.0.0.2"])) as client:
        with request_options(endpoint="http://10.0.0.1"):
            await servers.get(client)
            await asyncio.sleep(11.0)
            await servers.get(client)
            await asyncio.sleep(1.0)
            error = await servers.get(client)

    assert EndpointGroupError is type(error)


async def test_group_without_endpoints_has_none_to_name():
    """It had one, and has none now."""
    servers = Servers()
    group = DynamicEndpointGroup(["http://a"], name="orders")
    async with servers.session(group) as client:
        await servers.get(client)
        group.set_endpoints([])
        with request_options(endpoint="http://c"):
            error = await servers.get(client)

    assert (
        "endpoint: Endpoint('http://c') (expected: an endpoint of the group 'orders':"
        " it has none)"
    ) == str(error)


@pytest.mark.parametrize(
    ("pin", "text"),
    [
        ("b.example", "expected: with a scheme, such as 'http://b.example'"),
        (7, "expected: a str or a yarl.URL"),
    ],
)
def test_what_is_no_endpoint_is_refused(pin, text):
    """Where the block is made."""
    with pytest.raises(ValueError, match=rf"\Aendpoint: .*{text}"):
        request_options(endpoint=pin)
