"""The table of series, and those of functions, connections and endpoints."""

import csv
from pathlib import Path

import pytest
from functions import lookups, observed
from monitored import scrape

from aioretry_smithy import rpc
from aioretry_smithy._telemetry.series import SERIES
from aioretry_smithy.prometheus import EndpointGroupMetrics

pytest.importorskip("prometheus_client")

import pytest
from calls import connecting
from chains import retrying, session
from group_servers import Servers, dns, of
from group_servers import retrying as again
from prometheus_client import generate_latest

from aioretry_smithy import DynamicEndpointGroup, Endpoint
from aioretry_smithy.prometheus import MetricsClient, MetricsRpcClient

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "prometheus-series.csv"


async def test_page_of_a_real_run_has_each_series_of_the_table_and_no_other():
    """With its type and its labels."""
    found = {
        name.removeprefix("aioretry_smithy_").removesuffix("_count"): (
            shown.kind,
            {*shown.labels},
        )
        for name, shown in (await scrape()).items()
        if not name.endswith(("_bucket", "_sum", "_created"))
    }

    assert {
        series.shown: (series.kind, {*series.labels}) for series in SERIES.values()
    } == found


def test_reference_lists_the_table():
    """In its order."""
    with PAGE.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)

    def labels_of(series):
        labels = ", ".join(f"``{label}``" for label in series.labels)
        more = "; ``endpoint`` with ``by_endpoint=True``"
        return f"{labels}{more if series.is_by_endpoint else ''}"

    assert [
        [f"``{series.shown}``", series.kind, labels_of(series)]
        for series in SERIES.values()
    ] == rows


def test_series_that_tell_endpoints_from_one_another_are_in_the_table(registry):
    """The two that have one label more on request."""
    EndpointGroupMetrics(registry, by_endpoint=True)

    assert {"aioretry_smithy_endpoints", "aioretry_smithy_ejections"} == {
        metric.name for metric in registry.collect()
    }
    assert {"endpoints", "ejections"} == {
        series.name for series in SERIES.values() if series.is_by_endpoint
    }


@pytest.fixture
def rpc_values(values):
    """The same of the series of functions."""
    return lambda name: values(f"rpc_{name}")


def measured(registry, *inside, **settings):
    return observed(MetricsRpcClient.new_decorator(registry), *inside, **settings)


async def test_attempts_and_calls_are_counted_and_timed(registry, rpc_values):
    """By the name of the call, and by what became of it."""
    assert 7 == await measured(registry)(lookups(LookupError(), 7))()
    failed, returned = ("fetch", "error"), ("fetch", "returned")

    assert {failed: 1, returned: 1} == rpc_values("attempts_total")
    assert {failed: 0, returned: 1} == rpc_values("retries_total")
    assert {failed: 0.25, returned: 0.25} == rpc_values("attempt_duration_seconds_sum")
    assert {("fetch", "none"): 1.5} == rpc_values("call_duration_seconds_sum")


@pytest.mark.slow
async def test_names_are_bounded_and_masked(registry, rpc_values):
    """A program that makes up names does not fill the memory."""
    metrics = MetricsRpcClient.new_decorator(registry)
    for number in range(1026):
        name = f"http://user:secret@host/{number}"
        await rpc(metrics, name=name)(lookups(1, seconds=0.0))()
    found = rpc_values("attempts_total")

    assert 1025 == len(found)
    assert 2 == found["_OTHER", "returned"]
    assert 1 == found["http://****@host/0", "returned"]


def test_series_are_apart_from_those_of_http(registry):
    """Both may be in one registry, and no sum counts a request twice."""
    MetricsClient.new_decorator(registry)
    MetricsRpcClient.new_decorator(registry)
    names = [metric.name for metric in registry.collect()]

    assert 12 == len(names) == len({*names})


NAME = "connection_wait_seconds"


async def measure(registry, answers, *decorators):
    async with session(answers, *decorators) as client:
        await client.get("http://example.com/")


async def test_each_attempt_is_measured_by_part(registry, values):
    """What did not happen is not observed."""
    metrics = MetricsClient.new_decorator(registry)
    waits = connecting({"queued": 0.5, "dns": 0.25}, {"queued": 0.25, "reused": True})
    await measure(registry, [503, 200], waits, metrics, retrying(), metrics)

    host = "example.com:80"
    assert {(host, "queued"): 2, (host, "dns"): 1} == values(f"{NAME}_count")
    assert {(host, "queued"): 0.75, (host, "dns"): 0.25} == values(f"{NAME}_sum")


async def test_series_is_there_without_timings(registry, values):
    """A dashboard may ask for it; nothing was observed."""
    metrics = MetricsClient.new_decorator(registry)
    await measure(registry, [200], connecting(None), metrics)

    assert {} == values(f"{NAME}_count")
    assert f"# TYPE aioretry_smithy_{NAME} histogram" in f"{generate_latest(registry)}"


async def test_functions_have_no_connections(registry):
    """Those of their requests count where these are measured."""
    MetricsRpcClient.new_decorator(registry)

    assert "connection" not in f"{generate_latest(registry)}"


REASONS = {
    "connect_failures",
    "consecutive_failures",
    "failure_rate",
    "trial_failed",
    "retry_after",
    "circuit_open",
    "unhealthy",
}


def test_one_registry_has_one_kind(registry):
    """prometheus-client takes each name once."""
    EndpointGroupMetrics(registry)
    EndpointGroupMetrics(registry)
    with pytest.raises(ValueError, match="Duplicated"):
        EndpointGroupMetrics(registry, by_endpoint=True)


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
    async with servers.session(group(), metrics, again(2), metrics) as client:
        await servers.get(client)

    assert {host} == {labels[0] for labels in values("attempts_total")}
    assert {host} == {labels[0] for labels in values("call_duration_seconds_count")}
