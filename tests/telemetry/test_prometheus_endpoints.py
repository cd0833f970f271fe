"""Groups of endpoints, as Prometheus reads them."""

import gc

import pytest
from group_servers import Servers, dns, of, retrying

from aioretry_smithy import DynamicEndpointGroup, Endpoint
from aioretry_smithy.prometheus import (
    EndpointGroupMetrics,
    MetricsClient,
    PrometheusMetrics,
)

REASONS = {
    "connect_failures",
    "consecutive_failures",
    "failure_rate",
    "trial_failed",
    "retry_after",
    "circuit_open",
    "unhealthy",
}


async def test_groups_are_measured(registry, values):
    """From their first use on: how many are well, how often each was out."""
    servers = Servers(a=503)
    metrics = EndpointGroupMetrics(registry)
    group = of("a", "b", "c", name="orders", listener=metrics)
    assert {} == values("endpoints") | values("ejections_total")
    async with servers.session(group) as client:
        await servers.get(client)

    assert {
        ("orders", "ready"): 2,
        ("orders", "ejected"): 1,
        ("orders", "unhealthy"): 0,
    } == values("endpoints")
    ejections = values("ejections_total")
    assert {("orders", reason) for reason in REASONS} == {*ejections}
    assert 1 == ejections.pop(("orders", "consecutive_failures"))
    assert not any(ejections.values())


async def test_endpoints_are_told_from_one_another_on_request(registry, values):
    """By a label more."""
    servers = Servers(a=503)
    metrics = EndpointGroupMetrics(registry, by_endpoint=True)
    group = of("a", "b", name="orders", listener=metrics)
    async with servers.session(group) as client:
        await servers.get(client)

    assert {
        ("orders", "a", "ready"): 0,
        ("orders", "a", "ejected"): 1,
        ("orders", "a", "unhealthy"): 0,
        ("orders", "b", "ready"): 1,
        ("orders", "b", "ejected"): 0,
        ("orders", "b", "unhealthy"): 0,
    } == values("endpoints")
    assert {("orders", "a", "consecutive_failures"): 1} == values("ejections_total")


async def test_endpoints_that_look_alike_are_one_series(registry, values):
    """Prometheus refuses a series that is there twice."""
    metrics = EndpointGroupMetrics(registry, by_endpoint=True)
    endpoints = [Endpoint(f"http://a/v{n}", address="10.0.0.1") for n in (1, 2)]
    group = DynamicEndpointGroup(endpoints, name="orders", listener=metrics)
    await group.when_ready()

    assert {
        ("orders", "10.0.0.1:80", "ready"): 2,
        ("orders", "10.0.0.1:80", "ejected"): 0,
        ("orders", "10.0.0.1:80", "unhealthy"): 0,
    } == values("endpoints")


def test_one_registry_has_one_kind(registry):
    """prometheus-client takes each name once."""
    EndpointGroupMetrics(registry)
    EndpointGroupMetrics(registry)
    with pytest.raises(ValueError, match="Duplicated"):
        EndpointGroupMetrics(registry, by_endpoint=True)


@pytest.mark.parametrize("kind", [EndpointGroupMetrics, PrometheusMetrics])
@pytest.mark.parametrize("value", [None, "no", []])
def test_detail_that_is_no_bool(registry, kind, value):
    """It is refused by its name."""
    with pytest.raises(ValueError, match=r"^by_endpoint: .*True or False"):
        kind(registry, by_endpoint=value)


async def test_group_that_is_gone_shows_nothing(registry, values):
    """Its ejections stay, as counters do."""
    metrics = EndpointGroupMetrics(registry)
    group = DynamicEndpointGroup(["http://a"], name="orders", listener=metrics)
    await group.when_ready()
    assert 3 == len(values("endpoints"))
    del group
    gc.collect()

    assert {} == values("endpoints")
    assert len(REASONS) == len(values("ejections_total"))


@pytest.mark.slow
async def test_names_of_groups_are_bounded(registry, values):
    """Beyond the limit ejections have a sum, and gauges nothing."""
    metrics = EndpointGroupMetrics(registry)
    groups = [
        DynamicEndpointGroup(["http://a"], name=f"g{number}", listener=metrics)
        for number in range(1030)
    ]
    for group in groups:
        await group.when_ready()
        metrics.on_ejected(group, Endpoint("http://a"), "unhealthy", 1.0)

    assert 1024 == len({name for name, _ in values("endpoints")})
    assert 6 == values("ejections_total")["_OTHER", "unhealthy"]


@pytest.mark.parametrize(
    ("group", "host"),
    [
        (lambda: dns(["10.0.0.1"]), "orders:80"),
        (lambda: of("a", "b", name="orders"), "orders"),
        (lambda: of("a").or_else(of("b")), "http://a"),
    ],
)
async def test_metrics_of_calls_know_the_service_alone(registry, values, group, host):
    """Of attempts and of calls, whatever endpoint."""
    servers, metrics = Servers(a=503), MetricsClient.new_decorator(registry)
    async with servers.session(group(), metrics, retrying(2), metrics) as client:
        await servers.get(client)

    assert {host} == {labels[0] for labels in values("attempts_total")}
    assert {host} == {labels[0] for labels in values("call_duration_seconds_count")}
