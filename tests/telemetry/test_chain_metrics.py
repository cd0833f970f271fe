"""All that happens in a standard chain is counted by one argument."""

import asyncio
import contextlib

import aiohttp
import pytest
from chains import URL, bad_argument, log_of, refused, session

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
from aioretry_smithy.testing import ScriptedTransport

HOST = "localhost:80"


def chain(shown, answers, *url, **settings):
    """Begin a standard session that is counted."""
    settings = {"metrics": shown.metrics()} | settings
    inside = [ScriptedTransport(answers)]
    return SessionBuilder.standard(*url, inside=inside, **settings)


async def call(builder, url=URL):
    """Make a call of a builder, whatever comes of it."""
    return await log_of(builder.build(), url)


async def test_calls_and_attempts_are_counted(shown):
    """Each once, without a decorator of one's own."""
    await call(chain(shown, [503, 200]))

    assert [2, 1] == shown.totals("attempts", "retries")
    durations = "call_duration_seconds", "attempt_duration_seconds"
    assert [1, 2] == shown.totals(*durations)


async def test_parts_that_are_made_are_counted(shown):
    """The circuit breaker, the budget and the limit of the host."""
    settings = {"concurrency": 5, "wait_for_ready": None, "max_total_attempts": 9}
    builder = chain(shown, [500] * 9, **settings)
    async with builder.build() as client:
        for _ in range(6):
            with contextlib.suppress(aiohttp.ClientError):
                await client.get(URL)

        assert 1 == shown.values("circuit_breaker_transitions")[HOST, "open"]
        assert 0 < shown.values("circuit_breaker_rejections")[HOST,]
        assert shown.values("retry_budget_tokens")[HOST,] < 10
        assert 5 == shown.values("concurrency_limit_limit")[HOST,]


async def test_endpoints_are_counted(shown):
    """Of the group that the builder has, once however many builders have it."""
    group = EndpointGroup.of("http://a:1", "http://b:2", name="orders")
    metrics = shown.metrics()
    for answers in ([200], [refused(), 200]):
        await call(chain(shown, answers, group, metrics=metrics), "/")

    assert {("orders", "ready"): 1, ("orders", "ejected"): 1} == (
        shown.values("endpoints")
    )
    assert {("orders", "connect_failures"): 1} == shown.values("ejections")
    assert [3] == shown.totals("attempts")


async def test_endpoints_of_each_group_are_counted(shown):
    """Of two, one of which follows the other."""
    near, far = (
        EndpointGroup.of(f"http://{name}:1", name=name) for name in ("near", "far")
    )
    await call(chain(shown, [200], near.or_else(far)), "/")

    assert {("near", "ready"): 1, ("far", "ready"): 1} == shown.values("endpoints")


async def test_parts_of_ones_own_hear_by_its_listeners(shown):
    """The settings of the others stay those of the chain."""
    listeners = [shown.metrics().retry_budgets]
    budget = RetryBudget.per_host(capacity=3.0, listeners=listeners)
    await call(chain(shown, [503, 200], limiter=budget))

    assert shown.values("retry_budget_tokens")[HOST,] <= 3.0


async def test_what_is_left_out_is_not_counted(shown):
    """Without retries the call is its one attempt."""
    await call(chain(shown, [503], retrying=None, circuit_breaker=None))

    assert [1, 1] == shown.totals("attempts", "call_duration_seconds")
    assert {} == shown.values("retry_budget_tokens")


def test_settings_of_the_chain_stay_the_same(shown):
    """But for the listeners."""
    with_metrics = SessionBuilder.standard(metrics=shown.metrics()).describe()
    without = SessionBuilder.standard().describe().splitlines()

    kept = [
        line.strip()
        for line in with_metrics.splitlines()
        if not any(word in line for word in ("Metrics", "TracingClient"))
    ]
    assert [line.strip() for line in without if "CircuitBreaker(" not in line][:2] == (
        kept[:2]
    )


async def test_a_session_that_exists_is_counted_too(shown):
    """With the same argument."""
    async with aiohttp.ClientSession() as client:
        inside = [ScriptedTransport([503, 200])]
        decorate_standard(client, inside=inside, metrics=shown.metrics())
        async with client.get(URL):
            pass

    assert [2] == shown.totals("attempts")


async def test_a_chain_of_ones_own_takes_its_client_twice(shown):
    """Inside the retrying client, and outside."""
    counting = shown.metrics().client()
    retrying = RetryingClient.new_decorator(RetryStrategy.failsafe())
    await log_of(session([503, 200], counting, retrying, counting))

    assert [2, 1] == shown.totals("attempts", "call_duration_seconds")


async def test_functions_take_its_other_client(shown):
    """As sessions do."""
    counting = shown.metrics().rpc_client()
    retries = RetryingRpcClient.new_decorator(RetryRule(exceptions=[KeyError]), 1)

    @rpc(counting, retries, counting)
    async def work():
        await asyncio.sleep(0)

    await work()

    assert [1, 1] == shown.totals("rpc_attempts", "rpc_call_duration_seconds")


@pytest.mark.parametrize("metrics", ["metrics", type, object(), False])
def test_what_counts_nothing_is_refused(metrics, shown):
    """A class is no object of it."""
    given = type(shown.metrics()) if metrics is type else metrics
    expected = "a PrometheusMetrics, an OpenTelemetryMetrics or None"
    with bad_argument("metrics", given, expected):
        SessionBuilder.standard(metrics=given)


def test_bad_arguments_are_refused(shown):
    """By the listeners that it makes."""
    with pytest.raises(ValueError, match=r"^(registry|meter_provider): "):
        type(shown.metrics())("default")
