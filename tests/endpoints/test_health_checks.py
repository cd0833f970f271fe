"""Endpoints that are asked for their health."""

import asyncio
import math

import aiohttp
import pytest
from chains import bad_argument, now, refused
from group_servers import Servers, Told, dns, of, retrying

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    EndpointSelectionTimeoutError,
    HealthCheckedEndpointGroup,
    RequestLog,
    request_options,
)

pytestmark = pytest.mark.usefixtures("no_jitter")

NO_SESSION = "an aiohttp.ClientSession or None"
PATH = "a path, such as '/healthz'"


async def test_endpoint_is_asked_again_and_again(health):
    """Left alone from the first bad answer on, and used again from the first good."""
    servers = Servers()
    group = HealthCheckedEndpointGroup(of("a", "b"), "/healthz", interval=2.0)
    async with group, servers.session(group) as client:
        for answer in (200, 500, 404, 301, TimeoutError(), OSError(), 204):
            health.answers["a"] = answer
            await asyncio.sleep(1.0)
            await servers.get(client)
            await asyncio.sleep(1.0)

    assert ["a", "b", "b", "b", "b", "b", "a"] == servers.asked
    assert [2.0 * number for number in range(8)] == health.times("a")


async def test_check_that_takes_too_long_has_failed(health):
    """After the time for it."""
    health.answers["a"] = math.inf
    group = HealthCheckedEndpointGroup(of("a", "b"), "/healthz", timeout=0.25)
    async with group:
        assert ["a", "b"] == [*map(str, await group.when_ready())]
        assert 0.25 == now()
        assert ["unhealthy", None] == [each.reason for each in group.states.values()]


async def test_healthy_endpoint_that_is_out_serves_before_those_that_are_not(health):
    """It is the better guess."""
    servers = Servers(a=503)
    group = HealthCheckedEndpointGroup(of("a", "b"), "/healthz", interval=1.0)
    async with group, servers.session(group) as client:
        await servers.get(client)
        health.answers["b"] = 503
        await asyncio.sleep(1.5)
        states = dict(group.states)
        assert ["consecutive_failures", "unhealthy"] == [
            each.reason for each in states.values()
        ]
        await servers.get(client)

    assert ["a", "a"] == servers.asked


async def test_unhealthy_endpoints_count_for_the_floor(health):
    """The last one that is well is not ejected."""
    servers = Servers(a=503)
    health.answers["b"] = 503
    group = HealthCheckedEndpointGroup(of("a", "b"), "/healthz")
    async with group, servers.session(group) as client:
        for _ in range(2):
            await servers.get(client)
        (first, _) = group.states.values()

    assert ["a", "a"] == servers.asked
    assert None is first.reason


async def test_endpoint_that_is_unhealthy_is_not_tried(health, monkeypatch):
    """Though it is time for that; it is once it is healthy."""
    monkeypatch.setattr("aioretry_smithy._endpoints.ejection.chance", lambda: 0.0)
    servers = Servers(a=503)
    told = Told()
    inner = of("a", "b", listener=told)
    group = HealthCheckedEndpointGroup(inner, "/healthz", interval=1.0)
    async with group, servers.session(group) as client:
        await servers.get(client)
        health.answers["a"] = 503
        await asyncio.sleep(6.5)
        await servers.get(client)
        health.answers["a"] = servers.answers["a"] = 200
        await asyncio.sleep(1.0)
        await servers.get(client)
        await servers.get(client)

    assert ["a", "b", "a", "a"] == servers.asked
    assert [
        ("changed", "a", "b"),
        ("ejected", "a", "consecutive_failures", 5.0),
        ("ejected", "a", "unhealthy", math.inf),
        ("returned", "a"),
    ] == told.events


async def test_listener_hears_of_health(health):
    """As of ejections; also of an endpoint that comes back to both."""
    told = Told()
    servers = Servers()
    group = HealthCheckedEndpointGroup(
        of("a", "b", listener=told), "/healthz", interval=1.0
    )
    async with group, servers.session(group) as client:
        for answer in (503, 503, 200, 200):
            health.answers["a"] = answer
            await servers.get(client)
            await asyncio.sleep(1.0)

    assert [
        ("changed", "a", "b"),
        ("ejected", "a", "unhealthy", math.inf),
        ("returned", "a"),
    ] == told.events


