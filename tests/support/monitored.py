"""Calls that are counted, their series, and a run that meets all there are."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

import aiohttp
import pytest
from calls import connecting
from chains import after, retrying, session
from functions import lookups, observed
from group_servers import Servers, of

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    HedgingClient,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
)

pytest.importorskip("prometheus_client")
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from aioretry_smithy.prometheus import (
    CircuitBreakerMetrics,
    ConcurrencyLimitMetrics,
    EndpointGroupMetrics,
    MetricsClient,
    MetricsRpcClient,
    RetryBudgetMetrics,
)

HOST = "example.com:80"
RETRYING = RetryingClient.new_decorator(
    RetryStrategy.on_server_error_status(Backoff.fixed(0.5)), max_total_attempts=3
)


def session_of(registry, *answers, around=(RETRYING,), url="http://example.com"):
    """Build a session that is measured on both sides of other decorators."""
    metrics = MetricsClient.new_decorator(registry)
    return session(answers, metrics, *around, metrics, base_url=url)


async def measure(registry, *answers, **settings):
    """Make one call that is measured on both sides, whatever comes of it."""
    async with session_of(registry, *answers, **settings) as client:
        await asyncio.gather(client.get("/"), return_exceptions=True)


def at(*labels):
    return (HOST, "GET", *labels)


class Shown(NamedTuple):
    """What a page says of one series."""

    kind: str
    """Its type."""

    labels: dict[str, set[str]]
    """Its labels, each with the values that it has."""


async def scrape():
    """Make calls of all kinds, and read the page: series by the names of samples."""
    registry = CollectorRegistry()
    # Gauges show what is alive, and no longer.
    alive = [await part(registry) for part in (_calls, _functions, _endpoints)]
    page = generate_latest(registry).decode()
    del alive
    found = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            shown = found.setdefault(sample.name, Shown(family.type, {}))
            for label, value in sample.labels.items():
                shown.labels.setdefault(label, set()).add(value)
    return found


async def _calls(registry):
    metrics = MetricsClient.new_decorator(registry)
    breaker = CircuitBreaker("orders", listeners=[CircuitBreakerMetrics(registry)])
    budget = RetryBudget(name="orders", listeners=[RetryBudgetMetrics(registry)])
    limit = ConcurrencyLimit.fixed(
        2, name="orders", listeners=[ConcurrencyLimitMetrics(registry)]
    )
    async with session(
        [after(0.2, 503), 200, 503, 503, 200],
        connecting(*[{"queued": 0.5, "dns": 0.1, "connect": 0.2}] * 5),
        ConcurrencyLimitingClient.new_decorator(limit),
        CircuitBreakerClient.new_decorator(breaker),
        metrics,
        HedgingClient.new_decorator(0.1),
        retrying(limiter=budget),
        metrics,
    ) as client:
        for _ in range(2):
            with suppress(aiohttp.ClientError):
                await client.get("http://orders/")
    return limit


async def _functions(registry):
    decorate = observed(MetricsRpcClient.new_decorator(registry))
    return await decorate(lookups(LookupError(), 1))()


async def _endpoints(registry):
    group = of("a", "b", name="orders", listener=EndpointGroupMetrics(registry))
    servers = Servers(a=503)
    async with servers.session(group) as client:
        await servers.get(client)
    return group
