"""The page that Prometheus reads over the wire after calls to a server."""

import asyncio

import aiohttp
import pytest
from aiohttp import web
from chains import connected, retrying

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    RetryBudget,
    RetryStrategy,
)

pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from aioretry_smithy.prometheus import (
    CircuitBreakerMetrics,
    MetricsClient,
    RetryBudgetMetrics,
)

STATES = ("closed", "open", "half_open", "forced_open")


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def scrape(registry):
    """Read the page of an exporter, as series by name and then by labels."""
    exporter, thread = start_http_server(0, "127.0.0.1", registry)

    async def read():
        url = f"http://127.0.0.1:{exporter.server_port}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            text = await response.text()
        series = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                name = sample.name.removeprefix("aioretry_smithy_")
                series.setdefault(name, {})[tuple(sample.labels.values())] = (
                    sample.value
                )
        return series

    yield read
    exporter.shutdown()
    exporter.server_close()
    thread.join()


@pytest.fixture
async def server(serving):
    """A server that answers with the statuses in the path, one after the other."""
    asked = {}

    async def answer(request):
        statuses = request.match_info["path"].split(",")
        number = asked[request.path] = asked.get(request.path, -1) + 1
        if statuses == ["silent"]:
            await asyncio.sleep(60)
        return web.Response(status=int(statuses[min(number, len(statuses) - 1)]))

    return await serving(answer)


def new_session(registry, *, brake_after=None):
    """Build the chain that the documents show."""
    metrics = MetricsClient.new_decorator(registry)
    budget = RetryBudget.per_host(
        capacity=3, brake_after=brake_after, listeners=[RetryBudgetMetrics(registry)]
    )
    breakers = CircuitBreakerMetrics(registry)
    return connected(
        None,
        CircuitBreakerClient.new_per_host_decorator(
            lambda host: CircuitBreaker(
                host, minimum_request_threshold=5, listeners=[breakers]
            )
        ),
        metrics,
        retrying(RetryStrategy.failsafe(Backoff.fixed(0.01)), limiter=budget),
        metrics,
    )


async def test_retries_can_be_scraped(registry, scrape, server):
    """503, 503, 200: three attempts, two retries, one call, in every series."""
    url = server.make_url("/503,503,200")
    async with new_session(registry) as session, session.get(url) as response:
        assert 200 == response.status

    found = await scrape()
    host = f"127.0.0.1:{server.port}"
    bad, good = (host, "GET", "5xx"), (host, "GET", "2xx")
    assert {bad: 2, good: 1} == found["attempts_total"]
    assert {bad: 1, good: 1} == found["retries_total"]
    assert {bad: 2, good: 1} == found["attempt_duration_seconds_count"]
    assert {(host, "GET", "none"): 1} == found["call_duration_seconds_count"]
    call = found["call_duration_seconds_sum"][host, "GET", "none"]
    assert 0.02 + sum(found["attempt_duration_seconds_sum"].values()) <= call < 5.0
    assert {(host,): pytest.approx(1.1)} == found["retry_budget_tokens"]
    assert {(host,): 0} == found["retry_budget_refusals_total"]
    assert {(host, state): state == "closed" for state in STATES} == found[
        "circuit_breaker_state"
    ]
    assert {(host,): 0} == found["circuit_breaker_rejections_total"]
    assert {(host, state): 0 for state in STATES} == found[
        "circuit_breaker_transitions_total"
    ]


async def test_page_is_whole_while_calls_are_under_way(registry, scrape, server):
    """The exporter reads in a thread of its own, while 200 calls are counted."""
    async with new_session(registry) as session:

        async def call():
            async with session.get(server.make_url("/200")) as response:
                await response.read()

        calls = asyncio.gather(*(call() for _ in range(200)))
        pages = [await scrape() for _ in range(5)]
        await calls

    pages.append(await scrape())
    key = (f"127.0.0.1:{server.port}", "GET", "2xx")
    counts = [page.get("attempts_total", {}).get(key, 0) for page in pages]
    assert sorted(counts) == counts
    assert 200 == counts[-1]
