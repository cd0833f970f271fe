"""The series of the calls of functions."""

import asyncio

import pytest
from functions import lookups, observed

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerRpcClient,
    CircuitState,
    SessionBuilder,
    rpc,
)

pytest.importorskip("prometheus_client")


from aioretry_smithy.prometheus import MetricsClient, MetricsRpcClient


@pytest.fixture
def values(values):
    """The same of the series of functions."""
    return lambda name: values(f"rpc_{name}")


def measured(registry, *inside, **settings):
    return observed(MetricsRpcClient.new_decorator(registry), *inside, **settings)


async def test_attempts_and_calls_are_counted_and_timed(registry, values):
    """By the name of the call, and by what became of it."""
    assert 7 == await measured(registry)(lookups(LookupError(), 7))()
    failed, returned = ("fetch", "error"), ("fetch", "returned")

    assert {failed: 1, returned: 1} == values("attempts_total")
    assert {failed: 0, returned: 1} == values("retries_total")
    assert {failed: 0.25, returned: 0.25} == values("attempt_duration_seconds_sum")
    assert {("fetch", "none"): 1.5} == values("call_duration_seconds_sum")


async def test_calls_are_sorted_by_why_they_stopped(registry, values):
    """The label has the value of the stop reason."""
    with pytest.raises(LookupError):
        await measured(registry, max_total_attempts=1)(lookups(LookupError()))()

    assert {("fetch", "max_total_attempts"): 1} == values("call_duration_seconds_count")


async def test_call_that_a_circuit_breaker_refuses_is_told_apart(registry, values):
    """The function was never called."""
    breaker = CircuitBreaker("reports")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    guard = CircuitBreakerRpcClient.new_decorator(breaker)
    fetch = measured(registry, guard)(lookups(1))
    await asyncio.gather(fetch(), return_exceptions=True)

    assert {("fetch", "refused"): 1} == values("attempts_total")


async def test_cancelled_call_is_neither_success_nor_error(registry, values):
    """A call that the caller gave up is counted apart."""
    call = asyncio.ensure_future(measured(registry)(lookups(1, seconds=9.0))())
    await asyncio.sleep(2.0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)

    assert {("fetch", "cancelled"): 1} == values("attempts_total")
    assert {("fetch", "cancelled"): 2.0} == values("call_duration_seconds_sum")


@pytest.mark.slow
async def test_names_are_bounded_and_masked(registry, values):
    """A program that makes up names does not fill the memory."""
    metrics = MetricsRpcClient.new_decorator(registry)
    for number in range(1026):
        name = f"http://user:secret@host/{number}"
        await rpc(metrics, name=name)(lookups(1, seconds=0.0))()
    found = values("attempts_total")

    assert 1025 == len(found)
    assert 2 == found["_OTHER", "returned"]
    assert 1 == found["http://****@host/0", "returned"]


@pytest.mark.parametrize(
    ("decorate", "expected"),
    [
        (
            lambda registry: rpc(MetricsClient.new_decorator(registry))(lookups()),
            r"MetricsClient.*for functions.*MetricsRpcClient",
        ),
        (
            lambda registry: (
                SessionBuilder()
                .decorator(MetricsRpcClient.new_decorator(registry))
                .build()
            ),
            r"MetricsRpcClient.*for sessions.*MetricsClient",
        ),
    ],
    ids=["function", "session"],
)
async def test_each_kind_of_chain_has_its_class(registry, decorate, expected):
    """The refusal says which class to take."""
    with pytest.raises(ValueError, match=expected):
        decorate(registry)


def test_series_are_apart_from_those_of_http(registry):
    """Both may be in one registry, and no sum counts a request twice."""
    MetricsClient.new_decorator(registry)
    MetricsRpcClient.new_decorator(registry)
    names = [metric.name for metric in registry.collect()]

    assert 12 == len(names) == len({*names})
