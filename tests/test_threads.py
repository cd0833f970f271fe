"""Threads, each with a loop and sessions of its own, share what has no state."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from chains import chain

from aioretry_smithy import (
    Backoff,
    CircuitBreakerClient,
    CircuitBreakerRule,
    HttpRequest,
    RequestLog,
    RetryConfig,
    RetryingClient,
    RetryRule,
    RetryStrategy,
    request_options,
    smithy,
)
from aioretry_smithy._request.keys import host_key
from aioretry_smithy.testing import VirtualTimeLoop

pytestmark = pytest.mark.usefixtures("eager_threads")

THREADS = 4


def in_threads(function):
    """Run an async function in several loops at once and return what it returned."""
    start = threading.Barrier(THREADS)

    def run(number):
        start.wait()
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(function(number))

    with ThreadPoolExecutor(THREADS) as threads:
        return [*threads.map(run, range(THREADS))]


async def waits_of(builder, *urls):
    """Return how long the calls to some addresses waited between their attempts."""
    waits = set()
    async with builder.build() as client:
        for url in urls:
            log = RequestLog.of(await client.get(url))
            waits.add(tuple(attempt.delay for attempt in log.children))
    return waits


def test_threads_share_settings_without_a_limiter():
    """Configurations, rules, backoffs and block options serve loops in all threads."""
    backoff = Backoff.fibonacci(1.0)
    rule = RetryRule(statuses=[503], backoff=backoff) | RetryStrategy.failsafe(backoff)
    config = RetryConfig(rule, max_total_attempts=4)
    counted = CircuitBreakerRule.failure(status_classes=[5])
    block = request_options(response_timeout=60.0)

    async def call(number):
        breaker = CircuitBreakerClient.new_per_host_decorator(strategy=counted)
        builder = chain(
            [503, 429, 503, 200] * 20, breaker, RetryingClient.new_decorator(config)
        )
        with block:
            return await waits_of(
                builder, *(f"http://host-{number}-{each}/" for each in range(20))
            )

    assert [{(1.0, 1.0, 2.0, None)}] * THREADS == in_threads(call)


def test_threads_name_many_servers_at_once():
    """Loops in several threads meet more servers than are remembered."""

    async def name_servers(number):
        urls = [f"http://{number}-{each}.example/" for each in range(1500)]
        names = [host_key(HttpRequest("GET", url)) for url in urls]
        return names == [f"{url[7:-1]}:80" for url in urls]

    assert [True] * THREADS == in_threads(name_servers)


def test_threads_pay_from_one_quota():
    """A strategy of Smithy's, shared by loops in several threads, loses no token."""
    strategy = smithy.StandardRetryStrategy(max_attempts=2)

    async def call(number):
        builder = chain([503] * 10, RetryingClient.new_decorator(strategy))
        await waits_of(builder, *["http://example.com/"] * 5)

    in_threads(call)

    paid = THREADS * 5 * 14
    assert 500 - paid == strategy.quota_for("example.com:80").available_capacity
