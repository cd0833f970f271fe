"""All that happens in a standard chain is counted by one argument."""

import asyncio

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra prometheus")
pytest.importorskip("opentelemetry.sdk", reason="needs the SDK of OpenTelemetry")

import contextlib

import aiohttp
from chains import URL, bad_argument, log_of
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

from aioretry_smithy import (
    EndpointGroup,
    RetryBudget,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    decorate_standard,
    rpc,
)
from aioretry_smithy.opentelemetry import OpenTelemetryMetrics
from aioretry_smithy.prometheus import PrometheusMetrics
from aioretry_smithy.testing import ScriptedTransport

HOST = "localhost:80"


class Prometheus:
    """Counts in a registry."""

    def __init__(self):
        self.registry = CollectorRegistry()
        self.metrics = PrometheusMetrics(self.registry)

    def totals(self):
        """Sum up what there is, by the names of the counters and the gauges."""
        totals = {}
        for family in self.registry.collect():
            for sample in family.samples:
                name = sample.name.removeprefix("aioretry_smithy_")
                if name.endswith(("_total", "_count")) or name == family.name[16:]:
                    totals[name] = totals.get(name, 0) + sample.value
        return totals


@pytest.fixture
def counted():
    """A registry, and what counts in it."""
    return Prometheus()


async def call(builder, url=URL):
    """Make a call of a builder, whatever comes of it."""
    return await log_of(builder.build(), url)


async def test_calls_and_attempts_are_counted(counted):
    """Each once, without a decorator of one's own."""
    transport = ScriptedTransport([503, 200])
    builder = SessionBuilder.standard(inside=[transport], metrics=counted.metrics)
    await call(builder)

    totals = counted.totals()
    assert (2, 1, 1, 2) == (
        totals["attempts_total"],
        totals["retries_total"],
        totals["call_duration_seconds_count"],
        totals["attempt_duration_seconds_count"],
    )


async def test_parts_that_are_made_are_counted(counted):
    """The circuit breaker, the budget and the limit of the host."""
    transport = ScriptedTransport([500] * 9)
    builder = SessionBuilder.standard(
        inside=[transport],
        metrics=counted.metrics,
        concurrency=5,
        wait_for_ready=None,
        max_total_attempts=9,
    )
    async with builder.build() as session:
        for _ in range(6):
            with contextlib.suppress(aiohttp.ClientError):
                await session.get(URL)

    value = counted.registry.get_sample_value
    prefix = "aioretry_smithy_"
    breaker = {"circuit_breaker": HOST}
    assert 1 == value(
        f"{prefix}circuit_breaker_transitions_total", {**breaker, "state": "open"}
    )
    assert 0 < value(f"{prefix}circuit_breaker_rejections_total", breaker)
    assert value(f"{prefix}retry_budget_tokens", {"retry_budget": HOST}) < 10
    limit = {"concurrency_limit": HOST}
    assert 5 == value(f"{prefix}concurrency_limit_limit", limit)


async def test_endpoints_are_counted(counted):
    """Of the group that the builder has, once however many builders have it."""
    group = EndpointGroup.of("http://a:1", "http://b:2", name="orders")
    for _ in range(2):
        transport = ScriptedTransport([200])
        builder = SessionBuilder.standard(
            group, inside=[transport], metrics=counted.metrics
        )
        await call(builder, "/")

    labels = {"group": "orders", "state": "ready"}
    value = counted.registry.get_sample_value
    assert 2 == value("aioretry_smithy_endpoints", labels)
    assert 2 == counted.totals()["attempts_total"]


async def test_endpoints_of_each_group_are_counted(counted):
    """Of two, one of which follows the other."""
    near, far = (
        EndpointGroup.of(f"http://{name}:1", name=name) for name in ("near", "far")
    )
    transport = ScriptedTransport([200])
    builder = SessionBuilder.standard(
        near.or_else(far), inside=[transport], metrics=counted.metrics
    )
    await call(builder, "/")

    for name in ("near", "far"):
        labels = {"group": name, "state": "ready"}
        value = counted.registry.get_sample_value
        assert 1 == value("aioretry_smithy_endpoints", labels)


