"""Concurrency limits, as Prometheus reads them."""

import asyncio
import gc

import pytest
from chains import after, session

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
)

pytest.importorskip("prometheus_client")


from aioretry_smithy.prometheus import ConcurrencyLimitMetrics


@pytest.fixture
def of_limits(registry):
    """A function that returns values of the series of limits by their names."""

    def read(*series):
        samples = [
            sample
            for metric in registry.collect()
            for sample in metric.samples
            if not sample.name.endswith("_created")
        ]
        return [
            {
                sample.labels["concurrency_limit"]: sample.value
                for sample in samples
                if sample.name == f"aioretry_smithy_concurrency_limit_{name}"
            }
            for name in series
        ]

    return read


async def test_concurrency_limits_of_a_session_are_measured(registry, of_limits):
    """Whenever Prometheus asks, from the first request on."""
    metrics = ConcurrencyLimitMetrics(registry)
    decorator = ConcurrencyLimitingClient.new_per_host_decorator(
        lambda key: ConcurrencyLimit.fixed(1, name=key, listeners=[metrics]),
        max_pending=1,
    )
    all_series = "limit", "in_flight", "pending", "refusals_total"
    assert [{}] * 4 == of_limits(*all_series)

    async with session([after(1.0, 200), 200, 200], decorator) as client:
        calls = [asyncio.create_task(client.get("http://a/"))]
        await asyncio.sleep(0.25)
        first = of_limits(*all_series)
        calls += [asyncio.create_task(client.get("http://a/")) for _ in range(2)]
        await asyncio.sleep(0.25)
        then = of_limits(*all_series)
        await asyncio.wait(calls)

    assert [{"a:80": 1}, {"a:80": 1}, {"a:80": 0}, {"a:80": 0}] == first
    assert [{"a:80": 1}] * 4 == then
    assert isinstance(calls[2].exception(), ConcurrencyLimitError)


def test_concurrency_limit_that_is_gone_shows_nothing(registry, of_limits):
    """Its refusals stay, as counters do."""
    metrics = ConcurrencyLimitMetrics(registry)
    limit = ConcurrencyLimit.fixed(1, name="orders")
    metrics.on_refused(limit, None)
    del limit
    gc.collect()

    assert [{}, {"orders": 1}] == of_limits("in_flight", "refusals_total")


def test_last_concurrency_limit_of_a_name_is_shown(registry, of_limits):
    """Of two with one name the one that had the last event."""
    metrics = ConcurrencyLimitMetrics(registry)
    limits = [
        ConcurrencyLimit.fixed(places, name="orders", listeners=[metrics])
        for places in (3, 5)
    ]
    for each in limits:
        each._try_enter(0.0)

    assert [{"orders": 5}] == of_limits("limit")


def test_names_of_concurrency_limits_are_bounded(registry, of_limits):
    """Beyond the limit refusals have a sum, and gauges nothing."""
    metrics = ConcurrencyLimitMetrics(registry)
    limits = [ConcurrencyLimit.fixed(1, name=f"b{number}") for number in range(1100)]
    for limit in limits:
        metrics.on_refused(limit, None)
    pending, refusals = of_limits("pending", "refusals_total")

    assert 1024 == len(pending)
    assert 76 == refusals["_OTHER"]
