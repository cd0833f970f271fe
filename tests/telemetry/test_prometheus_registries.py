"""Registries: shared, kept apart, freed, with names that are taken."""

import gc
import weakref

import pytest
from chains import in_threads, session

pytest.importorskip("prometheus_client")
from monitored import RETRYING, at, session_of
from prometheus_client import CollectorRegistry, Counter

from aioretry_smithy.prometheus import (
    CircuitBreakerMetrics,
    ConcurrencyLimitMetrics,
    MetricsClient,
    RetryBudgetMetrics,
)


async def test_each_registry_has_attempts_and_calls_of_its_own(registry, values):
    """Two registries in one chain: neither takes the other for its inner half."""
    registries = registry, CollectorRegistry()
    decorators = [MetricsClient.new_decorator(each) for each in registries]
    chain = *decorators, RETRYING, *decorators
    async with session([503, 200], *chain) as client:
        await client.get("http://example.com")

    for each in registries:
        assert {at("5xx"): 1, at("2xx"): 1} == values("attempts_total", each)
        assert {at("5xx"): 0, at("2xx"): 1} == values("retries_total", each)
        assert {at("none"): 1} == values("call_duration_seconds_count", each)


async def test_sessions_share_the_metrics_of_a_registry(registry, values):
    """A decorator made again does not clash with the first one."""
    for _ in range(2):
        async with session_of(registry, 200) as session:
            await session.get("/")

    assert {at("2xx"): 2} == values("attempts_total")


async def test_registries_are_kept_apart(registry, values):
    """Counts in one registry do not show in another."""
    async with session_of(CollectorRegistry(), 200) as session:
        await session.get("/")
    MetricsClient.new_decorator(registry)

    assert {} == values("attempts_total")


def test_metrics_are_made_once_by_many_threads(registry):
    """Threads that make decorators at the same time share the metrics too."""
    made = []
    in_threads(lambda: made.append(MetricsClient.new_decorator(registry)))

    assert 8 == len(made)


def test_registry_can_be_freed():
    """Nothing of ours keeps a registry alive."""
    registry = CollectorRegistry()
    gone = weakref.ref(registry)
    kept = [MetricsClient.new_decorator(registry)]
    kept += [listener(registry) for listener in LISTENERS]
    del registry
    gc.collect()

    assert gone() is None
    assert kept


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (MetricsClient.new_decorator, "call_duration_seconds"),
        (CircuitBreakerMetrics, "circuit_breaker_rejections"),
        (ConcurrencyLimitMetrics, "concurrency_limit_in_flight"),
        (RetryBudgetMetrics, "retry_budget_refusals"),
    ],
)
def test_name_that_is_taken_is_an_error(registry, make, name):
    """Another's metric stays, ours come whole or not at all, and may come later."""
    other = Counter(f"aioretry_smithy_{name}", "Another's.", registry=registry)

    with pytest.raises(ValueError, match="aioretry_smithy"):
        make(registry)

    assert [other] == list(registry._collector_to_names)
    registry.unregister(other)
    make(registry)


LISTENERS = [CircuitBreakerMetrics, ConcurrencyLimitMetrics, RetryBudgetMetrics]


@pytest.mark.parametrize("make", [MetricsClient.new_decorator, *LISTENERS])
@pytest.mark.parametrize("registry", [None, "registry", CollectorRegistry, 1])
def test_what_is_no_registry_is_refused(make, registry):
    """The error names the argument where the object is made."""
    with pytest.raises(ValueError, match="registry: .*a prometheus_client registry"):
        make(registry)
