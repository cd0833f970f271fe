"""Circuit breakers, budgets, limits, groups and hedges, as each back end shows them."""

import asyncio
import gc

import pytest
from chains import after, retrying, session
from functions import lookups
from group_servers import Servers, of
from races import hedging, race

from aioretry_smithy import (
    CircuitBreaker,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    DynamicEndpointGroup,
    Endpoint,
    HealthCheckedEndpointGroup,
    RetryBudget,
    SessionBuilder,
    rpc,
)


def test_circuit_breaker_shows_one_state(shown):
    """From its first event on; changes of state and rejections are counted."""
    orders, stock = (
        CircuitBreaker(name, listeners=[shown.metrics().circuit_breakers])
        for name in ("orders", "stock")
    )
    assert {} == shown.values("circuit_breaker_state")

    orders.on_success(orders.try_request())
    assert {("orders", "closed"): 1} == shown.values("circuit_breaker_state")

    stock.enter_state(CircuitState.FORCED_OPEN)
    assert None is stock.try_request()
    stock.enter_state(CircuitState.CLOSED)
    stock.enter_state(CircuitState.FORCED_OPEN)
    orders.on_success(orders.try_request())
    # It stays, however often it is asked for.
    for _ in range(2):
        assert {("orders", "closed"): 1, ("stock", "forced_open"): 1} == shown.values(
            "circuit_breaker_state"
        )
    assert {("stock",): 1} == shown.values("circuit_breaker_rejections")
    assert {("stock", "forced_open"): 2, ("stock", "closed"): 1} == shown.values(
        "circuit_breaker_transitions"
    )


def test_last_circuit_breaker_of_a_name_is_shown(shown):
    """A session that is built anew does not show the state of the one before."""
    listeners = [shown.metrics().circuit_breakers]
    before = CircuitBreaker("orders", listeners=listeners)
    before.enter_state(CircuitState.OPEN)
    rebuilt = CircuitBreaker("orders", listeners=listeners)
    rebuilt.on_success(rebuilt.try_request())
    state = {("orders", "closed"): 1}

    assert state == shown.values("circuit_breaker_state")
    del before
    gc.collect()
    assert state == shown.values("circuit_breaker_state")


async def test_retry_budget_shows_its_tokens(shown):
    """They follow what is paid, and refusals are counted."""
    listeners = [shown.metrics().retry_budgets]
    budget = RetryBudget("orders", capacity=1.5, deposit=0.5, listeners=listeners)
    async with session([503, 503, 200], retrying(limiter=budget)) as client:
        await client.get("http://a/")
        assert {("orders",): 0.5} == shown.values("retry_budget_tokens")
        await client.get("http://a/")

    assert {("orders",): 1.0} == shown.values("retry_budget_tokens")
    assert {("orders",): 1} == shown.values("retry_budget_refusals")


async def test_budget_refused_before_anything_else_is_there(shown):
    """A brake may refuse the very first retry, when all tokens are left."""
    listeners = [shown.metrics().retry_budgets]
    budget = RetryBudget("orders", brake_after=1, listeners=listeners)
    async with session([503], retrying(limiter=budget)) as client:
        await client.get("http://a/")

    assert {("orders",): 10.0} == shown.values("retry_budget_tokens")
    assert {("orders",): 1} == shown.values("retry_budget_refusals")


def of_limits(shown, *names):
    """Return the values of series of limits."""
    return [shown.values(f"concurrency_limit_{name}") for name in names]


async def test_concurrency_limits_of_a_session_are_measured(shown):
    """Whenever somebody asks, from the first request on."""
    listeners = [shown.metrics().concurrency_limits]
    decorator = ConcurrencyLimitingClient.new_per_host_decorator(
        lambda key: ConcurrencyLimit.fixed(1, name=key, listeners=listeners),
        max_pending=1,
    )
    names = "limit", "in_flight", "pending", "refusals"
    assert [{}] * 4 == of_limits(shown, *names)

    async with session([after(1.0, 200), 200, 200], decorator) as client:
        calls = [asyncio.create_task(client.get("http://a/"))]
        await asyncio.sleep(0.25)
        first = of_limits(shown, *names)
        calls += [asyncio.create_task(client.get("http://a/")) for _ in range(2)]
        await asyncio.sleep(0.25)
        then = of_limits(shown, *names)
        await asyncio.wait(calls)

    assert [{("a:80",): 1}, {("a:80",): 1}, {}, {}] == first
    assert [{("a:80",): 1}] * 4 == then
    assert isinstance(calls[2].exception(), ConcurrencyLimitError)


