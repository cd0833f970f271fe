"""Never run: what users write to limit their load, alone and together."""

from __future__ import annotations

from typing import assert_type

import aiohttp
from redis.asyncio import Redis

from aioretry_smithy import (
    CircuitBreaker,
    ClientRequestContext,
    ConcurrencyLimit,
    HttpRequest,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    limits,
    redis,
)
from aioretry_smithy.opentelemetry import OpenTelemetryMetrics
from aioretry_smithy.prometheus import PrometheusMetrics


def use_limits() -> None:
    """Limit the load of the standard chain."""
    SessionBuilder.standard(concurrency=20, rate=RateLimit(100, per=60.0))
    SessionBuilder.standard(concurrency="aimd", rate=lambda host: RateLimit(5))
    SessionBuilder.standard(rate=100, metrics=PrometheusMetrics())
    SessionBuilder.standard(metrics=OpenTelemetryMetrics())
    SessionBuilder.standard(rate=lambda host: 2.5)
    SessionBuilder.standard(rate=[RateLimit(5), RateLimit.from_headers()])
    SessionBuilder.standard(concurrency=lambda host: ConcurrencyLimit.aimd(name=host))
    SessionBuilder.standard(concurrency=ConcurrencyLimit.gradient(), rate=None)


async def use_weighted_rates(session: aiohttp.ClientSession) -> None:
    """Limit what requests cost."""

    def cost(ctx: ClientRequestContext, request: HttpRequest) -> int:
        return len(request.options)

    def actual(log: RequestLog, content: bytes | None) -> float | None:
        return None if content is None else len(content)

    tokens = RateLimit(5, cost=cost, actual=actual)
    RateLimitingClient.new_decorator([RateLimit(5), tokens], enforce=False)
    RateLimitingClient.new_per_host_decorator(lambda host: [tokens])
    async with session.get("/") as response:
        tokens.settle(response, 3)


async def use_shared_limits() -> None:
    """Share limits between processes."""
    limit = limits.SharedRateLimit(
        "async+redis://localhost:6379",
        "100/second",
        key=lambda ctx, request: request.headers.get("X-Tenant", "none"),
        on_storage_error="refuse",
        implementation="redispy",
    )
    RateLimitingClient.new_decorator(limit, timeout=1.0)
    budget = redis.SharedRetryBudget(Redis(), "orders", capacity=20, brake_after=None)
    RetryingClient.new_decorator(RetryStrategy.failsafe(), limiter=budget)
    assert_type(budget.tokens, float)
    async with redis.SharedCircuitBreakers(Redis(), channel="orders") as shared:
        assert_type(shared, redis.SharedCircuitBreakers)
        CircuitBreaker("orders", listeners=[shared])
    RateLimitingClient.new_per_host_decorator(
        lambda key: limits.SharedRateLimit("async+memory://", "5 per minute", key=key)
    )
    assert_type(limit.pending, int)
