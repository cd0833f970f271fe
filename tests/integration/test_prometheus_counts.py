"""Counts add up to what a server saw."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from aiohttp import web
from chains import connected, retrying

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RequestLog,
    RetryBudget,
    RetryStrategy,
    capture_logs,
)

pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry

from aioretry_smithy.prometheus import (
    CircuitBreakerMetrics,
    MetricsClient,
    RetryBudgetMetrics,
)

CALLS = 1000
METHODS = ("GET", "GET", "GET", "PUT", "POST", "PURGE", "DELETE")
OUTCOMES = {200: 8, 204: 2, 404: 2, 429: 1, 503: 3, "hang up": 2, "stay silent": 1}


def series(registry, name, *labels):
    """Return the sum of a series by some of its labels."""
    sums = Counter()
    for metric in registry.collect():
        for sample in metric.samples:
            if sample.name == f"aioretry_smithy_{name}":
                sums[tuple(sample.labels[label] for label in labels)] += sample.value
    return sums


class Server:
    """Answers at random, and counts what it was sent."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.seen = Counter()
        self.waiting = {}

    async def answer(self, request):
        (outcome,) = self.chance.choices([*OUTCOMES], OUTCOMES.values())
        method = request.method if request.method != "PURGE" else "_OTHER"
        if outcome == "stay silent":
            self.seen[method, "cancelled"] += 1
            self.waiting.pop(request.path).cancel()
            await asyncio.sleep(60)
        if outcome == "hang up":
            self.seen[method, "error"] += 1
            request.transport.abort()
            return web.Response()
        self.seen[method, f"{outcome // 100}xx"] += 1
        return web.Response(status=outcome)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
async def test_attempts_add_up_to_what_the_server_saw(serving, seed):
    """1000 calls, 50 at once: statuses, hang-ups and cancellations all agree."""
    server = Server(seed)
    running = await serving(server.answer)
    registry = CollectorRegistry()
    metrics = MetricsClient.new_decorator(registry)
    budget = RetryBudget(
        capacity=20, brake_after=None, listeners=[RetryBudgetMetrics(registry)]
    )
    breakers = CircuitBreakerMetrics(registry)

    def open_for_deletion(method):
        breaker = CircuitBreaker(
            method, failure_rate_threshold=1.0, listeners=[breakers]
        )
        if method == "DELETE":
            breaker.enter_state(CircuitState.FORCED_OPEN)
        return breaker

    places = asyncio.Semaphore(50)

    async def call(session, number):
        path = f"/{number}"
        async with places:
            server.waiting[path] = asyncio.current_task()
            method = server.chance.choice(METHODS)
            async with session.request(method, path) as response:
                await response.read()

    with capture_logs() as logs:
        async with connected(
            running.make_url("/"),
            metrics,
            CircuitBreakerClient.new_per_method_decorator(open_for_deletion),
            retrying(
                RetryStrategy.failsafe(Backoff.random(0.0, 0.005)),
                max_total_attempts=4,
                limiter=budget,
            ),
            metrics,
        ) as session:
            calls = (call(session, number) for number in range(CALLS))
            await asyncio.gather(*calls, return_exceptions=True)

    attempts = series(registry, "attempts_total", "method", "status_class")
    # What the transport sends again, below all decorators, is no attempt.
    resent = Counter(
        (attempt.request_method, "error")
        for log in logs
        for attempt in log.children
        if attempt.delay_source == "stale_connection"
    )
    assert 0 < resent.total()
    assert server.seen - resent == attempts
    durations = series(
        registry, "attempt_duration_seconds_count", "method", "status_class"
    )
    assert attempts == durations
    ends = series(registry, "call_duration_seconds_count", "stop_reason")
    assert Counter((log.stop_reason or "none",) for log in logs) == ends
    assert CALLS == ends.total()
    sent = sum(any(was_sent(attempt) for attempt in log.children) for log in logs)
    retries = series(registry, "retries_total").total()
    assert sent == attempts.total() - retries
    refused = sum(not was_sent(attempt) for log in logs for attempt in log.children)
    assert refused == series(registry, "circuit_breaker_rejections_total").total()
    limited = series(registry, "retry_budget_refusals_total").total()
    assert ends["limiter",] == limited
    # Otherwise there would be nothing to add up.
    assert 0 < min(retries, refused, limited, ends["cancelled",])


def was_sent(attempt: RequestLog) -> bool:
    """Say whether an attempt went past the circuit breaker."""
    return type(attempt.response_cause).__name__ != "FailFastError"
