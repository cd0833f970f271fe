"""A proxy finds addresses by itself, so that nothing is rewritten for it.

In brackets: the case of ``research/endpoints.md``.
"""

from __future__ import annotations

import logging

import aiohttp
import pytest
from addressed import HOSTS, IN_ORDER, RETRIES, Servers, resolving, text_of
from chains import connected, log_of
from fault_server import FaultServer, answer
from yarl import URL

from aioretry_smithy import DynamicEndpointGroup, Endpoint, EndpointGroup, RequestLog

SERVICE = URL("http://orders.test:8080/")


@pytest.fixture
async def proxy(monkeypatch):
    """A proxy of plain HTTP, that answers by itself."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with FaultServer(then=answer(200, b"by proxy")) as server:
        yield server


def of_addresses(**settings):
    """Make a group of addresses behind the name."""
    return EndpointGroup.of(
        *(Endpoint(SERVICE, address=host) for host in HOSTS), **settings
    )


def dynamic(**settings):
    """Make a group of addresses that the program has set."""
    group = DynamicEndpointGroup(**settings)
    group.set_endpoints([Endpoint(SERVICE, address=host) for host in HOSTS])
    return group


def of_dns(**settings):
    """Make a group of the addresses of the name."""
    return EndpointGroup.dns(SERVICE, resolver=resolving(*HOSTS), **settings)


MAKERS = {"addresses": of_addresses, "dynamic": dynamic, "dns": of_dns}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def warnings_in(caplog):
    return [each.getMessage() for each in caplog.records if "proxy" in each.message]


# Where a proxy applies


async def of_request(group, proxy, monkeypatch):
    """Give the proxy with each request."""
    return connected(group, RETRIES), {"proxy": proxy.url}


async def of_session(group, proxy, monkeypatch):
    """Give the proxy to the session."""
    return connected(group, RETRIES, proxy=proxy.url), {}


async def of_environment(group, proxy, monkeypatch):
    """Give the proxy by the environment."""
    monkeypatch.setenv("http_proxy", str(proxy.url))
    return connected(group, RETRIES, trust_env=True), {}


WAYS = {"request": of_request, "session": of_session, "environment": of_environment}


@each
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_nothing_is_chosen_nor_rewritten(make, way, proxy, monkeypatch, caplog):
    """The proxy gets the name; one warning says so."""
    # Cases 40 and 41.
    group = make()
    session, options = await way(group, proxy, monkeypatch)
    async with session as client:
        for _ in range(3):
            async with client.get("orders?a=1", **options) as response:
                assert b"by proxy" == await response.read()
                log = RequestLog.of(response)

    assert [f"{SERVICE}orders?a=1"] * 3 == [each.target for each in proxy.requests]
    assert {b"orders.test:8080"} == {each.header("Host") for each in proxy.requests}
    assert None is log.endpoint
    assert SERVICE / "orders" % {"a": "1"} == response.url
    assert {0} == {0, *(state.in_flight for state in group.states.values())}
    (warning,) = warnings_in(caplog)
    assert f"endpoint group {group.name!r}: requests go through a proxy" in warning


async def test_name_is_not_asked_for(proxy):
    """Perhaps only the proxy knows it (40)."""
    resolver = resolving(*HOSTS)
    group = EndpointGroup.dns(SERVICE / "v1", resolver=resolver)
    async with connected(group, RETRIES) as client:
        await text_of(client, "orders", proxy=proxy.url)
        await text_of(client, SERVICE / "v1/orders", proxy=proxy.url)

    assert 0 == resolver.asked
    assert [f"{SERVICE}v1/orders"] * 2 == [each.target for each in proxy.requests]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no_proxy", "orders.test"),
        ("http_proxy", "https://127.0.0.1:1"),
        ("http_proxy", ""),
        ("https_proxy", "http://127.0.0.1:1"),
    ],
)
async def test_proxy_that_does_not_apply_changes_nothing(
    name, value, proxy, monkeypatch, caplog
):
    """By the environment, which excepts the service or has none that serves (41)."""
    caplog.set_level(logging.WARNING, "aioretry_smithy")
    if name == "no_proxy":
        monkeypatch.setenv("http_proxy", str(proxy.url))
    monkeypatch.setenv(name, value)
    async with Servers("127.0.0.1") as servers:
        monkeypatch.setenv(name, value)
        async with servers.session(trust_env=True) as client:
            assert "127.0.0.1" == await text_of(client)

    assert [] == proxy.requests
    assert [] == [each for each in warnings_in(caplog) if "endpoint group" in each]


async def test_servers_with_urls_of_their_own_are_balanced(proxy, caplog):
    """The proxy gets these URLs (40)."""
    urls = ["http://a.test", "http://b.test/v1"]
    group = EndpointGroup.of(*urls, selection=IN_ORDER)
    async with (
        connected(group, RETRIES) as client,
        client.get("/orders", proxy=proxy.url) as response,
    ):
        log = RequestLog.of(response)

    assert ["http://a.test/orders"] == [each.target for each in proxy.requests]
    assert "a.test" == str(log.endpoint)
    assert [] == warnings_in(caplog)


async def test_several_names_with_addresses_are_balanced_by_name(proxy, caplog):
    """Only that the addresses are not used (40)."""
    group = EndpointGroup.of(
        Endpoint("http://a.test", address="127.0.0.2"),
        Endpoint("http://b.test", address="127.0.0.3"),
        selection=IN_ORDER,
    )
    async with connected(group, RETRIES) as client:
        await text_of(client, proxy=proxy.url)

    assert ["http://a.test/orders"] == [each.target for each in proxy.requests]
    assert 1 == len(warnings_in(caplog))


async def test_middleware_of_the_caller_may_bring_a_proxy(proxy):
    """Then the URL is not rewritten either."""

    async def through_proxy(request, handler):
        request.update_proxy(proxy.url, None, None)
        return await handler(request)

    group = EndpointGroup.of(Endpoint("http://a.test", address="127.0.0.2"))
    async with connected(group, RETRIES, middlewares=[through_proxy]) as client:
        if not hasattr(aiohttp.ClientRequest, "update_proxy"):
            pytest.skip("aiohttp has no such method any more")
        await text_of(client)

    assert ["a.test"] == [each.header("Host").decode() for each in proxy.requests]


# Errors of proxies


@pytest.fixture
async def closed():
    """The URL of a port where nobody listens."""
    async with FaultServer() as server:
        return server.url


async def test_proxy_that_refuses_counts_for_no_endpoint(closed):
    """It is all the same which endpoint is asked for: there is no hurry, either."""
    group = EndpointGroup.of("http://a.test", "http://b.test", selection=IN_ORDER)
    log = await log_of(connected(group, RETRIES), "/orders", proxy=closed)

    assert 10 == log.total_attempts
    assert {"backoff"} == {each.delay_source for each in log.children[:-1]}
    states = group.states.values()
    assert [None, None] == [state.reason for state in states]
    assert [0.0, 0.0] == [state.penalty for state in states]
    assert [0, 0] == [state.in_flight for state in states]


async def test_tunnel_that_a_proxy_refuses_counts_for_no_endpoint(proxy):
    """Nor does an answer of the proxy in place of a tunnel."""
    proxy.then = answer(503)
    group = EndpointGroup.of("https://a.test", "https://b.test", selection=IN_ORDER)
    async with connected(group) as client:
        with pytest.raises(aiohttp.ClientHttpProxyError):
            await client.get("/orders", proxy=proxy.url)

    assert [None, None] == [state.reason for state in group.states.values()]
    assert [0.0, 0.0] == [state.penalty for state in group.states.values()]