async def test_set_aside_endpoint_returns_to_be_unhealthy(health):
    """Which is told when it is well."""
    told = Told()
    servers = Servers(a=(503, {"Retry-After": "2"}, ""))
    group = HealthCheckedEndpointGroup(
        of("a", "b", listener=told), "/healthz", interval=1.0
    )
    async with group, servers.session(group) as client:
        await servers.get(client)
        health.answers["a"] = 503
        await asyncio.sleep(2.5)
        await servers.get(client)
        assert "unhealthy" == group.states[Endpoint("http://a")].reason
        health.answers["a"] = 200
        await asyncio.sleep(1.0)

    assert [
        ("ejected", "a", "retry_after", 2.0),
        ("ejected", "a", "unhealthy", math.inf),
        ("returned", "a"),
    ] == told.events[1:]


async def test_new_endpoint_is_asked_at_once(health):
    """Before it gets a request."""
    servers = Servers()
    health.takes = 0.1
    inner = DynamicEndpointGroup(["http://a"])
    group = HealthCheckedEndpointGroup(inner, "/healthz")
    async with group, servers.session(group) as client:
        await servers.get(client)
        await asyncio.sleep(0.9)
        inner.set_endpoints(["http://b"])
        assert not inner._roster.well
        await servers.get(client)

    assert ["a", "b"] == servers.asked
    assert [0.0] == health.times("a")
    assert [1.0] == health.times("b")
    assert 1.1 == pytest.approx(now())


async def test_endpoint_that_returns_is_asked_anew(health):
    """What was known of its health is old."""
    inner = DynamicEndpointGroup(["http://a", "http://b"])
    group = HealthCheckedEndpointGroup(inner, "/healthz")
    health.answers["b"] = 503
    async with group:
        await group.when_ready()
        inner.set_endpoints(["http://a"])
        inner.set_endpoints(["http://a", "http://b"])
        assert [None, None] == [each.reason for each in group.states.values()]


async def test_list_that_comes_late_is_asked(health):
    """At once; calls wait for both."""
    servers = Servers()
    health.takes = 0.5
    inner = dns(1.0, ["10.0.0.1"])
    group = HealthCheckedEndpointGroup(inner, "/healthz")
    async with group, servers.session(group) as client:
        await servers.get(client)

    assert 1.5 == now()
    assert [(1.0, "GET", "http://orders/healthz")] == health.asked
    (state,) = group.states.values()
    assert (state.middleware,) == health.options[0]["middlewares"]


async def test_call_for_which_no_check_is_over_in_time_fails(health):
    """With the time that it waited."""
    servers = Servers()
    health.answers["a"] = math.inf
    inner = of("a", selection_timeout=1.0)
    group = HealthCheckedEndpointGroup(inner, "/healthz", timeout=9.0)
    async with group, servers.session(group) as client:
        error = await servers.get(client)
        with pytest.raises(EndpointSelectionTimeoutError):
            await group.when_ready(1.0)

    assert isinstance(error, EndpointSelectionTimeoutError)
    assert 2.0 == now()


async def test_weight_of_0_is_not_asked(health):
    """It gets nothing in any case."""
    inner = EndpointGroup.of(Endpoint("http://a", weight=0.0), "http://b")
    async with HealthCheckedEndpointGroup(inner, "/healthz") as group:
        await group.when_ready()

    assert [] == health.times("a")
    assert [0.0] == health.times("b")


def bad_certificate():
    key = aiohttp.client_reqrep.ConnectionKey("a", 443, True, True, None, None, None)
    return aiohttp.ClientConnectorCertificateError(key, Exception("self-signed"))


async def test_certificates_that_nobody_trusts_are_warned_of_once(health, caplog):
    """Only where it is those of all."""
    group = HealthCheckedEndpointGroup(of("a", "b"), "/healthz", interval=1.0)
    async with group:
        health.answers["a"] = bad_certificate()
        await asyncio.sleep(0.5)
        assert [] == caplog.messages
        health.answers["b"] = bad_certificate()
        await asyncio.sleep(3.0)

    (message,) = caplog.messages
    assert message.startswith(
        "endpoint group 'http://a, http://b': all checks fail by certificate, the first"
        " with: Cannot connect to host a:443 ssl:True"
    )
    assert message.endswith("; give them a session= that trusts it")


async def test_unhealthy_group_is_followed(health):
    """By one that is not checked; and it may be both that are."""
    servers = Servers()
    health.answers = {"a": 503, "b": 503}
    checked = HealthCheckedEndpointGroup(of("a", "b"), "/healthz", interval=1.0)
    group = checked.or_else(of("c"))
    async with checked, servers.session(group) as client:
        await servers.get(client)
        health.answers["b"] = 200
        await asyncio.sleep(1.5)
        await servers.get(client)
    async with (
        HealthCheckedEndpointGroup(of("a").or_else(of("b", "c")), "/healthz") as both,
        servers.session(both) as client,
    ):
        await servers.get(client)
        assert ["a", "b", "c"] == [*map(str, both.endpoints)]

    assert ["c", "b", "b"] == servers.asked