async def test_last_concurrency_limit_of_a_name_is_shown(shown):
    """The one that had the last event, as long as it is there; its refusals stay."""
    listener = shown.metrics().concurrency_limits
    limits = [
        ConcurrencyLimit.fixed(places, name="orders", listeners=[listener])
        for places in (3, 5)
    ]
    for limit in limits:
        limiting = ConcurrencyLimitingClient.new_decorator(limit)
        async with session([200], limiting) as client:
            await client.get("http://a/")
    listener.on_refused(limit, None)
    assert [{("orders",): 5}, {("orders",): 1}] == of_limits(shown, "limit", "refusals")

    del limits, limit, limiting, client
    gc.collect()
    assert [{}, {("orders",): 1}] == of_limits(shown, "limit", "refusals")


async def test_groups_are_measured(shown, monkeypatch):
    """How many are well, out or unhealthy, and how often each was out."""
    servers = Servers(a=503)
    listener = shown.metrics().endpoint_groups
    inner = of("a", "b", "c", name="orders", listener=listener)
    assert {} == shown.values("endpoints")

    async def check(self, method, url, **options):
        raise OSError(url)

    async with servers.session(inner) as client:
        await servers.get(client)
        assert {("orders", "ready"): 2, ("orders", "ejected"): 1} == shown.values(
            "endpoints"
        )
        monkeypatch.setattr("aiohttp.ClientSession._request", check)
        async with HealthCheckedEndpointGroup(inner, "/") as group:
            await group.when_ready()
            assert {("orders", "unhealthy"): 3} == shown.values("endpoints")

    assert {("orders", "consecutive_failures"): 1, ("orders", "unhealthy"): 3} == (
        shown.values("ejections")
    )


async def test_group_that_is_gone_shows_nothing(shown):
    """Its ejections stay, as counters do."""
    listener = shown.metrics().endpoint_groups
    group = DynamicEndpointGroup(["http://a"], name="orders", listener=listener)
    await group.when_ready()
    listener.on_ejected(group, Endpoint("http://a"), "unhealthy", 1.0)
    assert {("orders", "ready"): 1} == shown.values("endpoints")

    del group
    gc.collect()
    assert {} == shown.values("endpoints")
    assert {("orders", "unhealthy"): 1} == shown.values("ejections")


async def test_endpoints_are_told_from_one_another_on_request(shown):
    """By a label more; those that look alike are one."""
    listener = shown.metrics(by_endpoint=True).endpoint_groups
    endpoints = [Endpoint(f"http://a/v{n}", address="10.0.0.1") for n in (1, 2)]
    endpoints.append(Endpoint("http://b"))
    group = DynamicEndpointGroup(endpoints, name="orders", listener=listener)
    await group.when_ready()
    listener.on_ejected(group, endpoints[0], "retry_after", 9.0)

    assert {("orders", "10.0.0.1:80", "ready"): 2, ("orders", "b", "ready"): 1} == (
        shown.values("endpoints")
    )
    ejections = shown.values("ejections")
    assert {("orders", "10.0.0.1:80", "retry_after"): 1} == ejections


@pytest.mark.parametrize("value", [None, "no", []])
def test_detail_that_is_no_bool(shown, value):
    """It is refused by its name."""
    with pytest.raises(ValueError, match=r"^by_endpoint: .*True or False"):
        shown.metrics(by_endpoint=value)


async def test_hedges_are_counted_by_call(shown):
    """How many were sent, how many won and how many a limiter refused."""
    metrics = shown.metrics().client()
    refused = hedging(0.5, max_hedges=2, limiter=RetryBudget(capacity=1.0))
    answers = [after(2.0, 503), after(9.0, 503)]
    await race([after(9.0, 200), 200], metrics, hedging(0.5), metrics)
    await race(answers, metrics, refused, metrics, cancel_after=1.25)

    assert [2, 1, 1] == shown.totals("hedges", "hedges_won", "hedges_refused")
    assert [4, 0] == shown.totals("attempts", "retries")


def test_each_kind_of_chain_has_its_class(shown):
    """The refusal says which class to take."""
    metrics, (http, functions) = shown.metrics(), shown.classes

    with pytest.raises(ValueError, match=f"{http}.*for functions.*{functions}"):
        rpc(metrics.client())(lookups())
    with pytest.raises(ValueError, match=f"{functions}.*for sessions.*{http}"):
        SessionBuilder().decorator(metrics.rpc_client()).build()
