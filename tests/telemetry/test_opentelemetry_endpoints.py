"""Spans of requests to endpoints of a group, and metrics of such groups."""

import pytest
from group_servers import Servers, dns, of, retrying
from heard import Heard
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from aioretry_smithy import Endpoint, EndpointGroup, client_decorator
from aioretry_smithy.opentelemetry import EndpointGroupMetrics

NAME = "aioretry_smithy.endpoint_group.name"
STATE = "aioretry_smithy.endpoint.state"
REASON = "aioretry_smithy.ejection.reason"
ENDPOINT = "aioretry_smithy.endpoint"
ENDPOINTS, EJECTIONS = "aioretry_smithy.endpoints", "aioretry_smithy.ejections"


def of_peer(span):
    """Return what a span tells of where it went."""
    names = ENDPOINT, "network.peer.address", "network.peer.port", "server.address"
    return [span.attributes.get(name) for name in names]


async def test_span_of_an_attempt_names_the_endpoint():
    """And its address, from the start, by the names of the conventions."""
    sampled = []

    class Sampler:
        def should_sample(self, *args, **kwargs):
            sampled.append(kwargs.get("attributes") or args[4])
            return ALWAYS_ON.should_sample(*args, **kwargs)

        def get_description(self):
            return "Sampler"

    heard = Heard(sampler=Sampler())
    servers = Servers(**{"10.0.0.1:8080": 503})
    group = EndpointGroup.of(
        Endpoint("http://orders:8080", address="10.0.0.1"),
        Endpoint("http://orders:8080", address="fd00::1"),
        selection=of("a")._selection,
    )
    tracing = heard.decorator()
    async with servers.session(group, tracing, retrying(2), tracing) as client:
        await servers.get(client)

    assert [
        ["10.0.0.1:8080", "10.0.0.1", 8080, "orders"],
        ["[fd00::1]:8080", "fd00::1", 8080, "orders"],
    ] == [of_peer(span) for span in heard.attempts]
    assert [None, None, None, "orders"] == of_peer(heard.call)
    assert ["10.0.0.1", "fd00::1"] == [
        each["network.peer.address"]
        for each in sampled
        if "network.peer.address" in each
    ]


async def test_endpoint_with_a_name_of_its_own_has_no_known_address(heard):
    """Its span has its name, and no peer."""
    servers = Servers()
    async with servers.session(of("a/v1"), heard.decorator()) as client:
        await servers.get(client)
        await servers.get(client, "http://stranger/")

    assert [["a/v1", None, None, "a"], [None, None, None, "stranger"]] == [
        of_peer(span) for span in heard.attempts
    ]


async def test_request_that_a_decorator_sends_elsewhere_names_no_endpoint(heard):
    """It does not go there."""

    @client_decorator
    async def away(delegate, ctx, request):
        changed = request.replace(url="http://stranger/")
        return await delegate.execute(ctx, changed)

    servers = Servers()
    async with servers.session(of("a"), heard.decorator(), away) as client:
        await servers.get(client)

    (span,) = heard.attempts
    assert [None, None, None, "stranger"] == of_peer(span)


@pytest.mark.parametrize(
    ("group", "server"),
    [
        (lambda: dns(["10.0.0.1"]), {"server.address": "orders", "server.port": 80}),
        (
            lambda: EndpointGroup.dns("http://[fd00::1]:81"),
            {"server.address": "fd00::1", "server.port": 81},
        ),
        (lambda: of("a", "b", name="orders"), {"server.address": "orders"}),
    ],
)
async def test_metrics_know_the_service_alone(heard, group, server):
    """Of attempts and of calls, whatever endpoint; the span has the URL's."""
    servers, tracing = Servers(), heard.decorator()
    async with servers.session(group(), tracing, retrying(2), tracing) as client:
        await servers.get(client)

    for name in ("aioretry_smithy.call.duration", "aioretry_smithy.attempts"):
        ((attributes, _),) = heard.points(name)
        found = {key: attributes[key] for key in attributes if "server." in key}
        assert server == found
        assert ENDPOINT not in attributes
        assert "network.peer.address" not in attributes


async def test_metrics_of_other_hosts_have_these(heard):
    """Calls that pass the group."""
    servers = Servers()
    async with servers.session(of("a"), heard.decorator()) as client:
        await servers.get(client, "http://stranger:81/")

    ((attributes, _),) = heard.points("aioretry_smithy.attempts")
    assert ("stranger", 81) == (attributes["server.address"], attributes["server.port"])


def shown(heard):
    """Return the gauge by its attributes but the name, where it is not 0."""
    return {
        (attributes[NAME], attributes.get(ENDPOINT), attributes[STATE]): value
        for attributes, value in heard.points(ENDPOINTS)
        if value
    }


async def test_endpoints_are_told_from_one_another_on_request(heard):
    """By their texts, as many as there are names for."""
    servers = Servers(a=503)
    metrics = EndpointGroupMetrics(heard.meter_provider, by_endpoint=True)
    group = of("a", "b", name="orders", listener=metrics)
    other = of("c", name="other", listener=EndpointGroupMetrics(heard.meter_provider))
    async with servers.session(group.or_else(other)) as client:
        await servers.get(client)
        await servers.get(client, "http://c/")

    assert {
        ("orders", "a", "ejected"): 1,
        ("orders", "b", "ready"): 1,
        ("other", None, "ready"): 1,
    } == shown(heard)
    assert [
        ({NAME: "orders", ENDPOINT: "a", REASON: "consecutive_failures"}, 1)
    ] == heard.points(EJECTIONS)