async def test_parts_of_ones_own_hear_by_its_listeners(counted):
    """The settings of the others stay those of the chain."""
    metrics = counted.metrics
    budget = RetryBudget.per_host(capacity=3.0, listeners=[metrics.retry_budgets])
    transport = ScriptedTransport([503, 200])
    builder = SessionBuilder.standard(
        inside=[transport], metrics=metrics, limiter=budget
    )
    await call(builder)

    labels = {"retry_budget": HOST}
    value = counted.registry.get_sample_value
    assert value("aioretry_smithy_retry_budget_tokens", labels) <= 3.0


async def test_what_is_left_out_is_not_counted(counted):
    """Without retries the call is its one attempt."""
    transport = ScriptedTransport([503])
    builder = SessionBuilder.standard(
        inside=[transport],
        metrics=counted.metrics,
        retrying=None,
        circuit_breaker=None,
    )
    await call(builder)

    totals = counted.totals()
    assert (1, 1) == (totals["attempts_total"], totals["call_duration_seconds_count"])
    assert "retry_budget_tokens" not in totals


def test_settings_of_the_chain_stay_the_same(counted):
    """But for the listeners."""
    with_metrics = SessionBuilder.standard(metrics=counted.metrics).describe()
    without = SessionBuilder.standard().describe().splitlines()
    kept = [line.strip() for line in with_metrics.splitlines() if "Metrics" not in line]

    assert [line.strip() for line in without if "CircuitBreaker(" not in line][:2] == (
        kept[:2]
    )


async def test_a_session_that_exists_is_counted_too(counted):
    """With the same argument."""
    async with aiohttp.ClientSession() as session:
        transport = ScriptedTransport([503, 200])
        decorate_standard(session, inside=[transport], metrics=counted.metrics)
        async with session.get(URL):
            pass

    assert 2 == counted.totals()["attempts_total"]


async def test_a_chain_of_ones_own_takes_its_client_twice(counted):
    """Inside the retrying client, and outside."""
    client = counted.metrics.client()
    builder = (
        SessionBuilder()
        .decorator(ScriptedTransport([503, 200]))
        .decorator(client)
        .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
        .decorator(client)
    )
    await call(builder)

    totals = counted.totals()
    assert (2, 1) == (totals["attempts_total"], totals["call_duration_seconds_count"])


async def test_functions_take_its_other_client(counted):
    """As sessions do."""
    client = counted.metrics.rpc_client()
    retries = RetryingRpcClient.new_decorator(RetryRule(exceptions=[KeyError]), 1)

    @rpc(client, retries, client)
    async def work():
        await asyncio.sleep(0)

    await work()

    totals = counted.totals()
    assert (1, 1) == (
        totals["rpc_attempts_total"],
        totals["rpc_call_duration_seconds_count"],
    )


async def test_opentelemetry_counts_the_same():
    """With the provider that is given, and without spans."""
    reader = InMemoryMetricReader()
    metrics = OpenTelemetryMetrics(MeterProvider([reader]))
    transport = ScriptedTransport([503, 200])
    builder = SessionBuilder.standard(
        EndpointGroup.of("http://a:1", name="orders"),
        inside=[transport],
        metrics=metrics,
        concurrency=5,
    )
    await call(builder, "/")
    builder = SessionBuilder.standard(
        inside=[ScriptedTransport([503, 200])], metrics=metrics, concurrency=5
    )
    await call(builder)

    @rpc(metrics.rpc_client())
    async def work():
        await asyncio.sleep(0)

    await work()

    found = {
        each.name
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for each in scope.metrics
    }
    assert {
        "http.client.request.duration",
        "aioretry_smithy.call.duration",
        "aioretry_smithy.attempts",
        "aioretry_smithy.retries",
        "aioretry_smithy.circuit_breaker.state",
        "aioretry_smithy.retry_budget.tokens",
        "aioretry_smithy.rpc.attempts",
    } <= found


@pytest.mark.parametrize("metrics", ["prometheus", PrometheusMetrics, object(), False])
def test_what_counts_nothing_is_refused(metrics):
    """A class is no object of it."""
    expected = "a PrometheusMetrics, an OpenTelemetryMetrics or None"
    with bad_argument("metrics", metrics, expected):
        SessionBuilder.standard(metrics=metrics)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(PrometheusMetrics, "registry"), (OpenTelemetryMetrics, "meter_provider")],
)
def test_bad_arguments_are_refused(kind, name):
    """By the listeners that it makes."""
    with pytest.raises(ValueError, match=f"^{name}: "):
        kind("default")
