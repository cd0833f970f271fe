"""Never run: what users write with hedges, downloads, tokens, keys and faults."""

from __future__ import annotations

from typing import assert_type

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    Decorator,
    HedgingClient,
    HedgingDelay,
    HttpRequest,
    IdempotencyKeyClient,
    RefreshingClient,
    RequestLog,
    ResumingClient,
    RetryBudget,
    decorate,
    decorate_standard,
    unwrap,
)
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
