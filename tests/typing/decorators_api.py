"""Never run: what users write with limits, hedges, downloads, tokens and faults."""

from __future__ import annotations

from typing import assert_type

import aiohttp
from redis.asyncio import Redis

from aioretry_smithy import (
    CircuitBreaker,
    ClientRequestContext,
    ConcurrencyLimit,
    Decorator,
    HedgingClient,
    HedgingDelay,
    HttpRequest,
    IdempotencyKeyClient,
    RateLimit,
    RateLimitingClient,
    RefreshingClient,
    RequestLog,
    ResumingClient,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    decorate,
    decorate_standard,
    limits,
    redis,
    unwrap,
)
from aioretry_smithy.opentelemetry import OpenTelemetryMetrics
from aioretry_smithy.prometheus import PrometheusMetrics
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault


def use_faults() -> None:
    """Inject faults of all kinds."""
    decorator = FaultInjectingClient.new_decorator(
        InjectedFault.status(503, headers={"Retry-After": "1"}, body={"busy": True}),
        InjectedFault.error(TimeoutError, rate=0.1),
        InjectedFault.error(aiohttp.ClientPayloadError("half")),
        InjectedFault.latency((0.1, 0.5)),
        InjectedFault.hang(request_filter=lambda request: request.method == "GET"),
        InjectedFault.cut_body(after=10),
        random=lambda: 0.5,
        enabled=lambda ctx, request: ctx.attempt == 1,
    )
    assert_type(decorator, Decorator)


def use_hedging(session: aiohttp.ClientSession, log: RequestLog) -> None:
    """Send late requests again, within a budget."""
    budget = RetryBudget.per_host()
    decorators: list[Decorator] = [
        HedgingClient.new_decorator(0.05),
        HedgingClient.new_decorator(HedgingDelay.fixed(1), max_hedges=2),
        HedgingClient.new_decorator(
            HedgingDelay.percentile(0.98, window=30.0), limiter=budget
        ),
    ]
    decorate(session, *decorators)
    decorate_standard(session, rate=100, logging=None, max_total_attempts=2)
    hedging = unwrap(session, HedgingClient)
    if hedging is not None:
        assert_type(dict(hedging.delays), dict[str, float | None])
    assert_type((log.is_hedge, log.superseded), tuple[bool, bool])


def use_resuming(session: aiohttp.ClientSession) -> None:
    """Continue downloads."""
    resuming: Decorator = ResumingClient.new_decorator(
        max_resumes_without_progress=5, request_filter=lambda request: bool(request.url)
    )
    decorate(session, ResumingClient.new_decorator(), resuming)
    assert_type(unwrap(session, ResumingClient), ResumingClient | None)


def send_tokens_and_keys(session: aiohttp.ClientSession) -> None:
    """Add them to requests of the session's own."""

    async def fetch() -> str:
        return "a token"

    def key(ctx: ClientRequestContext, request: HttpRequest) -> str | None:
        return None if request.method == "PATCH" else str(ctx.attributes["order"])

    decorators: list[Decorator] = [
        RefreshingClient.new_decorator(fetch),
        RefreshingClient.new_decorator(
            fetch, on=[403], header="X-Key", scheme=None, hosts=["a.example"]
        ),
        IdempotencyKeyClient.new_decorator(),
        IdempotencyKeyClient.new_decorator(header="X-Id", methods=["PUT"], key=key),
        IdempotencyKeyClient.new_decorator(key=lambda ctx, request: request.method),
    ]
    decorate(session, *decorators)


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