async def test_relative_url_is_shown_as_that_of_the_group(health):
    """Absolute ones are its own likewise."""
    servers = Servers()
    inner = of("a")
    async with (
        HealthCheckedEndpointGroup(inner, "/healthz") as group,
        servers.session(group) as client,
        client.get("http://a/x") as response,
    ):
        log = RequestLog.of(response)

    assert "a" == log.endpoint
    assert inner.placeholder == group.placeholder
    assert inner.name == group.name


async def test_path_joins_as_calls_do(health):
    """After the path of the endpoint."""
    async with HealthCheckedEndpointGroup(of("a/v1"), "/healthz?deep=1") as group:
        await group.when_ready()

    assert [(0.0, "GET", "http://a/v1/healthz?deep=1")] == health.asked


async def test_interval_has_jitter(health, monkeypatch):
    """20 % more or less."""
    draws = iter([0.0, 1.0, 0.5])
    monkeypatch.setattr("aioretry_smithy._endpoints.health.chance", lambda: next(draws))
    async with HealthCheckedEndpointGroup(of("a"), "/healthz", interval=10.0):
        await asyncio.sleep(25.0)

    assert [0.0, 8.0, 20.0] == health.times("a")


def test_group_describes_itself():
    """With what it asks for."""
    inner = of("a")
    group = HealthCheckedEndpointGroup(inner, "/healthz")

    assert (
        f"HealthCheckedEndpointGroup({inner!r}, '/healthz', interval=3.0, timeout=1.0,"
        " method='GET')"
    ) == group.describe()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("path", "", PATH),
        ("path", 7, PATH),
        ("interval", 0.0, "finite and > 0"),
        ("timeout", math.inf, "finite and > 0"),
        ("method", "", "a method, such as 'GET'"),
        ("method", 7, "a method, such as 'GET'"),
        ("session", 7, NO_SESSION),
        ("group", 7, "an EndpointGroup"),
    ],
)
def test_bad_arguments_are_refused(name, value, expected):
    """Each with what to write."""
    arguments = {"group": of("a"), "path": "/healthz", name: value}
    with bad_argument(name, value, expected):
        HealthCheckedEndpointGroup(**arguments)


def test_path_is_no_url():
    """Each endpoint has its own."""
    with pytest.raises(ValueError, match="path: "):
        HealthCheckedEndpointGroup(of("a"), "http://a/healthz")


async def test_pin_waits_for_the_list_alone(health):
    """It asks for no health, but for the block."""
    servers = Servers()
    health.answers["orders"] = math.inf
    inner = dns(1.0, ["10.0.0.1"])
    group = HealthCheckedEndpointGroup(inner, "/healthz", timeout=9.0)
    async with servers.session(group) as client:
        with request_options(endpoint="http://10.0.0.1"):
            async with group:
                assert 200 == await servers.get(client)
            assert RuntimeError is type(await servers.get(client))

    assert 1.0 == now()


async def test_endpoint_that_leaves_while_it_is_asked_is_nobodys_business(health):
    """No listener hears of its health."""
    told = Told()
    health.answers["b"] = math.inf
    inner = DynamicEndpointGroup(["http://a", "http://b"], listener=told)
    async with HealthCheckedEndpointGroup(inner, "/healthz") as group:
        await asyncio.sleep(0.5)
        inner.set_endpoints(["http://a"])
        await asyncio.sleep(1.0)
        assert ["a"] == [*map(str, await group.when_ready())]

    assert [("changed", "a", "b"), ("changed", "a")] == told.events


async def test_proxy_chooses_among_addresses(health, caplog):
    """As with a group that is not checked."""
    servers = Servers()
    async with (
        HealthCheckedEndpointGroup(dns(["10.0.0.1"]), "/healthz") as group,
        servers.session(group) as client,
    ):
        await servers.get(client, proxy="http://proxy")

    assert ["orders"] == servers.asked
    assert 1 == len(caplog.messages)


async def test_trial_waits_for_the_first_round_too(health):
    """Nothing is sent to an endpoint that was not asked."""
    servers = Servers(a=refused())
    inner = of("a", "b")
    async with servers.session(inner, retrying()) as client:
        await servers.get(client)
    await asyncio.sleep(9.0)
    servers.taken()
    health.takes = 0.5
    group = HealthCheckedEndpointGroup(inner, "/healthz")
    async with group, servers.session(group) as client:
        begun = now()
        await servers.get(client)

    assert (["a"], 0.5) == (servers.taken(), now() - begun)


def test_description_hides_what_is_secret():
    """The path may have a query."""
    group = HealthCheckedEndpointGroup(of("a"), "/healthz?token=12345")

    assert "'/healthz?token=****', interval=3.0" in group.describe()
